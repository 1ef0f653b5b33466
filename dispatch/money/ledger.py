"""The ledger: no container starts before a reservation here said so (contracts 4).

A refusal takes nothing, a repeat is not charged twice, a refund happens at most once. A fault of Valkey
(away, full, read-only) surfaces as its exception and means "not granted": the caller repeats the same call
or gives the job back, and starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import redis

from dispatch.instants import instant_of
from dispatch.money.windows import (
    COUNTER_TTL,
    GLOBAL_PREFIX,
    GRANT_TTL,
    Caps,
    Window,
    counter_key,
    grant_key,
    hold_above,
    scope_prefix,
)
from runs.outcome import Reason

_LUA = Path(__file__).with_name("lua")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCaps:
    """The caps of one scope; `scope_hash` is the 16 hex digits that stand for it."""

    scope_hash: str
    caps: Caps


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveRequest:
    """One attempt of one job that wants a container.

    `job_id` is the natural id, `token` that of the pop that holds the job, `first_queued_ms` tells the job
    from a later one of the same id. `now_ms` is Valkey's TIME, read right before; it chooses the counters.
    `hold_percent` concerns the global windows only. `job_key` is the hash of the job in Valkey: with it the
    ledger grants only while the token still has the job in hand, and what the attempt was granted on another
    day is paid back and asked for as of now: it was never begun. With `now_within_ms`, `now_ms` may be some
    earlier reading: the ledger says when it is further off than that, or of another day. Raises ValueError
    without a global cap a day: a worker without one would spend without end.
    """

    job_id: str
    attempt: int
    token: str
    first_queued_ms: int
    now_ms: int
    caps: Caps
    hold_percent: int | None = None
    scope: ScopeCaps | None = None
    job_key: str | bytes | None = None
    now_within_ms: int | None = None

    def __post_init__(self) -> None:
        if self.caps.day is None:
            raise ValueError("a reservation needs a global cap a day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The attempt may have one container, counted in `counters` as of `instant_ms`.

    `token` is the one that may give it back; it is the asker's own unless a later pop of the job took the
    grant over. `repeated` says that an earlier call had taken it.
    """

    token: str
    instant_ms: int
    counters: tuple[str, ...]
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Nothing was taken, and nothing is held: `window` has counted `reserved` starts of `cap`.

    `reason` is over-budget or soft-hold of the global windows, or scope-cap of the scope's.
    """

    reason: Reason
    window: Window
    reserved: int
    cap: int


@dataclass(frozen=True, slots=True)
class NotHeld:
    """Nothing was taken: the token does not have the job in hand (any more)."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Nothing was taken: `now_ms` of the request is not Valkey's time any more, this is."""

    now_ms: int


class Ledger:
    """Reservations and their refunds, each one script, so that every host of the fleet sees them whole."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._reserve = client.register_script(_text_of("reserve"))
        self._refund = client.register_script(_text_of("refund"))

    def reserve(self, request: ReserveRequest) -> Granted | Blocked | NotHeld | Stale:
        """Take one start in all active windows of both ledgers, or say which window forbids it.

        NotHeld answers only a request with a `job_key`, Stale one with `now_within_ms`. Safe to repeat after
        an exception: an attempt is counted once.
        """
        grant = grant_key(request.job_id, request.attempt)
        keys: list[str | bytes] = [grant, request.job_key or grant]
        arguments: list[str | int] = [
            request.token,
            request.first_queued_ms,
            request.now_ms,
            int(GRANT_TTL.total_seconds()),
            "held" if request.job_key else "",
            "" if request.now_within_ms is None else request.now_within_ms,
        ]
        for counter, *rest in _counters_of(request):
            keys.append(counter)
            arguments += cast("list[str | int]", rest)
        answer = [_text(part) for part in cast("list[Any]", self._reserve(keys=keys, args=arguments))]
        match answer:
            case ["granted", instant, token, counters, how]:
                return Granted(
                    token=token,
                    instant_ms=int(instant),
                    counters=tuple(counters.split("\n")),
                    repeated=how == "repeated",
                )
            case ["lost"]:
                return NotHeld()
            case ["stale", now]:
                return Stale(int(now))
            case ["blocked", reason, window, reserved, cap]:
                return Blocked(
                    reason=Reason(reason), window=Window(window), reserved=int(reserved), cap=int(cap)
                )
            case _:
                raise redis.exceptions.ResponseError("the reservation script gave no known answer")

    def is_reserved(self, job_id: str, attempt: int, *, first_queued_ms: int) -> bool:
        """Tell whether the attempt's start stands in the counters: reserved and not paid back."""
        stored = cast("bytes | None", self._client.hget(grant_key(job_id, attempt), "firstQueued"))
        return stored == str(first_queued_ms).encode()

    def refund(self, job_id: str, attempt: int, *, token: str) -> bool:
        """Pay the attempt's reservation back to the counters it was taken from; True when this call did.

        False when there is none, or when another pop of the job holds it: then nothing is touched.
        """
        grant = grant_key(job_id, attempt)
        return bool(self._refund(keys=[grant, grant], args=[token, ""]))

    def refund_left(
        self, job_id: str, attempt: int, *, token: str, job_key: str | bytes, first_queued_ms: int
    ) -> bool:
        """Pay back what a killed pop of the job left, while `token` has the job in hand; True when this did.

        Who has it in hand and has not begun it knows that no earlier pop did: no container was asked for.
        """
        keys = [grant_key(job_id, attempt), job_key]
        return bool(self._refund(keys=keys, args=[token, first_queued_ms]))

    def refund_dropped(
        self, job_id: str, attempt: int, *, job_key: str | bytes, first_queued_ms: int
    ) -> bool:
        """Pay back what a killed pop left of an attempt that was taken out before it began; True if so.

        `first_queued_ms` tells it from a later job of the same id.
        """
        keys = [grant_key(job_id, attempt), job_key]
        return bool(self._refund(keys=keys, args=["", first_queued_ms]))


def _text_of(name: str) -> str:
    return "".join((_LUA / f"{part}.lua").read_text(encoding="ascii") for part in ("shared", name))


def valkey_now(client: redis.Redis) -> int:
    """Read Valkey's TIME in milliseconds: the one clock that hosts share."""
    seconds, microseconds = client.time()
    return seconds * 1000 + microseconds // 1000


def _counters_of(request: ReserveRequest) -> list[tuple[str, str, str, int, int, int]]:
    """List counter, ledger, window, cap, hold and lifetime of each active window, in the order of testing."""
    ledgers = [("global", GLOBAL_PREFIX, request.caps, request.hold_percent)]
    if request.scope is not None:
        ledgers.insert(0, ("scope", scope_prefix(request.scope.scope_hash), request.scope.caps, None))
    now = instant_of(request.now_ms)
    return [
        (
            counter_key(prefix, window, now),
            ledger,
            window.value,
            cap,
            hold_above(cap, hold_percent),
            int(COUNTER_TTL[window].total_seconds()),
        )
        for ledger, prefix, caps, hold_percent in ledgers
        for window, cap in caps.active()
    ]


def _text(part: object) -> str:
    return part.decode() if isinstance(part, bytes) else str(part)
