"""Jobs that run though no list names their container: what `stop` goes by where a list was lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dispatch.queue import keys, started
from dispatch.queue.containers import Begun
from dispatch.queue.owner import boot_of
from dispatch.queue.started import Started

if TYPE_CHECKING:
    import redis

_BOOT = re.compile(r"(.+)-[0-9a-f]{8}")


class Unlisted:
    """Such jobs, seen once and followed. `gaps` has the registries that could not be read, with tokens.

    One is settled when its own worker has ended it: that another took it for lost says nothing of its
    container.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self.gaps: Mapping[str, str] = {}
        # By token and id: a job without a token is one of its own.
        self._seen: dict[tuple[str, bytes], Started] = {}
        self._ended: set[tuple[str, bytes]] = set()
        self._listed: set[str] = set()
        # The tokens of all that ran at the last look, listed or not.
        self.running: frozenset[str] = frozenset()

    def read(self, queues: Sequence[str], listed: Iterable[str]) -> None:
        """Look once; `listed` are the tokens in the lists, read before. Raises VALKEY_FAULTS."""
        # An entry that cannot be read has a blank token, and so may a job: they say nothing of each other.
        self._listed.update(token for token in listed if token)
        found = started.started(self._client, queues)
        self.gaps = {
            keys.queue_keys(queue).started: rows for queue, rows in found.items() if isinstance(rows, str)
        }
        running = {
            (one.token, one.raw_id): one
            for rows in found.values()
            if not isinstance(rows, str)
            for one in rows
        }
        self.running = frozenset(token for token, _ in running)
        every = {**self._seen, **running}
        self._seen = {key: one for key, one in every.items() if one.token not in self._listed}
        doubtful = [self._seen[key] for key in self._seen.keys() - running.keys() - self._ended]
        if doubtful:
            self._ended.update((one.token, one.raw_id) for one in started.left(self._client, doubtful))

    def jobs(self) -> list[tuple[Started, bool]]:
        """List each with whether its own worker has ended it, sorted by id."""
        every = sorted(self._seen.items(), key=lambda item: item[1].raw_id)
        return [(one, key in self._ended) for key, one in every]


def host_id_of(job: Started) -> str:
    """Tell the host-id of the worker that began it; blank where its token tells none."""
    boot = _BOOT.fullmatch(boot_of(job.token))
    return boot[1] if boot else ""


def container_of(job: Started) -> Begun:
    """Put it as a container without a name."""
    return Begun(name="", job_id=job.job_id, attempt=job.attempt, token=job.token, deadline_ms=None)
