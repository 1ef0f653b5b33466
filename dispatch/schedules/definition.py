"""What a schedule is: when it fires, and the job that it starts. As text it stands in the tables in Valkey.

Peers write the tables, so reading a definition evaluates nothing, is bounded, and answers None for what is
none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dispatch import payload
from dispatch.ids import MAX_ID_BYTES, OCCURRENCE
from dispatch.jobdata import JobData
from dispatch.jobrules import Flaw, Malformed, wire_name
from dispatch.schedules.fingerprint import canonical
from dispatch.schedules.patterns import Recurrence
from dispatch.triggers.entries import CronOn, Run, Trigger, wire_run

# More than a whole triggers file may have.
MAX_BYTES = 2 * 1024 * 1024
# What is left of a job's id beside the prefix, the colon and an instant of 15 digits.
MAX_ID_CHARACTERS = MAX_ID_BYTES - len(OCCURRENCE) - 1 - 15

_VERSION = 1
_ID = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_RUN_FIELDS = {wire_name(one.name) for one in fields(Run)}
_KEYS = {"v", "id", "pattern", "zone", "run"}


class BrokenDefinitionError(ValueError):
    """A schedule that can start no job; the text is that of `Schedule.problem`."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as a queue keeps it: `zone` is what it goes by, `run` the entry's, as JSON has it."""

    id: str
    pattern: str
    zone: str
    run: Mapping[str, object] = field(repr=False)

    def text(self) -> str:
        """Write it so that equal schedules are equal texts."""
        members = {"id": self.id, "pattern": self.pattern, "zone": self.zone, "run": self.run}
        return canonical({"v": _VERSION, **members})

    def recurrence(self) -> Recurrence:
        """Say when it fires; ValueError for a pattern or a zone that is none."""
        return Recurrence.parse(self.pattern, schedule_id=self.id, zone=self.zone)

    def job(self) -> JobData:
        """Build the job of an occurrence; BrokenDefinitionError where a worker would find it malformed."""
        found = self._job()
        if isinstance(found, Malformed):
            raise BrokenDefinitionError(_told(found))
        return found

    def problem(self) -> str | None:
        """Say why it can start no job, after "the schedule ID"; None when it can."""
        if not _ID.fullmatch(self.id) or len(self.id) > MAX_ID_CHARACTERS:
            return (
                f"has an id of {len(self.id)} characters; allowed are 1 to {MAX_ID_CHARACTERS}"
                " of letters, digits, dots, underscores and hyphens"
            )
        try:
            self.recurrence()
        except ValueError as error:
            return str(error)
        found = self._job()
        return _told(found) if isinstance(found, Malformed) else None

    def _job(self) -> JobData | Malformed:
        if not self.run.keys() <= _RUN_FIELDS:
            return Malformed(Flaw.FIELD_UNKNOWN)
        # The reference's files may say that a schedule does not go on with a session; no local job does.
        run = {name: value for name, value in self.run.items() if not (name == "resume" and value is False)}
        data = {**run, "trigger": {"id": self.id, "pattern": self.pattern}}
        envelope = {"v": payload.VERSION, "data": data}
        call: list[object] = [payload.CALLABLE, None, [], {"job": envelope}]
        return payload.decode(json.dumps(call).encode())


def of_trigger(trigger: Trigger, *, host_zone: str) -> Schedule:
    """Make the schedule of a cron entry; without a zone of its own it goes by that of the host."""
    if not isinstance(trigger.on, CronOn):
        raise TypeError(f"the entry {trigger.index} is no schedule")
    on = trigger.on
    return Schedule(on.id, on.pattern, on.tz or host_zone, wire_run(trigger.run))


def read(text: str | bytes) -> Schedule | None:
    """Read what `text` wrote; None for what is no definition or could start no job. Never raises."""
    try:
        return _read(text)
    except (ValueError, RecursionError):
        return None


def _read(text: str | bytes) -> Schedule | None:
    members = _members(text)
    if not isinstance(members, dict) or set(members) != _KEYS:
        return None
    version, run = members["v"], members["run"]
    texts = {name: members[name] for name in ("id", "pattern", "zone")}
    if type(version) is not int or version != _VERSION or not isinstance(run, dict):
        return None
    if not all(isinstance(one, str) for one in texts.values()):
        return None
    found = Schedule(**texts, run=run)
    return None if found.problem() else found


def _members(text: str | bytes) -> Any:
    if len(text) > MAX_BYTES:
        raise ValueError("a definition is shorter")
    decoded = text.decode() if isinstance(text, bytes) else text
    return json.loads(decoded, object_pairs_hook=_once_each)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _told(found: Malformed) -> str:
    where = f"run.{found.field}" if found.field else "run"
    return f"makes no job: its {where} is not what triggers.json may have there ({found.detail})"
