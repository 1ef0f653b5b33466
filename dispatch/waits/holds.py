"""Who is held and since when, and which job waits for a target, as Valkey keeps it (Q 6: `wait:*`, 9.4, 9.6).

Times are milliseconds of Valkey's clock, passed in. Every method is one script or one command and may be
repeated after a lost answer: what counts is counted once for each pop, told by its token. A host that was
frozen while another took the job over can at worst count a check that it really ran, or start the clock of
the hold again; it decides nothing by that.

No key lives for ever: each write gives hold, index and claim the time that they need, and shortens none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import redis

_LUA = Path(__file__).with_name("lua")
_SHARED = (_LUA / "shared.lua").read_text(encoding="ascii")
_MS = timedelta(milliseconds=1)

HELD = "wait:held"
_COUNTED = ("since", "checks", "faults", "throttles")
_SHORTEST_HOLD_MS = timedelta(minutes=5) // _MS
_BEYOND_WAKING_MS = timedelta(hours=1) // _MS
_COUNTER_MS = timedelta(hours=25) // _MS
_SATISFIED_MS = timedelta(minutes=15) // _MS
_MOST_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """One waiting job as a hold names it.

    `job_id` is the natural id, `target` what its checks are asked about, `label` its conditions, `identity`
    what it has in common with the jobs that it coalesces with (None: with none).
    """

    job_id: str
    target: str
    label: str
    identity: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """How long a job has been held, and what was counted: checks, and in a row faults and denied slots.

    `since_ms` is None for a job that was never held, whatever was counted.
    """

    since_ms: int | None
    checks: int
    faults: int
    throttles: int

    def held_ms(self, now_ms: int) -> int | None:
        """Tell the time held so far; None, which is not zero, for a job that was never held."""
        return None if self.since_ms is None else max(0, now_ms - self.since_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldJob:
    """One row of the list of held jobs."""

    job_id: str
    since_ms: int
    target: str
    label: str
    checks: int
    faults: int
    throttles: int


class Holds:
    """Holds, claims and markers of one Valkey; raises redis-py's errors. Safe for threads."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._hold, self._denial, self._check, self._claim, self._clear, self._release, self._held = (
            client.register_script(_SHARED + (_LUA / f"{name}.lua").read_text(encoding="ascii"))
            for name in ("hold", "count_denial", "count_check", "claim", "clear", "release", "held")
        )

    def read(self, job_id: str) -> Hold:
        """Read what is kept of a job's waiting."""
        return _hold_of(cast("list[Any]", self._client.hmget(_hold_key(job_id), list(_COUNTED))))

    def read_many(self, job_ids: Sequence[str]) -> Mapping[str, Hold]:
        """Read the same of many jobs, in one go; one whose key is no hash is left out."""
        with self._client.pipeline(transaction=False) as pipeline:
            for job_id in job_ids:
                pipeline.hmget(_hold_key(job_id), list(_COUNTED))
            found = pipeline.execute(raise_on_error=False)
        pairs = zip(job_ids, found, strict=True)
        return {job_id: _hold_of(values) for job_id, values in pairs if isinstance(values, list)}

    def record(self, waiter: Waiter, *, now_ms: int, until_ms: int) -> Hold:
        """Record that it is held until then; the first record starts the clock. Its claim lives as long."""
        return _hold_of(self._hold(keys=_keys(waiter), args=_recorded(waiter, now_ms, until_ms)))

    def count_denial(self, waiter: Waiter, *, token: str, now_ms: int, until_ms: int) -> Hold:
        """Record the hold of a job whose check got no slot, and count that; once for each `token`."""
        recorded = _recorded(waiter, now_ms, until_ms)
        return _hold_of(self._denial(keys=_keys(waiter), args=[*recorded, token, _COUNTER_MS]))

    def forget_denials(self, job_id: str) -> None:
        """Start the count of denied slots again: one was got."""
        self._client.hdel(_hold_key(job_id), "throttles", "deniedBy")

    def count_check(self, job_id: str, *, token: str, fault: bool) -> Hold:
        """Count one round of checks, a fault in a row or the end of that row.

        Once for each `token`; a repeat replaces what the same pop had said. It does not record a hold.
        """
        arguments: list[str | int] = [token, int(fault), _COUNTER_MS]
        return _hold_of(self._check(keys=[_hold_key(job_id), HELD], args=arguments))

    def claim(
        self, job_id: str, identity: str, *, now_ms: int, until_ms: int, displacing: str | None = None
    ) -> str:
        """Claim the target until then, and answer which job holds it now.

        A claim of `displacing` is taken over, one of anybody else is left.
        """
        arguments: list[str | int] = [job_id, lifetime_ms(now_ms, until_ms), displacing or ""]
        return _text(self._claim(keys=[_claim_key(identity)], args=arguments))

    def satisfied_by(self, identity: str) -> str | None:
        """Name the job that waited for this target and went on, for 15 minutes after it did."""
        found = cast("bytes | None", self._client.get(_marker_key(identity)))
        return None if found is None else _text(found)

    def clear(self, job_id: str, identity: str | None) -> int | None:
        """End the hold of a job that may go on: mark the target as satisfied, release hold and claim.

        Answers when it was first held; None, with no mark set, if it never was.
        """
        keys = _keys_of(job_id, identity) + ([_marker_key(identity)] if identity else [])
        since = self._clear(keys=keys, args=[job_id, _SATISFIED_MS])
        return _number(since)

    def release(self, job_id: str, identity: str | None) -> None:
        """Forget the hold of a job that waits no longer, and its claim unless another job's."""
        self._release(keys=_keys_of(job_id, identity), args=[job_id])

    def held(self) -> list[HeldJob]:
        """List the held jobs, longest held first."""
        rows = cast("list[list[Any]]", self._held(keys=[HELD], args=[_hold_key("")]))
        return sorted(map(_held_job, rows), key=lambda job: (job.since_ms, job.job_id))


