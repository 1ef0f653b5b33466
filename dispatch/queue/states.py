"""Where a job stands, read in one go: for `exists`, `why`, and whoever follows a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, cast

from dispatch.ids import rq_id
from dispatch.queue import hashes, keys
from pidispatch_site.clients import VALKEY_FAULTS

if TYPE_CHECKING:
    import redis

    from dispatch.queue.popper import Claimed

_MOST_DIGITS = 16
_NAMES = (
    *("status", "origin", "taker", "host", "attempt", "attempts"),
    *("putBacks", "reason", "since", "until"),
)


class State(StrEnum):
    """A job's state; `in-hand` is taken and not started."""

    QUEUED = "queued"
    IN_HAND = "in-hand"
    STARTED = "started"
    SCHEDULED = "scheduled"
    FINISHED = "finished"
    FAILED = "failed"
    OTHER = "other"

    @property
    def is_waiting(self) -> bool:
        """Tell whether it has yet to start."""
        return self in {State.QUEUED, State.IN_HAND, State.SCHEDULED}

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self in {State.FINISHED, State.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One job. `host` has it (in hand or started); `reason`, `since_ms` and `until_ms` say why it sleeps."""

    state: State
    queue: str
    host: str | None = None
    attempt: int = 0
    attempts: int = 1
    put_backs: int = 0
    reason: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


def look(client: redis.Redis, job_id: str) -> Standing | None:
    """Read where the job of this natural id stands; None when there is none. ValueError for no id at all."""
    return _standing(cast("list[bytes | None]", client.hmget(keys.job(rq_id(job_id).encode()), list(_NAMES))))


def look_at(client: redis.Redis, job_ids: Iterable[str]) -> dict[str, Standing | None]:
    """Read the same of many jobs, some hundred at a time; the natural ids in their order, each once."""
    raw_ids = {rq_id(job_id).encode(): job_id for job_id in job_ids}
    found = {raw_id: _standing(values) for raw_id, values in hashes.read(client, list(raw_ids), _NAMES)}
    return {job_id: found.get(raw_id) for raw_id, job_id in raw_ids.items()}


def is_pending(client: redis.Redis, job_id: str) -> bool | None:
    """Tell whether the job may still run or runs; None when Valkey does not say.

    That its hash exists is not enough: an ended job stays known for weeks.
    """
    try:
        standing = look(client, job_id)
    except VALKEY_FAULTS:
        return None
    return standing is not None and (standing.state.is_waiting or standing.state is State.STARTED)


def is_held(client: redis.Redis, claimed: Claimed) -> bool:
    """Tell whether a claimed job is still its claimant's: nobody else has decided about it meanwhile."""
    return cast("bytes | None", client.hget(keys.job(claimed.raw_id), "taker")) == claimed.token.encode()


def _standing(values: Sequence[bytes | None]) -> Standing | None:
    texts = [value.decode("utf-8", "replace") if value else None for value in values]
    status, queue, taker, host, attempt, attempts, put_backs, reason, since, until = texts
    if status is None:
        return None
    return Standing(
        state=_state(status, taker),
        queue=queue or "",
        host=host,
        attempt=_number(attempt) or 0,
        attempts=_number(attempts) or 1,
        put_backs=_number(put_backs) or 0,
        reason=reason,
        since_ms=_number(since),
        until_ms=_number(until),
    )


def _state(status: str, taker: str | None) -> State:
    if status == State.QUEUED and taker:
        return State.IN_HAND
    return State(status) if status in set(State) else State.OTHER


def _number(text: str | None) -> int | None:
    is_number = text and len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()
    return int(text) if text and is_number else None
