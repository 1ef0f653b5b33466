"""Taking jobs out of one queue. The pop is the claim: what comes out is ours until one of our transitions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from dispatch.queue import fields, keys
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.scripts import Scripts
from hosts import keys as hosts_keys

if TYPE_CHECKING:
    import redis

    from dispatch.queue.owner import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(fields.QueuedJob):
    """A job in our hand: `token` is its pop's, `now_ms` Valkey's time of the claim."""

    token: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class Paused:
    """A pause or this host's drain holds; what had come out is back at the front."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing waits."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The id stood for nothing (any more) and has left the queue; ask again."""

    rq_id: str


Popped = Claimed | Paused | Empty | Dropped


class Popper:
    """Takes from one queue. One thread uses it; `client` is its own, its socket timeout longer than a wait.

    A fault of Valkey is raised as it is. What a lost answer has moved is found again: by the next call, or by
    the sweep.
    """

    def __init__(self, client: redis.Redis, owner: Owner, queue: str, *, delays: Delays = no_delay) -> None:
        self._client = client
        self._owner = owner
        self._keys = keys.queue_keys(queue)
        self._scripts = Scripts(client)
        self._delays = delays
        self._taken = self._keys.taken(owner.boot)
        self._claim_keys = (
            self._keys.jobs,
            self._taken,
            self._keys.takers,
            *hosts_keys.switches(queue=queue, host=owner.host),
        )
        self._is_known = False
        self._moved: tuple[bytes, str] | None = None

    @property
    def queue(self) -> str:
        """The queue that it takes from."""
        return self._keys.name

    def pop(self) -> Popped:
        """Take the job at the front, without waiting."""
        if self._moved:
            return self._claim_moved(self._moved)
        return self._claim("pop", b"", self._owner.next_token())

    def wait(self, seconds: float) -> Popped:
        """Take the next job, waiting for one at most `seconds` (positive).

        A caller that looks for pauses asks `pop` first and waits only when it said Empty.
        """
        if self._moved:
            return self._claim_moved(self._moved)
        if not self._introduced():
            # Takers of another type: the claim says so.
            return self.pop()
        raw_id = cast("bytes | None", self._client.blmove(self._keys.jobs, self._taken, seconds))  # type: ignore[arg-type]
        if raw_id is None:
            return Empty()
        self._moved = raw_id, self._owner.next_token()
        self._delays("after move")
        return self._claim_moved(self._moved)

    def _introduced(self) -> bool:
        """Make the boot known before its first move: the sweep finds what a boot took through its beats."""
        if not self._is_known:
            answer = self._scripts.call("beat", (self._keys.takers,), (self._owner.boot, 1, 1, time.time()))
            self._is_known = len(answer) == 1
        return self._is_known

    def _claim_moved(self, moved: tuple[bytes, str]) -> Popped:
        # Kept until answered: the claim whose answer was lost is repeated with its own token.
        popped = self._claim("moved", *moved)
        self._moved = None
        return popped

    def _claim(self, how: str, raw_id: bytes, token: str) -> Popped:
        owner = self._owner
        self._delays("before pop")
        answer = self._scripts.call(
            "claim",
            self._claim_keys,
            (self._keys.name, keys.JOB, owner.boot, token, owner.host, how, raw_id, *fields.NAMES),
        )
        popped = self._read(answer, token)
        self._delays("after pop")
        return popped

    def _read(self, answer: list[Any], token: str) -> Popped:
        match answer:
            case [b"claimed", raw_id, now, *values]:
                return Claimed(**fields.read(self._keys.name, raw_id, values), token=token, now_ms=now)
            case [b"dropped", raw_id]:
                return Dropped(raw_id.decode("utf-8", "backslashreplace"))
            case [b"paused"]:
                return Paused()
            case _:
                return Empty()
