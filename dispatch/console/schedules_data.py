"""The answer of `triggers` as data for programs and pages: instants in ms, null for what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatch.console.schedule_facts import LastRun, Line, Overview
from dispatch.console.trigger_words import matches, slot, spent
from dispatch.triggers.entries import Trigger


def as_data(overview: Overview) -> dict[str, Any]:
    """Put it into the shape of `triggers --json`.

    `server` is false where Valkey was not reached, `file.loads` where the file does not load.
    """
    file = overview.file
    return {
        "now": overview.now_ms,
        "server": overview.fleet is not None,
        "runs": overview.has_runs,
        "file": {
            "path": str(file.path) if file.path else None,
            "loads": file.triggers is not None,
            "problems": [*file.problems, *file.unservable],
            "digest": file.digest or None,
            "differsOn": list(overview.differs_on),
            "disagreesWith": list(overview.disagreed_with),
        },
        "schedules": [_line(line) for line in overview.lines],
        "rules": [_rule(one, overview.ran_by.get(one.index)) for one in overview.rules],
        "unreadable": {one.queue.queue: one.unreadable for one in overview.tables if one.unreadable},
    }


def _line(line: Line) -> dict[str, Any]:
    verdict = line.verdict
    return {
        "id": line.id,
        "index": line.authored.index if line.authored else None,
        "pattern": line.pattern or None,
        "zone": line.zone or None,
        "next": list(line.upcoming),
        "queues": [one.queue for one in line.installed if one.torn is None],
        "tornDown": [one.queue for one in line.installed if one.torn],
        "last": _last(line.last),
        "state": line.state,
        "reason": verdict.reason if verdict else None,
        "occurrence": verdict.instant_ms if verdict else None,
        "told": line.words,
        "fix": line.remedy or None,
        "differs": line.differs,
        "folder": line.authored.run.folder if line.authored else None,
        "slot": slot(line.authored.run) if line.authored else None,
    }


def _last(run: LastRun | None) -> Mapping[str, Any] | None:
    if run is None:
        return None
    return {
        "job": run.job_id,
        "occurrence": run.instant_ms,
        "ended": run.ended_ms,
        "outcome": run.outcome or None,
        "reason": run.reason or None,
        "host": run.host or None,
        "byHand": run.by_hand,
    }


def _rule(trigger: Trigger, ran_by: str | None) -> dict[str, Any]:
    return {
        "index": trigger.index,
        "kind": trigger.run.kind.value,
        "matches": matches(trigger.on),
        "slot": slot(trigger.run),
        "spent": spent(trigger.on),
        "ranBy": ran_by,
    }
