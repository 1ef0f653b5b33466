"""Reading what `why`, `queue` and `run --wait` say about jobs out of Valkey."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from dispatch.console import circumstances
from dispatch.console.obstacles import QueueFacts, obstacle
from dispatch.console.queues import known_queues
from dispatch.console.standing import Facts
from dispatch.console.why import Explanation, explain
from dispatch.ids import rq_id
from dispatch.jobs import JobData
from dispatch.queue import keys, results
from dispatch.queue.apart import apart
from dispatch.queue.containers import begun
from dispatch.queue.entries import NAMES, Entry, beats_of_pairs, read_entry
from dispatch.queue.listing import Listing, read_queue, read_running
from dispatch.queue.place import Place, find
from dispatch.queue.reading import read_page
from dispatch.queue.states import State
from dispatch.queue.turns import Turn
from dispatch.queue.waiters import WaitReason
from dispatch.waits import conditions
from dispatch.waits.holds import Holds
from hosts.identity import host_of

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """One queue: its jobs, and what holds for all of them."""

    listing: Listing
    facts: QueueFacts


def why(client: redis.Redis, given: str) -> Explanation | None:
    """Explain the job of this id, natural or as RQ writes it; None when there is none."""
    place = find(client, given)
    return None if place is None else explain(_facts(client, place))


def asleep(client: redis.Redis, job_id: str, queue: str) -> Entry | None:
    """Read the job of this natural id with the cause of its sleep; None when it does not sleep."""
    raw_id = rq_id(job_id).encode()
    values = cast("list[bytes | None]", client.hmget(keys.job(raw_id), list(NAMES)))
    entry = read_entry(queue, raw_id, values)
    return entry if entry.state is State.SCHEDULED else None


def view(
    client: redis.Redis, queues: Sequence[str], *, limit: int, unreadable: MutableMapping[str, str]
) -> tuple[QueueView, ...]:
    """Read these queues, at most `limit` jobs of each section: one step a queue, a few for all.

    One with keys that cannot be read is left out and noted in `unreadable`, with the fault's token.
    """
    around = circumstances.read(client, queues)
    listings = []
    for queue in queues:
        with apart(queue, unreadable):
            listings.append(read_queue(client, queue, limit=limit))
    return tuple(
        QueueView(listing=one, facts=around.facts(one.queue, now_ms=one.now_ms, beats=one.beats))
        for one in listings
    )


def page(client: redis.Redis, queue: str, *, after: Turn | None, limit: int) -> tuple[QueueView, Turn | None]:
    """Read a page of this queue as `read_page` does, and the turn that the next one goes on from."""
    around = circumstances.read(client, (queue,))
    found = read_page(client, queue, after=after, limit=limit)
    listing = found.listing
    facts = around.facts(queue, now_ms=listing.now_ms, beats=listing.beats)
    return QueueView(listing=listing, facts=facts), found.last


def why_it_waits(client: redis.Redis, queue: str) -> str | None:
    """Say what keeps the queue's jobs from being taken; None when it is only their turn that is not yet."""
    around = circumstances.read(client, (queue,))
    takers = cast(
        "list[tuple[bytes, float]]", client.zrange(keys.queue_keys(queue).takers, 0, -1, withscores=True)
    )
    blocked = obstacle(around.facts(queue, now_ms=around.held.now_ms, beats=beats_of_pairs(takers)))
    return str(blocked) if blocked else None


def _facts(client: redis.Redis, place: Place) -> Facts:
    entry = place.entry
    around = circumstances.read(client, (entry.queue,))
    known = Facts(
        entry=entry,
        queue=around.facts(entry.queue, now_ms=place.now_ms, beats=place.beats),
        line=place.line,
        busy=place.busy,
        boot=place.boot,
        last_reason=place.last_reason,
        ran_on=place.ran_on,
    )
    match entry.state:
        case State.SCHEDULED if entry.reason == WaitReason.WAIT:
            waits_for = place.job.wait_for if isinstance(place.job, JobData) else None
            hold = Holds(client).read(entry.job_id)
            return replace(known, hold=hold, conditions=conditions.read(waits_for))
        case State.SCHEDULED if entry.reason in {WaitReason.SCOPE_BUSY, WaitReason.SCOPE_BUSY_FLEET}:
            return replace(known, holders=_holders(client, entry))
        case State.STARTED:
            return _with_container(client, known)
        case State.FINISHED | State.FAILED:
            return replace(known, ended_with=results.ending(client, entry.job_id))
        case _:
            return known


def _holders(client: redis.Redis, entry: Entry) -> tuple[Entry, ...]:
    """Find who has the job's folder or repository; who is in hand may have it only where nobody runs."""
    running: list[Entry] = []
    for queue in dict.fromkeys((*known_queues(client), entry.queue)):
        # What stands in a queue that cannot be read is told by `queue`; here it only names nobody.
        with apart(queue, {}):
            running += read_running(client, queue)
    same = [
        one
        for one in running
        if one.scope_hash == entry.scope_hash is not None and one.job_id != entry.job_id
    ]
    started = tuple(one for one in same if one.state is State.STARTED)
    return started or tuple(same)


def _with_container(client: redis.Redis, known: Facts) -> Facts:
    host_id = host_of(known.boot or "")
    if host_id is None:
        return known
    ours = (one for one in begun(client, host_id) if one.token == known.entry.token)
    container = next(ours, None)
    if container is None:
        return known
    return replace(known, container=container.name, deadline_ms=container.deadline_ms)
