"""Reading the fleet for `fleet`, `doctor` and pages: two round trips, however many hosts there are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dispatch.console.arguments import one_line
from dispatch.console.fleet_facts import FleetFacts, Pause, QueueLook, StopAsked
from dispatch.queue import keys
from dispatch.queue.entries import number
from dispatch.queue.scripts import text_of
from dispatch.queue.waiters import WaitReason
from hosts import keys as hosts_keys
from hosts import names, roster
from hosts.rows import Roster, Unreachable

if TYPE_CHECKING:
    import redis

# The beginnings of the keys of any queue.
_KEYS = keys.queue_keys("")
_BEGINNINGS = (
    *(_KEYS.jobs, _KEYS.scheduled, _KEYS.started, _KEYS.takers, _KEYS.pause),
    hosts_keys.stop_request(""),
    hosts_keys.pending_records(""),
    hosts_keys.drain(""),
)
# In the order of the script's figures.
_PUT_OFF = (WaitReason.CAP, WaitReason.PAUSE_WINDOW, WaitReason.RETRY)


def read(client: redis.Redis) -> FleetFacts:
    """Read who is there, then what stands in every queue; raises what redis-py raises in the second.

    A registry that cannot be read is told as such: the queues are read all the same.
    """
    found = roster.read(client)
    known = found if isinstance(found, Roster) else Roster(now_ms=0)
    hosts = sorted({row.name for row in known.hosts} | {host.name for host in known.known})
    queues = [names.SHARED_QUEUE, *(names.host_queue(row.name) for row in known.hosts if row.routes)]
    asked = {"queues": queues, "hosts": hosts, "hostIds": [host.host_id for host in known.known]}
    # EVAL and not its hash: one round trip also where the server does not know the script yet.
    answer: Any = client.eval(
        text_of("overview"),
        2,
        *(hosts_keys.pause(hosts_keys.FLEET), hosts_keys.QUEUES_KNOWN),
        *(json.dumps(asked), *_BEGINNINGS),
    )
    # Texts of any bytes stand in it as they were written.
    return _facts(found, json.loads(answer.decode("utf-8", "replace")))


def _facts(found: Roster | Unreachable, answer: Mapping[str, Any]) -> FleetFacts:
    queues = {row[0]: _queue(*row) for row in answer["queues"] if names.is_queue(row[0])}
    return FleetFacts(
        now_ms=answer["now"],
        roster=found,
        queues={name: queues[name] for name in names.union(queues, None)},
        pause=_pause(answer["pause"]),
        stops=tuple(
            StopAsked(
                host=host,
                at_ms=number(at),
                by=one_line(by),
                reason=one_line(reason),
                came_with_drain=comes_with == "drain",
            )
            for host, at, by, reason, comes_with in answer["stops"]
        ),
        pending=dict(answer["pending"]),
        drained=frozenset(answer["drained"]),
    )


def _queue(
    name: str,
    waiting: int,
    in_hand: int,
    started: int,
    sleeping: int,
    sleepers: Sequence[int],
    beat: str,
    flag: Sequence[str],
) -> QueueLook:
    held, *put_off = sleepers
    return QueueLook(
        name=name,
        waiting=_figure(waiting),
        active=_figure(min(in_hand, started) if min(in_hand, started) < 0 else in_hand + started),
        deferred=_figure(sleeping if min(sleeping, held) < 0 else max(0, sleeping - held)),
        held=_figure(held),
        put_off={} if min(put_off) < 0 else dict(zip(_PUT_OFF, put_off, strict=True)),
        taker_beat_ms=_beat(beat),
        pause=_pause(flag),
    )


def _figure(count: int) -> int | None:
    return None if count < 0 else count


def _beat(score: str) -> int | None:
    try:
        return round(float(score))
    except (ValueError, OverflowError):
        return None


def _pause(flag: Sequence[str]) -> Pause | None:
    holds, *texts = flag
    if holds != "1":
        return None
    by, reason, since, until = texts
    return Pause(by=one_line(by), reason=one_line(reason), since_ms=number(since), until_ms=number(until))