def lifetime_ms(now_ms: int, until_ms: int) -> int:
    """Give the lifetime of a hold and of a claim: an hour beyond the waking, and at least five minutes."""
    return max(_SHORTEST_HOLD_MS, until_ms - now_ms + _BEYOND_WAKING_MS)


def _hold_key(job_id: str) -> str:
    return f"wait:job:{job_id}"


def _claim_key(identity: str) -> str:
    return f"wait:key:{identity}"


def _marker_key(identity: str) -> str:
    return f"wait:done:{identity}"


def _keys(waiter: Waiter) -> list[str]:
    return _keys_of(waiter.job_id, waiter.identity)


def _keys_of(job_id: str, identity: str | None) -> list[str]:
    return [_hold_key(job_id), HELD, *([_claim_key(identity)] if identity else [])]


def _recorded(waiter: Waiter, now_ms: int, until_ms: int) -> list[str | int]:
    lifetime = lifetime_ms(now_ms, until_ms)
    return [waiter.job_id, now_ms, lifetime, waiter.target, waiter.label, waiter.identity or ""]


def _hold_of(values: list[Any]) -> Hold:
    since, checks, faults, throttles = map(_number, values)
    return Hold(since_ms=since, checks=checks or 0, faults=faults or 0, throttles=throttles or 0)


def _held_job(row: list[Any]) -> HeldJob:
    job_id, since, target, label, *counts = row
    checks, faults, throttles = (_number(count) or 0 for count in counts)
    return HeldJob(
        job_id=_text(job_id),
        since_ms=_number(since) or 0,
        target=_text(target or b""),
        label=_text(label or b""),
        checks=checks,
        faults=faults,
        throttles=throttles,
    )


def _number(value: bytes | None) -> int | None:
    return int(value) if value and value.isdigit() and len(value) <= _MOST_DIGITS else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
