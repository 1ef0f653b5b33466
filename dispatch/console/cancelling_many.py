"""Cancelling very many jobs: how they stand first, then one chunk after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.console.cancelling import Cancelled, cancel
from dispatch.ids import rq_id
from dispatch.queue import hashes
from dispatch.queue.entries import NAMES, Entry, read_entry, text
from dispatch.queue.states import State

if TYPE_CHECKING:
    import redis

#: More are not cancelled in one go.
MOST = 10_000
# Those that wait cost a few steps each; whoever runs is waited for, and all of a chunk at the same time.
_CHUNK, _CHUNK_RUNNING = 50, 200


@dataclass(frozen=True, slots=True)
class Target:
    """A job that is to be cancelled; `entry` is None when there is no such job."""

    job_id: str
    entry: Entry | None

    @property
    def state(self) -> State | None:
        """How it stands; of one that is in line `in-hand` is said, too, as its place was not looked for."""
        return self.entry.state if self.entry else None


def look(client: redis.Redis, job_ids: Sequence[str]) -> tuple[Target, ...]:
    """Read how these jobs (natural ids) stand, some hundred at a time. ValueError for no id at all."""
    raw_ids = {rq_id(job_id).encode(): job_id for job_id in job_ids}
    found = {
        raw_id: read_entry(text(origin) or "", raw_id, values)
        for raw_id, (origin, *values) in hashes.read(client, list(raw_ids), ("origin", *NAMES))
        if origin
    }
    return tuple(Target(job_id, found.get(raw_id)) for raw_id, job_id in raw_ids.items())


def in_chunks(client: redis.Redis, targets: Sequence[Target]) -> Iterator[tuple[Cancelled, ...]]:
    """Cancel them, those that run last, and answer what became of each chunk. Raises redis-py's errors."""
    running = [one.job_id for one in targets if one.state is State.STARTED]
    others = [one.job_id for one in targets if one.state is not State.STARTED]
    for ids, size in ((others, _CHUNK), (running, _CHUNK_RUNNING)):
        for start in range(0, len(ids), size):
            yield cancel(client, ids[start : start + size])
