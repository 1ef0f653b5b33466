"""One job of a queue as its hash describes it, without what it is to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dispatch.ids import natural_id
from dispatch.queue.fields import milliseconds
from dispatch.queue.states import State

# What is asked of a hash, in this order; texts and payload stay where they are.
NAMES = (
    *("status", "taker", "host", "attempt", "attempts", "putBacks"),
    *("reason", "since", "until", "firstQueued", "scope", "cause"),
    *("enqueued_at", "started_at", "ended_at", "created_at"),
)
_MOST_DIGITS = 16
_LATEST_MS = 253_402_300_799_999
_STATES: Mapping[str, State] = {one.value: one for one in State}
# When a job came to stand as it does; nobody writes down when one was taken.
_SINCE = {
    State.QUEUED: "enqueued_at",
    State.STARTED: "started_at",
    State.FINISHED: "ended_at",
    State.FAILED: "ended_at",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One job. Instants are epoch ms, those that RQ writes by the clock of the host that wrote them.

    `position` counts from 1 in the order of being taken, None for a job that is not in line. `host` has it,
    `token` is its pop's. `attempt` counts from 0, `attempts` is the maximum. `since_ms`: since when it stands
    as it does (for a sleeping one: sleeps for this reason). `reason` is what it sleeps for, or did last;
    `cause` is the token that says more of it, `until_ms` when it wakes. `scope_hash` is the digest of its
    folder or repository.
    """

    job_id: str
    queue: str
    state: State
    position: int | None = None
    host: str | None = None
    token: str | None = None
    attempt: int = 0
    attempts: int = 1
    put_backs: int = 0
    reason: str | None = None
    cause: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    first_queued_ms: int | None = None
    scope_hash: str | None = None


def read_entry(
    queue: str, raw_id: bytes, values: Sequence[bytes | None], *, position: int | None = None
) -> Entry:
    """Read the values of NAMES; what cannot be read is as if it were not there."""
    # As `text` does, of sixteen values of thousands of jobs.
    texts = {
        name: value.decode("utf-8", "replace") if value else None
        for name, value in zip(NAMES, values, strict=True)
    }
    rq_id = raw_id.decode("utf-8", "backslashreplace")
    state = _state(texts["status"], position)
    has_owner = state in {State.IN_HAND, State.STARTED}
    return Entry(
        job_id=natural_id(rq_id) or rq_id,
        queue=queue,
        state=state,
        position=position,
        host=texts["host"] if has_owner else None,
        token=texts["taker"] if has_owner else None,
        attempt=number(texts["attempt"]) or 0,
        attempts=max(number(texts["attempts"]) or 1, 1),
        put_backs=number(texts["putBacks"]) or 0,
        reason=texts["reason"],
        cause=texts["cause"] if state is State.SCHEDULED else None,
        since_ms=_since(state, texts),
        until_ms=number(texts["until"]) if state is State.SCHEDULED else None,
        first_queued_ms=number(texts["firstQueued"]) or milliseconds(texts["created_at"] or ""),
        scope_hash=texts["scope"],
    )


def beats_of(rows: Sequence[bytes]) -> Mapping[str, int]:
    """Read boots and their last beats (ms) as a script lists them, one after the other."""
    return beats_of_pairs(zip(rows[::2], rows[1::2], strict=True))


def beats_of_pairs(pairs: Iterable[tuple[bytes, bytes | float]]) -> Mapping[str, int]:
    """Read boots and their last beats (ms); one at no instant of any calendar is nobody's."""
    numbers = ((boot.decode("utf-8", "replace"), float(beat)) for boot, beat in pairs)
    return {boot: round(beat) for boot, beat in numbers if 0 <= beat <= _LATEST_MS}


def text(value: bytes | None) -> str | None:
    """Read a value of the hash; None when it is empty or not there."""
    return value.decode("utf-8", "replace") if value else None


def number(value: str | None) -> int | None:
    """Read a count or an instant; None for anything else."""
    return (
        int(value) if value and len(value) <= _MOST_DIGITS and value.isascii() and value.isdigit() else None
    )


def _state(status: str | None, position: int | None) -> State:
    if status == State.QUEUED and position is None:
        return State.IN_HAND
    return _STATES.get(status or "", State.OTHER)


def _since(state: State, texts: Mapping[str, str | None]) -> int | None:
    if state is State.SCHEDULED:
        return number(texts["since"])
    return milliseconds(texts[_SINCE[state]] or "") if state in _SINCE else None
