"""Any page of the jobs of many queues: how many stand where, and the ids at some places, in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from redis.exceptions import ResponseError

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.entries import beats_of
from dispatch.queue.scripts import Scripts
from dispatch.queue.waiters import WaitReason
from hosts.faults import token_of

if TYPE_CHECKING:
    import redis


class Standing(StrEnum):
    """The sections of a queue, in the order in which people want to see them."""

    RUNNING = "running"
    WAITING = "waiting"
    DEFERRED = "deferred"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Found:
    """The id of a job as it stands in Valkey; `place` counts from 1 in line, None elsewhere."""

    queue: str
    raw_id: bytes
    place: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What was asked for at `now_ms` of Valkey's clock.

    `totals`: per queue how many stand where, and `beats` (boot to last beat, ms) of who takes from it.
    `unreadable`: queues with a key of another type, with the token. `matching` jobs stand in the section; too
    few are counted when `is_cut`, as there were too many to look at. `found`: those of them at the places.
    """

    now_ms: int
    totals: Mapping[str, Mapping[Standing, int]] = field(default_factory=dict)
    beats: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    matching: int = 0
    is_cut: bool = False
    found: tuple[Found, ...] = ()

    def total(self, standing: Standing) -> int:
        """Add up how many jobs of all the queues stand so."""
        return sum(counts[standing] for counts in self.totals.values())


def select(
    client: redis.Redis,
    queues: Sequence[str],
    standing: Standing,
    *,
    beginning: str = "",
    offset: int = 0,
    limit: int = 0,
) -> Selection:
    """Select jobs of these queues, one queue after the other, in the order of `dispatch.queue.listing`.

    Those that run stand in no order. `beginning`: what their natural ids begin with.
    """
    begins = _encoded(beginning)
    named = [keys.queue_keys(queue) for queue in queues]
    now_ms, rows, matching, is_cut, found = Scripts(client).call(
        "select",
        [
            key
            for one in named
            for key in (
                *(one.jobs, one.scheduled, one.started, one.takers),
                keys.waiters(one.name, WaitReason.WAIT),
            )
        ],
        (standing.value, keys.JOB, begins, offset, limit, *queues),
    )
    named_rows = dict(zip(queues, rows, strict=True))
    good = {queue: row for queue, row in named_rows.items() if not isinstance(row, ResponseError)}
    bad = {queue: token_of(row) for queue, row in named_rows.items() if isinstance(row, ResponseError)}
    triples = zip(found[::3], found[1::3], found[2::3], strict=True)
    return Selection(
        now_ms=now_ms,
        totals={queue: dict(zip(Standing, row[:4], strict=True)) for queue, row in good.items()},
        beats={queue: beats_of(row[4]) for queue, row in good.items()},
        unreadable=bad,
        matching=matching,
        is_cut=bool(is_cut),
        found=tuple(Found(queues[number - 1], raw_id, place or None) for number, raw_id, place in triples),
    )


def _encoded(beginning: str) -> str:
    """Write the beginning of an id as RQ's alphabet has it; what begins no id is what none begins with."""
    if not beginning:
        return ""
    try:
        return rq_id(beginning)
    except ValueError:
        return "\0"
