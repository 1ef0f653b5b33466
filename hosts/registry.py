"""A host's own row of the registry: it carries no authority, and nobody else writes it (Q 7.1, contracts 8).

Instants come from Valkey's clock, so that a host whose own clock is wrong is neither young nor dead. Each
call is one command, bounded by the client's timeout.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis.exceptions import RedisError, ResponseError

from hosts import content, keys, switches
from hosts.facts import Fact, Facts
from hosts.faults import token_of
from hosts.names import host_queue
from hosts.rivals import Rivals
from hosts.rows import GONE_MS
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.errors import OperationalError

_LUA = Path(__file__).parent / "lua"
_BEAT = switches.HOLDS + (_LUA / "beat.lua").read_text()
_CLOSE = (_LUA / "close_row.lua").read_text()
_KNOWN_MS = timedelta(days=30) // timedelta(milliseconds=1)
# A few at random with every beat of every host: each is looked at in time, at no cost that could be felt.
_KNOWN_LOOKED_AT = 3
# A beat under way ends with the client's timeout of 2 s.
DRAIN_SECONDS = 2.5


class _Beat(NamedTuple):
    started_at_ms: int
    other_host_id: bytes
    other_age_ms: int
    at_ms: int
    other_boot: bytes


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Registry:
    """The row of this boot; safe to call from any thread.

    `facts` are what the host says of itself by the names of Q 7.1 and contracts 8; a callable is asked at
    each beat and says a blank when it raises. What every row has (name, ids, instants, `routes`, `draining`)
    is added here.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        name: str,
        host_id: str,
        boot: str,
        queues: Sequence[str],
        facts: Mapping[str, Fact],
        ttl_ms: int = GONE_MS,
        wall_clock_ms: Callable[[], int] = _wall_clock_ms,
    ) -> None:
        self._client = client
        self._identity = {"name": name, "hostId": host_id, "boot": boot}
        self._routes = host_queue(name) in queues
        self._queues = tuple(queues)
        self._facts = Facts(facts)
        self._keys = (
            *(keys.host_row(name), keys.HOSTS_LIVE, keys.HOSTS_KNOWN),
            *(keys.QUEUES_KNOWN, keys.drain(name)),
        )
        self._ttl_ms = ttl_ms
        self._wall_clock_ms = wall_clock_ms
        self._up_since = time.monotonic()
        self._started_at_ms: int | None = None
        self._beat_at_ms: int | None = None
        # Three beats: a copy beats as often as we do.
        self._rivals = Rivals(lasting_ms=ttl_ms // 2)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._is_reachable = True

    @property
    def is_contested(self) -> bool:
        """Whether another machine has our name, or a copy of our state directory, as our beats met it.

        Whoever takes jobs then takes those of somebody else. It ends when that machine beats no more: at once
        where it leaves, else when its row has expired, or half that time after the last beat of a copy.
        """
        return self._rivals.is_contested

    @property
    def shares_host_id(self) -> bool:
        """Whether it is a copy: what Valkey has by our host-id is then not ours alone."""
        return bool(self._rivals.boot)

    def register(self) -> None:
        """Beat for the first time, and make the queues known.

        `OperationalError` when another host beats under our name. A server that is away is raised as redis-py
        has it (`VALKEY_FAULTS`), to be asked again; any other refusal is logged, and the boot goes on.
        """
        with self._lock:
            try:
                beat = self._beat(booting=True)
            except VALKEY_FAULTS:
                raise
            except ResponseError as fault:
                self._note_reach(token_of(fault))
                return
        if beat is None:
            return
        if beat.other_host_id:
            raise OperationalError(self._name_is_taken(beat))
        self._note_reach(None)

    def publish(self) -> None:
        """Beat: write the row anew, every callable of `facts` asked again. Never raises.

        A row that another host has written freshly under our name is left alone.
        """
        with self._lock:
            try:
                beat = self._beat(booting=False)
            except RedisError as fault:
                self._note_reach(token_of(fault))
                return
            if beat is None:
                return
            self._note_reach(None)
            self._rivals.met(host_id=beat.other_host_id, boot=beat.other_boot, now_ms=beat.at_ms)
            if self._closed.is_set():
                # So slow that `close` did not wait for it.
                self._leave()

    def close(self) -> None:
        """Leave the registry for good; may be repeated, never raises. A beat under way is waited for."""
        self._closed.set()
        drained = self._lock.acquire(timeout=DRAIN_SECONDS)
        try:
            self._leave()
        finally:
            if drained:
                self._lock.release()

    def _beat(self, *, booting: bool) -> _Beat | None:
        """Send one beat; None when the registry was closed meanwhile, for a row must not come back then."""
        row = {**self._facts.texts(), **self._identity, "routes": content.text_of(self._routes)}
        row["clockAt"] = str(self._wall_clock_ms())
        if self._closed.is_set():
            return None
        up_ms = int((time.monotonic() - self._up_since) * 1000)
        args: list[str | bytes | int] = [
            *self._identity.values(),
            *(self._ttl_ms, int(booting)),
            str(self._started_at_ms or ""),
            *(up_ms, _KNOWN_MS, _KNOWN_LOOKED_AT),
            *(keys.pending_records(""), keys.containers("")),
            *(str(self._beat_at_ms or ""), self._rivals.boot),
            len(self._queues),
            *self._queues,
            *(part.encode("utf-8", "replace") for pair in row.items() for part in pair),
        ]
        # EVAL and not its hash: one command, so that the client's timeout bounds the whole beat.
        answer: Any = self._client.eval(_BEAT, len(self._keys), *self._keys, *args)
        beat = _Beat(*answer)
        self._started_at_ms, self._beat_at_ms = beat.started_at_ms, beat.at_ms
        return beat

    def _leave(self) -> None:
        try:
            self._client.eval(_CLOSE, 2, *self._keys[:2], *self._identity.values())
        except RedisError as fault:
            self._note_reach(token_of(fault))

    def _note_reach(self, fault: str | None) -> None:
        was_reachable, self._is_reachable = self._is_reachable, fault is None
        if was_reachable and fault is not None:
            log.event("host_registry_unreachable", reason=fault)
        elif not was_reachable and fault is None:
            log.event("host_registry_restored")

    def _name_is_taken(self, beat: _Beat) -> str:
        return (
            f"Another machine's worker goes by the name {self._identity['name']} "
            f"(host-id {beat.other_host_id.decode()}, "
            f"last beat {beat.other_age_ms // 1000} s ago): two machines must not share a name. "
            "Give one of them another PI_WORKER_NAME. If that worker is gone for good, its name is free "
            f"{self._ttl_ms // 1000} s after its last beat."
        )
