"""Rerouting the waiting jobs of a host's queue: what must be known for it, and doing it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.console.hosts import named_host
from dispatch.console.instants import span
from dispatch.console.queues import read_queues
from dispatch.console.rerouted import Rerouted
from dispatch.console.rerouting import Choice, Plan, Stay, Staying, plan
from dispatch.queue import keys, moving
from dispatch.queue.entries import beats_of_pairs
from dispatch.queue.listing import read_running
from dispatch.queue.moving import Moved
from dispatch.queue.states import State
from hosts import names, roster, switches
from hosts.rows import LATE_MS, HostRow, Presence, Roster, Unreachable
from pidispatch_site.errors import ConfigurationError, OperationalError

if TYPE_CHECKING:
    import redis

SHARED = "shared"
# Jobs may come in, or back from a hand, while others are moved.
_PASSES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks for: `to` is a host's name, SHARED, or None for whoever can."""

    host: str
    to: str | None = None
    same_folders: bool = False
    is_tried: bool = False


def wished(host: str, to: str | None, *, same_folders: bool, is_tried: bool) -> Wish:
    """Make a wish of what was typed; ConfigurationError for names that cannot be meant."""
    if to is not None and named_host(to) == named_host(host):
        raise ConfigurationError(f"--to names {host} itself; give another host, or `{SHARED}`")
    return Wish(host=named_host(host), to=to, same_folders=same_folders, is_tried=is_tried)


def reroute(client: redis.Redis, wish: Wish) -> Rerouted:
    """Move what waits on the host's queue, as the wish says.

    OperationalError when the host would take the jobs meanwhile, is not known, or the other one cannot take
    them. Raises redis-py's errors; repeating is safe.
    """
    queue = names.host_queue(wish.host)
    standing = _stand(client, wish.host, queue)
    choice = _choice(wish, standing.fleet)
    moved, stays = _move_all(client, queue, choice, is_tried=wish.is_tried)
    held = _held(client, queue, wish.host, is_alive=standing.is_alive)
    return Rerouted(
        queue=queue,
        is_tried=wish.is_tried,
        moved=moved,
        stayed=(*stays, *held),
        notes=tuple(_notes(standing, moved)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """The fleet; the row of the host that is left, if there is one; and whether it lives, drained."""

    fleet: Roster
    row: HostRow | None
    is_alive: bool


def _stand(client: redis.Redis, host: str, queue: str) -> _Standing:
    """Read how the host stands, and refuse while it would take from its queue, or if nobody knows it."""
    silent_ms = _silence_of_takers(client, queue)
    drain = switches.read(client, (queue,), host=host).drain
    fleet = roster.read(client)
    if isinstance(fleet, Unreachable):
        raise OperationalError(
            f"The registry of hosts cannot be read ({fleet.reason}), so nobody knows who is alive."
            " `manage.py fleet` tells more."
        )
    row = next((row for row in fleet.hosts if row.name == host), None)
    is_alive = _lives(row, silent_ms)
    if is_alive and drain is None:
        raise OperationalError(
            f"{host} is alive and would go on taking jobs from {queue} meanwhile."
            f" Run `manage.py drain {host}` first; or stop its worker and wait {span(LATE_MS)}."
        )
    _require_known(client, host, queue)
    return _Standing(fleet=fleet, row=row, is_alive=is_alive)


def _silence_of_takers(client: redis.Redis, queue: str) -> int | None:
    """Tell how long ago (ms) any worker last spoke that takes from the queue; None: there is none."""
    with client.pipeline(transaction=True) as pipeline:
        pipeline.time()
        pipeline.zrange(keys.queue_keys(queue).takers, 0, -1, withscores=True)
        (seconds, micros), takers = pipeline.execute()
    beats = beats_of_pairs(takers).values()
    return seconds * 1000 + micros // 1000 - max(beats) if beats else None


def _lives(row: HostRow | None, silent_ms: int | None) -> bool:
    """Judge by the registry, and by the queue itself: a row may be lost while its worker goes on."""
    is_there = row is not None and row.routes and row.presence is Presence.ALIVE
    return is_there or (silent_ms is not None and silent_ms <= LATE_MS)


def _require_known(client: redis.Redis, host: str, queue: str) -> None:
    known = read_queues(client)
    if host in known.hosts or queue in known.names:
        return
    others = ", ".join(known.hosts) or "none"
    raise OperationalError(f"No host {host} is known, and {queue} was never used. Known are: {others}.")


def _choice(wish: Wish, fleet: Roster) -> Choice:
    others = tuple(row for row in fleet.live if row.name != wish.host)
    to = None
    if wish.to not in {None, SHARED}:
        to = next((row for row in others if row.name == wish.to), None)
        if to is None or not to.routes:
            fault = "is not alive" if to is None else f"has no queue of its own ({names.SHARED_QUEUE} only)"
            able = ", ".join(row.name for row in others if row.routes) or "none"
            raise OperationalError(
                f"{wish.to} {fault}. --to takes `{SHARED}`, or a live host with a queue of its own: {able}."
            )
    return Choice(
        host=wish.host,
        others=others,
        to=to,
        only_shared=wish.to == SHARED,
        same_folders=wish.same_folders,
    )


def _move_all(
    client: redis.Redis, queue: str, choice: Choice, *, is_tried: bool
) -> tuple[Mapping[str, tuple[str, ...]], tuple[Staying, ...]]:
    moved: dict[str, tuple[str, ...]] = defaultdict(tuple)
    found = Plan()
    for _ in range(_PASSES):
        waiting = {one.raw_id: one for one in moving.read_waiting(client, queue)}
        found = plan(waiting.values(), choice)
        for target, raw_ids in found.moves.items():
            gone = raw_ids if is_tried else _moved(client, raw_ids, queue, target)
            moved[target] += tuple(waiting[raw_id].job_id for raw_id in gone)
        if is_tried or not found.moves:
            break
    return {target: ids for target, ids in moved.items() if ids}, found.stays


def _moved(client: redis.Redis, raw_ids: Sequence[bytes], queue: str, target: str) -> Sequence[bytes]:
    answers = moving.move(client, raw_ids, source=queue, target=target)
    return [raw_id for raw_id, answer in answers.items() if answer is Moved.MOVED]


def _held(client: redis.Redis, queue: str, host: str, *, is_alive: bool) -> Iterator[Staying]:
    """List what a worker has: it is never moved."""
    for entry in read_running(client, queue):
        reason = Stay.STARTED if entry.state is State.STARTED else Stay.IN_HAND
        words = (_WITH_THE_LIVING if is_alive else _WITH_THE_DEAD)[reason]
        yield Staying(job_id=entry.job_id, reason=reason, why=words.format(host=entry.host or host))


_WITH_THE_LIVING: Mapping[Stay, str] = {
    Stay.IN_HAND: "{host} has it in hand",
    Stay.STARTED: "it runs on {host}",
}
_WITH_THE_DEAD: Mapping[Stay, str] = {
    Stay.IN_HAND: "{host} had it in hand; a live worker puts it back within a minute, so repeat this then",
    Stay.STARTED: "it was started on {host}; a live worker records it as stalled, never run again",
}


def _notes(standing: _Standing, moved: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for other in standing.fleet.live:
        if other.draining and other.routes and names.host_queue(other.name) in moved:
            yield f"{other.name} is drained: its jobs wait until `manage.py undrain {other.name}`."
    row = standing.row
    if row is not None and row.presence is Presence.LATE and not standing.is_alive:
        yield (
            f"{row.name} was heard of {span(row.stale_ms or 0)} ago: should it come back, it takes what is"
            " still on its queue."
        )
