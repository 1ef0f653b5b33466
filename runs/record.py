"""The record of a run (Q 15.1, contracts 7): what is kept of a job after it ended, and its one JSON line.

A record names ids, enums, counts and instants. Nothing is spread into it from a job's data, a result or an
error: each field is read by name, so that no path, task or secret can slip in (D17). Absent information is
None, `null` on the line, never 0. `runs.recording` builds records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, NoReturn, Self

from runs import oneshot, shape
from runs.oneshot import OneShot
from runs.outcome import Outcome

MAX_RECORD_BYTES = 256 * 1024
MAX_EARLIER_ATTEMPTS = 64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Reader = Callable[[object], Any]


class DamagedRecordError(Exception):
    """The bytes are no record; the message names the field and what was expected, never what was found."""


class _Line:
    """What `Record` and `Attempt` share: a JSON object whose keys are the camel-case names of the fields."""

    __slots__ = ()

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the object; unknown keys are ignored. Raises DamagedRecordError."""
        if not isinstance(value, Mapping):
            raise DamagedRecordError("an object is expected")
        return cls(**{name: _value_of(value, key, read) for name, key, read in _PLANS[cls]})

    def to_json(self) -> dict[str, Any]:
        """Write the object, every key present but those of `_LEFT_OUT` that are absent."""
        return {
            key: _plain(value)
            for name, key, _ in _PLANS[type(self)]
            if (value := getattr(self, name)) is not None or name not in _LEFT_OUT
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(_Line):
    """An earlier attempt of the same job, as its record keeps it."""

    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome
    reason: str | None = None
    exit_code: int | None = None
    turns: int | None = None
    tokens: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(_Line):
    """The last attempt of one job that somebody knows of.

    `attempt` counts the attempts before this one. `final` is false while the job will be tried again.
    `budget_reserved` tells whether a slot of the global day cap stayed spent. `host` is the worker's name.
    `reason` is a word of `runs.outcome.Reason`, or of a later version's. Instants are UTC in milliseconds.
    `once` is the entry of the triggers file that the job spends; only the record of such a job has the key.
    """

    job_id: str
    kind: str | None = None
    target: str | None = None
    flow: str | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome
    reason: str | None = None
    exit_code: int | None = None
    turns: int | None = None
    tokens: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    provider: str | None = None
    model: str | None = None
    budget_reserved: bool | None = None
    attempt: int
    final: bool = True
    attempts: tuple[Attempt, ...] = ()
    parent_job_id: str | None = None
    chain_depth: int | None = None
    chain_refused: int | None = None
    replica: int | None = None
    replicas: int | None = None
    trigger_index: int | None = None
    trigger_type: str | None = None
    session: Mapping[str, Any] | None = None
    scope_hash: str | None = None
    image_digest: str | None = None
    host: str | None = None
    once: OneShot | None = None

    def to_bytes(self) -> bytes:
        """Write one JSON line in ASCII, without its newline."""
        return json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False).encode("ascii")

    @classmethod
    def from_bytes(cls, line: bytes) -> Record:
        """Read one line. Unknown keys are ignored; a wrong shape raises DamagedRecordError."""
        if len(line) > MAX_RECORD_BYTES:
            raise DamagedRecordError(f"longer than {MAX_RECORD_BYTES} bytes")
        try:
            value = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise DamagedRecordError("not JSON") from error
        return cls.from_json(value)


def position_ms(record: Record) -> int:
    """Tell where the record stands in time, in epoch milliseconds: at its end, else its start, else at 0."""
    moment = record.ended_at or record.started_at or record.queued_at or _EPOCH
    return round((moment - _EPOCH).total_seconds() * 1000)


def order(record: Record) -> tuple[int, bool, int]:
    """Rank what is known of one job: a greater rank replaces, an equal one is the same news (contracts 3)."""
    return (record.attempt, record.final, position_ms(record))


def _outcome(value: object) -> Outcome:
    try:
        return Outcome(shape.token(value))
    except ValueError as error:
        raise shape.ShapeError("completed, policy or failed is expected") from error


def _attempts(value: object) -> tuple[Attempt, ...]:
    if not isinstance(value, list) or len(value) > MAX_EARLIER_ATTEMPTS:
        raise shape.ShapeError("a short list is expected")
    return tuple(Attempt.from_json(entry) for entry in value)


_READERS: Mapping[str, Reader] = {
    "job_id": shape.identity,
    **dict.fromkeys(("queued_at", "started_at", "ended_at"), shape.instant),
    **dict.fromkeys(("kind", "target", "flow", "provider", "model", "host"), shape.text),
    **dict.fromkeys(("parent_job_id", "trigger_type", "scope_hash", "image_digest"), shape.text),
    **dict.fromkeys(("attempt", "turns", "chain_depth", "chain_refused"), shape.count),
    **dict.fromkeys(("replica", "replicas", "trigger_index"), shape.count),
    **dict.fromkeys(("budget_reserved", "final"), shape.flag),
    "outcome": _outcome,
    "reason": shape.token,
    "exit_code": shape.whole,
    "tokens": shape.tokens,
    "usage": shape.usage,
    "session": shape.session,
    "attempts": _attempts,
    "once": oneshot.read,
}
# What few jobs have is no key of the others' records.
_LEFT_OUT = frozenset({"once"})


@cache
def camel(name: str) -> str:
    """Write a field's name as its key: `exit_code` as `exitCode`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _unless_absent(read: Reader, default: object) -> Reader:
    return lambda value: default if value is None else read(value)


def _plan(cls: type[Attempt] | type[Record]) -> tuple[tuple[str, str, Reader], ...]:
    """List each field's name, key and reader; null and a missing key are read as the default."""
    return tuple(
        (
            item.name,
            camel(item.name),
            _READERS[item.name]
            if item.default is MISSING
            else _unless_absent(_READERS[item.name], item.default),
        )
        for item in fields(cls)
    )


_PLANS: Mapping[type[_Line], tuple[tuple[str, str, Reader], ...]] = {
    cls: _plan(cls) for cls in (Attempt, Record)
}


def _value_of(source: Mapping[str, Any], key: str, read: Reader) -> Any:
    try:
        return read(source.get(key))
    except (shape.ShapeError, DamagedRecordError) as error:
        raise DamagedRecordError(f"{key}: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return shape.iso(value)
    if isinstance(value, tuple):
        return [entry.to_json() for entry in value]
    if isinstance(value, OneShot):
        return value.to_json()
    return dict(value) if isinstance(value, Mapping) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
