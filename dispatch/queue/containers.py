"""Which container names a host's runs began, for `stop`.

An entry stays until the host's engine says that the container is gone, or its own deadline is long over.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.timings import VANISHED_SECONDS
from hosts.faults import token_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import redis

_PREFIX = keys.containers("")
_SCAN_PAGE = 500
# An entry nobody confirmed outlives the container's own deadline by this long.
KEPT_AFTER_DEADLINE_MS = 5 * 60 * 1000
VANISHED_MS = round(VANISHED_SECONDS * 1000)
_LATEST_MS = 10**16


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What began a container: its job, attempt and token, and when it ends itself (epoch ms).

    `deadline_ms` is None, and the others say nothing, when the entry cannot be read.
    """

    name: str
    job_id: str
    attempt: int
    token: str
    deadline_ms: int | None


def begun(client: redis.Redis, host_id: str) -> list[Begun]:
    """List every container that the host began and whose end its engine has not confirmed."""
    return _sorted(cast("dict[bytes, bytes]", client.hgetall(keys.containers(host_id))))


class ListingHosts:
    """The host-ids that have a list of containers, by every key of the server; sought in bounded steps.

    `found` is what has been seen so far, `is_whole` says that this is every list that was there at the start.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._cursor = 0
        self.found: set[str] = set()
        self.is_whole = False

    def seek(self, *, seconds: float = 2.0) -> None:
        """Go on looking for so long, unless all keys have been seen. Raises redis-py's errors."""
        ends = time.monotonic() + seconds
        while not self.is_whole:
            self._cursor, page = cast(
                "tuple[int, list[bytes]]",
                self._client.scan(self._cursor, match=f"{_PREFIX}*", count=_SCAN_PAGE),
            )
            self.found.update(key.decode("utf-8", "surrogateescape").removeprefix(_PREFIX) for key in page)
            self.is_whole = self._cursor == 0
            if time.monotonic() >= ends:
                return


def begun_everywhere(client: redis.Redis, host_ids: Iterable[str]) -> dict[str, list[Begun] | str]:
    """List the containers of these hosts as `begun` does, in one go; one that is unreadable is a token."""
    asked = list(host_ids)
    with client.pipeline(transaction=False) as pipeline:
        for host_id in asked:
            pipeline.hgetall(keys.containers(host_id).encode("utf-8", "surrogateescape"))
        found = pipeline.execute(raise_on_error=False)
    return {
        host_id: _sorted(one) if isinstance(one, dict) else token_of(one)
        for host_id, one in zip(asked, found, strict=True)
    }


def worker_names(client: redis.Redis, entries: Iterable[Begun]) -> Mapping[str, str]:
    """Find which worker began these, by their jobs: token to the worker's name, where the job still tells."""
    tokens = {one.token: one.job_id for one in entries if one.token}
    with client.pipeline(transaction=False) as pipeline:
        for job_id in tokens.values():
            pipeline.hmget(_hash_of(job_id), ["taker", "host"])
        found = pipeline.execute(raise_on_error=False)
    named = {}
    for token, values in zip(tokens, found, strict=True):
        if isinstance(values, list) and values[0] == token.encode() and values[1]:
            named[token] = values[1].decode("utf-8", "replace")
    return named


def forget(client: redis.Redis, host_id: str, names: Iterable[str]) -> None:
    """Remove containers that the host's engine says are gone."""
    gone = list(names)
    if gone:
        client.hdel(keys.containers(host_id), *gone)


def outlived(entries: Iterable[Begun], *, now_ms: int) -> list[str]:
    """Name those that must have ended themselves some time ago; `now_ms` by the clock of their host."""
    return [
        one.name
        for one in entries
        if one.deadline_ms is not None and now_ms > one.deadline_ms + KEPT_AFTER_DEADLINE_MS
    ]


def forget_vanished(client: redis.Redis, host_ids: Iterable[str], *, now_ms: int) -> int:
    """Remove what these hosts began whose own deadline is long over; how many those were.

    For hosts that have been gone for long: each container ends itself at its deadline, and nobody else will
    ever confirm that.
    """
    gone = {
        host_id: outlived(found, now_ms=now_ms)
        for host_id, found in begun_everywhere(client, host_ids).items()
        if not isinstance(found, str)
    }
    for host_id, names in gone.items():
        forget(client, host_id, names)
    return sum(map(len, gone.values()))


def _hash_of(job_id: str) -> bytes:
    try:
        return keys.job(rq_id(job_id).encode())
    except ValueError:
        # Of an entry that cannot be read, or no id of ours: the name of no job.
        return keys.job(b"")


def _sorted(entries: Mapping[bytes, bytes]) -> list[Begun]:
    return sorted((_read(name, value) for name, value in entries.items()), key=lambda one: one.name)


def _read(name: bytes, value: bytes) -> Begun:
    try:
        entry = json.loads(value)
        return Begun(
            name=name.decode(),
            job_id=_text(entry["job"]),
            attempt=_number(entry["attempt"]),
            token=_text(entry["token"]),
            deadline_ms=_number(entry["deadline"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        # Unreadable is still a container that somebody began.
        return Begun(name=name.decode("utf-8", "replace"), job_id="", attempt=0, token="", deadline_ms=None)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    # JSON may hold halves of characters, which nothing takes.
    value.encode()
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _LATEST_MS:
        raise ValueError
    return value
