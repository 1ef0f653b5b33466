"""Reading schedules and their occurrences out of Valkey: as many round trips for one as for thousands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dispatch.console import circumstances
from dispatch.console.schedule_facts import Installed, JobLook, TableLook
from dispatch.ids import rq_id
from dispatch.queue import keys, results
from dispatch.queue.entries import NAMES, read_entry
from dispatch.queue.states import State
from dispatch.schedules import definition
from dispatch.schedules.definition import Schedule
from dispatch.schedules.notes import whole_ms
from dispatch.schedules.table import Resident, read_tables
from dispatch.triggers.on_fields import is_id
from hosts import names
from hosts.rows import HostRow, Presence

if TYPE_CHECKING:
    import redis

_OCCURRENCES = Path(__file__).with_name("lua").joinpath("occurrences.lua").read_text(encoding="ascii")
_ASKED = ("status", "taker", "origin", *NAMES)


def tables(
    client: redis.Redis, queues: Sequence[str], hosts: Iterable[HostRow], authored: Mapping[str, Schedule]
) -> tuple[int, tuple[TableLook, ...]]:
    """Read the tables of these queues, and Valkey's time (ms), which comes first.

    `authored` are this host's own schedules by id, `hosts` those of the roster. Raises what
    redis-py raises; what stands in a table raises nothing.
    """
    around = circumstances.read(client, queues)
    found, beats = read_tables(client, queues), _beats(client, queues)
    here = {row.name: row for row in hosts if row.presence is not Presence.GONE}
    readings = _Readings(authored)
    looks = []
    for queue in queues:
        rows = found[queue]
        facts = around.facts(queue, now_ms=around.held.now_ms, beats=beats[queue])
        looks.append(
            TableLook(
                queue=facts,
                host=here.get(names.host_of_queue(queue) or ""),
                installed={} if isinstance(rows, str) else readings.of(queue, rows),
                unreadable=rows if isinstance(rows, str) else "",
            )
        )
    return around.held.now_ms, tuple(looks)


def occurrences(client: redis.Redis, job_ids: Iterable[str]) -> Mapping[str, JobLook]:
    """Read those of these jobs, by natural id, that the queue knows, at one instant; raises as `tables`."""
    wanted = list(dict.fromkeys(job_ids))
    if not wanted:
        return {}
    ids = [rq_id(job_id) for job_id in wanted]
    beginnings = keys.JOB, keys.results(b"").decode()
    # EVAL and not its hash: one round trip also where the server does not know the script yet.
    raw: Any = client.eval(_OCCURRENCES, 0, *beginnings, len(_ASKED), *_ASKED, *ids)
    # Texts of any bytes stand in it as they were written.
    found = json.loads(raw.decode("utf-8", "replace"))
    return {wanted[place - 1]: _job(ids[place - 1], values, result) for place, values, result in found}


class _Readings:
    """Definitions as values, each text read once however many queues have it."""

    def __init__(self, authored: Mapping[str, Schedule]) -> None:
        self._authored = authored
        self._known: dict[str, Schedule | None] = {}

    def of(self, queue: str, residents: Mapping[str, Resident]) -> dict[str, Installed]:
        """Read one table; ids that could not be those of a schedule are left out."""
        return {
            schedule_id: self._installed(queue, schedule_id, resident)
            for schedule_id, resident in residents.items()
            if is_id(schedule_id) and len(schedule_id) <= definition.MAX_ID_CHARACTERS
        }

    def _installed(self, queue: str, schedule_id: str, resident: Resident) -> Installed:
        torn = None if resident.definition else resident.torn
        text = torn.definition if torn else resident.definition
        if text not in self._known:
            own = self._authored.get(schedule_id)
            self._known[text] = own if own and _says(text, own) else definition.read(text)
        schedule = self._known[text]
        return Installed(
            queue=queue,
            schedule=schedule if schedule and schedule.id == schedule_id else None,
            next_ms=resident.next_ms,
            since_ms=resident.since_ms,
            acted=resident.fired,
            torn=torn,
        )


def _says(text: str, schedule: Schedule) -> bool:
    """Tell whether it is the definition of this schedule, which was judged with the file: that is cheaper."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    same = {"id": schedule.id, "pattern": schedule.pattern, "zone": schedule.zone, "run": schedule.run}
    return isinstance(found, dict) and {name: found.get(name) for name in same} == same


def _beats(client: redis.Redis, queues: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """Read who takes from each queue; a key of another type has nobody."""
    with client.pipeline(transaction=False) as pipeline:
        for queue in queues:
            pipeline.zrange(keys.queue_keys(queue).takers, 0, -1, withscores=True)
        answers = pipeline.execute(raise_on_error=False)
    return {queue: dict(_pairs(answer)) for queue, answer in zip(queues, answers, strict=True)}


def _pairs(answer: object) -> Iterator[tuple[str, int]]:
    rows = cast("list[tuple[bytes, float]]", answer) if isinstance(answer, list) else []
    for boot, score in rows:
        beat = whole_ms(score)
        if beat is not None:
            yield boot.decode("utf-8", "replace"), beat


def _job(raw_id: str, values: Sequence[str | bool], result: Sequence[str]) -> JobLook:
    status, taker, origin, *rest = (value.encode() if isinstance(value, str) else None for value in values)
    queue = origin.decode() if origin else ""
    in_line = status == State.QUEUED.encode() and not taker
    # What is none of our queues is as if it were not there: its name could be anything.
    queue = queue if names.is_queue(queue) else ""
    entry = read_entry(queue, raw_id.encode(), rest, position=1 if in_line else None)
    texts = [one.encode() for one in result]
    ended_with = results.read(dict(zip(texts[::2], texts[1::2], strict=False)))
    return JobLook(entry=entry, ended_with=ended_with if entry.state.is_over else None)
