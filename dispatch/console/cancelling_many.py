"""Cancelling very many jobs, one chunk after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dispatch.console.cancelling import Cancelled, cancel
from dispatch.queue.states import Standing, State

if TYPE_CHECKING:
    import redis

#: More are not cancelled in one go.
MOST = 20_000
#: Jobs by their natural ids, each with how it stood before (None: it was not known).
Targets = Mapping[str, Standing | None]
# Those that wait cost a few steps each; whoever runs is waited for, and all of a chunk at the same time.
_CHUNK, _CHUNK_RUNNING = 50, 200


def in_chunks(client: redis.Redis, targets: Targets) -> Iterator[tuple[Cancelled, ...]]:
    """Cancel them, those that run last, and answer what became of each chunk. Raises redis-py's errors."""
    running = [job_id for job_id, one in targets.items() if runs(one)]
    others = [job_id for job_id, one in targets.items() if not runs(one)]
    for ids, size in ((others, _CHUNK), (running, _CHUNK_RUNNING)):
        for start in range(0, len(ids), size):
            yield cancel(client, ids[start : start + size])


def runs(stood: Standing | None) -> bool:
    """Whether its worker has to stop it."""
    return stood is not None and stood.state is State.STARTED
