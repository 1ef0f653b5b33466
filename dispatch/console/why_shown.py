"""The answer of `why` as lines for a person, and as data for programs and pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.instants import ahead, span, stamp
from dispatch.console.why import Explanation
from dispatch.queue.states import State
from dispatch.queue.waiters import WaitReason

_STANDS = {
    State.QUEUED: "waits in line",
    State.IN_HAND: "is in hand",
    State.STARTED: "runs",
    State.SCHEDULED: "is deferred",
    State.FINISHED: "is finished",
    State.FAILED: "has failed",
    State.OTHER: "stands apart",
}
# A first queueing as long before the last change as this is told beside it.
_WORTH_TELLING_MS = 2000


def lines(found: Explanation) -> list[str]:
    """Say it in a few lines, each free of what a terminal would act on; instants also as distances."""
    entry = found.facts.entry
    return [
        one_line(f"Job {entry.job_id} {stands(found)} on {entry.queue}: {found.reason}"),
        *map(one_line, (found.sentence, found.remedy, *found.notes)),
        *(f"  {name:<9}{text}" for name, text in figures(found)),
    ]


def stands(found: Explanation) -> str:
    """Say how it stands, as the rest of a sentence about it."""
    return "is held" if found.reason == WaitReason.WAIT else _STANDS[found.facts.entry.state]


def figures(found: Explanation) -> Iterator[tuple[str, str]]:
    """Give its instants, and which attempt it is, each with a name."""
    entry, now_ms = found.facts.entry, found.facts.queue.now_ms
    queued_ms, since_ms = entry.first_queued_ms, found.since_ms
    if since_ms is not None:
        yield "ended" if entry.state.is_over else "since", _past(since_ms, now_ms)
    if found.until_ms is not None:
        yield "until", f"{stamp(found.until_ms)}, {ahead(found.until_ms, now_ms)}"
    if queued_ms is not None and (since_ms is None or since_ms - queued_ms >= _WORTH_TELLING_MS):
        yield "enqueued", _past(queued_ms, now_ms)
    if entry.attempt:
        yield "attempt", f"{min(entry.attempt + 1, entry.attempts)} of {entry.attempts}"


def _past(instant_ms: int, now_ms: int) -> str:
    return f"{stamp(instant_ms)}, {span(now_ms - instant_ms)} ago"


def as_data(found: Explanation) -> dict[str, Any]:
    """Put it into the shape of `why --json`.

    Instants are in ms, `attempt` counts from 0, null where nothing is known.
    """
    facts, entry = found.facts, found.facts.entry
    return {
        "job": entry.job_id,
        "queue": entry.queue,
        "state": entry.state.value,
        "reason": found.reason,
        "cause": entry.cause,
        "sentence": found.sentence,
        "remedy": found.remedy,
        "notes": list(found.notes),
        "now": facts.queue.now_ms,
        "since": found.since_ms,
        "until": found.until_ms,
        "firstQueued": entry.first_queued_ms,
        "position": entry.position,
        "line": facts.line,
        "busy": facts.busy,
        "host": found.host,
        "container": facts.container,
        "attempt": entry.attempt,
        "attempts": entry.attempts,
        "putBacks": entry.put_backs,
        "lastReason": facts.last_reason,
        "scopeHash": entry.scope_hash,
        "holders": [one.job_id for one in facts.holders],
        "hold": _hold(found),
    }


def _hold(found: Explanation) -> dict[str, Any] | None:
    hold, conditions = found.facts.hold, found.facts.conditions
    if hold is None:
        return None
    after = conditions.after if conditions else None
    return {
        "since": hold.since_ms,
        "after": int(after.timestamp() * 1000) if after else None,
        "profiles": list(conditions.profiles) if conditions else [],
        "checks": hold.checks,
        "faults": hold.faults,
        "throttles": hold.throttles,
    }
