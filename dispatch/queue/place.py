"""Where one job stands, and what of its queue keeps it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from dispatch.ids import natural_id, rq_id
from dispatch.jobs import JobData, Malformed
from dispatch.queue import fields, keys
from dispatch.queue.entries import NAMES, Entry, beats_of, read_entry, text
from dispatch.queue.scripts import Scripts

if TYPE_CHECKING:
    import redis

_ASKED = ("worker_name", *NAMES, *fields.NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One job at `now_ms` of Valkey's clock, and its queue.

    `beats`: boot to its last beat (ms), of all that take from the queue. `line`: how many wait in it; `busy`:
    how many run or are in hand. `boot` has the job. `last_reason` ended the attempt before this one, `ran_on`
    is the host of the last attempt that began. `job` is what it is to do.
    """

    entry: Entry
    now_ms: int
    beats: Mapping[str, int]
    line: int
    busy: int
    boot: str | None
    last_reason: str | None
    ran_on: str | None
    job: JobData | Malformed = field(repr=False)


def find(client: redis.Redis, given: str) -> Place | None:
    """Find the job of this natural id, or of this id as RQ writes it; None when there is none."""
    for raw_id in _raw_ids(given):
        origin = cast("bytes | None", client.hget(keys.job(raw_id), "origin"))
        if origin is not None:
            return _read(client, raw_id, origin.decode("utf-8", "replace"))
    return None


def _raw_ids(given: str) -> list[bytes]:
    try:
        return list(dict.fromkeys((rq_id(given).encode(), given.encode())))
    except ValueError:
        # Too long for a natural id, and maybe one in RQ's longer spelling.
        return [given.encode()] if natural_id(given) else []


def _read(client: redis.Redis, raw_id: bytes, queue: str) -> Place | None:
    names = keys.queue_keys(queue)
    answer: list[Any] = Scripts(client).call(
        "place",
        (keys.job(raw_id), names.jobs, names.started, names.takers),
        (raw_id, queue, "status", "taker", *_ASKED),
    )
    if not answer:
        return None
    now_ms, beats, position, line, busy, boot, _, _, worker_name, *values = answer
    known = fields.read(queue, raw_id, values[len(NAMES) :])
    return Place(
        entry=read_entry(queue, raw_id, values[: len(NAMES)], position=position or None),
        now_ms=now_ms,
        beats=beats_of(beats),
        line=line,
        busy=busy,
        boot=text(boot),
        last_reason=_last_reason(known["attempt_log"]),
        ran_on=_host_of(text(worker_name), queue),
        job=known["job"],
    )


def _last_reason(log: tuple[Mapping[str, Any], ...]) -> str | None:
    reason = log[-1].get("reason") if log else None
    return reason if isinstance(reason, str) else None


def _host_of(worker_name: str | None, queue: str) -> str | None:
    """Read the host out of `<host>.<boot>.<queue>`, the name that its worker has for RQ."""
    if worker_name is None or not worker_name.endswith(f".{queue}"):
        return None
    return worker_name.removesuffix(f".{queue}").rpartition(".")[0] or None
