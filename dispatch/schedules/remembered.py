"""Reading one queue's table for a change, and what it remembers of occurrences beyond its schedules.

The note of what was acted on stays while its job is known, also when the schedule has left: whoever puts it
back, at once or under another name of the host, finds what still waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from dispatch.ids import rq_id
from dispatch.queue import keys as queue_keys
from dispatch.queue.states import State
from dispatch.schedules import keys
from dispatch.schedules.changes import Seen
from dispatch.schedules.notes import read_acted

if TYPE_CHECKING:
    import redis

_WAITING = frozenset(state.encode() for state in (State.QUEUED, State.SCHEDULED))


def read(client: redis.Redis, queue: str, *, with_fired: bool = False) -> Seen:
    """Read a table; raises what redis-py raises, of a key of another type too."""
    names = (keys.definitions, keys.since, keys.torn, *([keys.fired] if with_fired else []))
    with client.pipeline(transaction=False) as pipeline:
        pipeline.zrange(keys.upcoming(queue), 0, -1, withscores=True)
        for name in names:
            pipeline.hgetall(name(queue))
        found = pipeline.execute(raise_on_error=False)
    for part in found:
        if isinstance(part, Exception):
            raise part  # as the server says it: a pipeline would put its own words before that
    upcoming, definitions, since, torn, *fired = found
    return Seen(
        definitions=definitions,
        upcoming=dict(upcoming),
        since=since,
        torn=torn,
        fired=fired[0] if fired else {},
    )


def noted(client: redis.Redis, queue: str) -> set[bytes]:
    """Name all of which there is a note."""
    return set(cast("list[bytes]", client.hkeys(keys.fired(queue))))


def over(client: redis.Redis, queue: str, ids: Collection[bytes]) -> dict[bytes, bytes]:
    """Give the notes of these that nobody needs: their job is forgotten."""
    notes = _notes(client, queue, ids)
    with client.pipeline(transaction=False) as pipeline:
        for note in notes.values():
            pipeline.exists(_job(note))
        known = pipeline.execute() if notes else []
    return {one: note for (one, note), is_known in zip(notes.items(), known, strict=True) if not is_known}


def taken_along(
    client: redis.Redis, queue: str, ids: Iterable[bytes], former: Sequence[Seen]
) -> dict[bytes, bytes]:
    """Give the notes of former tables that say more of these than the queue's own do.

    That is the one whose job waits here, or else the newest.
    """
    elsewhere = {one: [table.fired[one] for table in former if one in table.fired] for one in ids}
    elsewhere = {one: notes for one, notes in elsewhere.items() if notes}
    own = _notes(client, queue, elsewhere)
    found = {}
    for one, notes in elsewhere.items():
        candidates = [own[one], *notes] if one in own else notes
        best = candidates[0]
        if len(candidates) > 1:
            best = max(candidates, key=lambda note: (_waits(client, queue, note), _at_ms(note)))
        if best != own.get(one):
            found[one] = best
    return found


def _notes(client: redis.Redis, queue: str, ids: Collection[bytes]) -> Mapping[bytes, bytes]:
    names = list(ids)
    found = client.hmget(keys.fired(queue), names) if names else []
    pairs = zip(names, cast("list[bytes | None]", found), strict=True)
    return {one: note for one, note in pairs if note is not None}


def _waits(client: redis.Redis, queue: str, note: bytes) -> bool:
    status, origin = cast("list[bytes | None]", client.hmget(_job(note), ["status", "origin"]))
    return status in _WAITING and origin == queue.encode()


def _at_ms(note: bytes) -> int:
    acted = read_acted(note)
    return acted.at_ms if acted else -1


def _job(note: bytes) -> bytes:
    """Name the hash of its job; of what is no note that of none."""
    acted = read_acted(note)
    return queue_keys.job(rq_id(acted.job_id).encode() if acted else b"")
