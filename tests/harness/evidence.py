"""What is to be seen of a run: queue, money, records, rows, journals, the engine's word, the workers' logs.

Gathered once everything stands still; `tests.harness.judge` judges it. Nothing here decides.
"""

from __future__ import annotations

import fnmatch
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import redis

from dispatch.ids import rq_id
from dispatch.money.windows import GLOBAL_PREFIX
from dispatch.queue import keys
from hosts.keys import QUEUES_KNOWN
from hosts.names import SHARED_QUEUE, found_queues, union
from runs.files import stem
from runs.record import Record, camel
from runs.shape import iso
from tests.harness.engine_witness import Life
from tests.harness.ground import Span

QUEUE = SHARED_QUEUE

#: Groups of keys that telemetry and leases live in: deleting all of them on a live fleet must be safe (Q 6).
DELETABLE = ("host:*", "runs:*", "slot:*", "wait:check:*")

# Keys that may stay when no job is in the queue, with or without an end of their own.
_STANDING = (
    *("queues:known", "rq:queues", "rq:workers", "rq:workers:*", "known:hosts"),
    *(
        "rq:job:*",
        "rq:results:*",
        "rq:worker:*",
        "budget:*",
        "sched:*",
        "pi-dispatch:sched-stalls:*",
        "once:*",
    ),
    *(
        f"{place}{QUEUE}{whose}"
        for place in ("takers:", "rq:finished:", "rq:failed:")
        for whose in ("", "@*")
    ),
    "stats:put-offs",
    *("op:*", "pause:*", "drain:*", "stop:req:*", "stop:ack:*", "cancel:req:*", "cancel:ack:*"),
    *DELETABLE,
)
_INSTANTS = frozenset({"queued_at", "started_at", "ended_at"})
_FLAGS = frozenset({"budget_reserved", "final"})
_OBJECTS = frozenset({"tokens", "usage", "attempts", "session"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvidence:
    """One job of `queue`. `places` are the lists and sets of any queue that hold it, `results` its ends.

    `owned`: its hash still names a taker. `grants` are the attempts paid for. `files` and `rows` are records
    as JSON objects, `mirrored` the one that the fleet sees, `told` the (event, attempt) pairs by which the
    workers' logs said that it ended.
    """

    job_id: str
    status: str | None
    owned: bool
    places: tuple[str, ...]
    results: int
    grants: frozenset[int]
    files: tuple[Mapping[str, Any], ...]
    rows: tuple[Mapping[str, Any], ...]
    told: tuple[tuple[str, int | None], ...]
    queue: str = QUEUE
    mirrored: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything. `lives` is None where no engine took part, `left` what it still has of ours.

    `dirty` are keys that should not be there any more, `counted` the starts that the budget counted,
    `granted` the reservations kept; `hosts` is how many took part. `bounds` are the repositories by the name
    of their folder: how many containers each may have in the whole fleet (None: any number). `unmirrored` is
    how often a host said that the mirror does not take what it writes.
    """

    jobs: tuple[JobEvidence, ...]
    spans: tuple[Span, ...]
    lives: tuple[Life, ...] | None
    left: tuple[str, ...]
    dirty: tuple[str, ...]
    counted: int
    granted: int
    hosts: int
    bounds: Mapping[str, int | None] = field(default_factory=dict)
    unmirrored: int = 0


def gather_jobs(
    client: redis.Redis,
    job_ids: Sequence[str],
    state_dirs: Iterable[Path],
    events: Iterable[Mapping[str, Any]],
) -> tuple[JobEvidence, ...]:
    """Collect what there is about each of these jobs."""
    files, rows = _files(state_dirs := list(state_dirs)), _rows(state_dirs)
    told, places, grants = _told(events), _places(client), _grants(client)
    pipeline = client.pipeline(transaction=False)
    for job_id in job_ids:
        pipeline.hmget(keys.job(rq_id(job_id).encode()), ["status", "taker", "origin"])
        pipeline.xlen(keys.results(rq_id(job_id).encode()))
        pipeline.get(f"runs:rec:{stem(job_id)}")
    answers = pipeline.execute()
    return tuple(
        JobEvidence(
            job_id=job_id,
            status=status.decode() if status else None,
            owned=taker is not None,
            places=tuple(places[rq_id(job_id)]),
            results=results,
            grants=frozenset(grants[job_id]),
            files=tuple(files[job_id]),
            rows=tuple(rows[job_id]),
            told=tuple(told[job_id]),
            queue=origin.decode() if origin else QUEUE,
            mirrored=json.loads(mirrored) if mirrored else None,
        )
        for job_id, (status, taker, origin), results, mirrored in zip(
            job_ids, answers[::3], answers[1::3], answers[2::3], strict=True
        )
    )


def dirty_keys(client: redis.Redis) -> tuple[str, ...]:
    """Name what should not be there once every job has ended."""
    return tuple(
        sorted(
            key
            for raw in client.scan_iter(count=1000)
            if not any(fnmatch.fnmatch(key := raw.decode("latin-1"), known) for known in _STANDING)
            or _is_leftover(client, key)
        )
    )


def _is_leftover(client: redis.Redis, key: str) -> bool:
    """A worker's set of executions ends by itself, its members by the end of each job."""
    return key.startswith("rq:worker:") and key.endswith(":executions") and bool(client.exists(key))


def leases(client: redis.Redis) -> dict[str, str]:
    """Every lease that somebody holds of the fleet: key to value."""
    found = [key for pattern in ("slot:*", "wait:check:*") for key in client.scan_iter(pattern, count=1000)]
    return {key.decode(): (cast("bytes | None", client.get(key)) or b"").decode() for key in sorted(found)}


def counted_starts(client: redis.Redis) -> tuple[int, int]:
    """How many starts the days' counters hold, and how many reservations are kept."""
    counters = list(client.scan_iter(f"{GLOBAL_PREFIX}:[0-9]*", count=1000))
    counted = sum(int(cast("bytes", client.get(key) or b"0")) for key in counters)
    return counted, sum(1 for _ in client.scan_iter(f"{GLOBAL_PREFIX}:r:*", count=1000))


def _files(state_dirs: Iterable[Path]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for state_dir in state_dirs:
        for path in sorted((state_dir / "logs").glob("*.json")):
            record = json.loads(path.read_text())
            found[record["jobId"]].append(record)
    return found


def _rows(state_dirs: Iterable[Path]) -> dict[str, list[Mapping[str, Any]]]:
    names = [name for name in Record.__dataclass_fields__ if name != "once"]
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for state_dir in state_dirs:
        database = state_dir / "db.sqlite3"
        if not database.exists():
            continue
        connection = sqlite3.connect(database)
        try:
            # The names are the record's own.
            for row in connection.execute(f"SELECT {', '.join(names)} FROM runs_run"):  # noqa: S608
                values = {camel(name): _column(name, value) for name, value in zip(names, row, strict=True)}
                found[values["jobId"]].append(values)
        finally:
            connection.close()
    return found


def _column(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _INSTANTS:
        return iso(datetime.fromisoformat(value).replace(tzinfo=UTC))
    if name in _OBJECTS:
        return json.loads(value)
    return bool(value) if name in _FLAGS else value


def _told(events: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[str, int | None]]]:
    told: dict[str, list[tuple[str, int | None]]] = defaultdict(list)
    for event in events:
        name = event["event"]
        if name in {"job_completed", "job_failed", "over_budget"} or name.startswith("refused_"):
            told[event["jobId"]].append((name, event.get("attempt")))
    return told


def _places(client: redis.Redis) -> dict[str, list[str]]:
    queues = [keys.queue_keys(queue) for queue in _queues(client)]
    found: dict[str, list[str]] = defaultdict(list)
    for key in (*(names.jobs for names in queues), *_matching(client, f"{QUEUE}*:taken:*")):
        for raw_id in cast("list[bytes]", client.lrange(key, 0, -1)):
            found[raw_id.decode()].append(key)
    sets = [key for names in queues for key in (names.scheduled, names.finished, names.failed)]
    for key in (*sets, *_matching(client, f"waiters:{QUEUE}*")):
        for raw_id in cast("list[bytes]", client.zrange(key, 0, -1)):
            found[raw_id.decode()].append(key)
    for names in queues:
        for member in cast("list[bytes]", client.zrange(names.started, 0, -1)):
            found[member.rpartition(b":")[0].decode()].append(names.started)
    return found


def _queues(client: redis.Redis) -> tuple[str, ...]:
    return union(None, found_queues(cast("set[bytes]", client.smembers(QUEUES_KNOWN))))


def _matching(client: redis.Redis, pattern: str) -> list[str]:
    return sorted(key.decode() for key in client.scan_iter(pattern, count=1000))


def _grants(client: redis.Redis) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for key in client.scan_iter(f"{GLOBAL_PREFIX}:r:*", count=1000):
        job_id, _, attempt = key.decode().removeprefix(f"{GLOBAL_PREFIX}:r:").rpartition(":")
        found[job_id].add(int(attempt))
    return found
