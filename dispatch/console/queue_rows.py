"""Jobs of a queue as rows of a page: how each stands, by the same words as `why`, and what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dispatch.console.about import LONGEST_PAYLOAD
from dispatch.console.circumstances import Circumstances
from dispatch.console.obstacles import QueueFacts
from dispatch.console.standing import Facts
from dispatch.console.why import Explanation, explain
from dispatch.ids import natural_id
from dispatch.jobs import JobData, decode
from dispatch.queue import keys
from dispatch.queue.containers import Begun, begun_everywhere
from dispatch.queue.entries import NAMES, Entry, read_entry
from dispatch.queue.owner import boot_of
from dispatch.queue.selecting import Found, Selection, Standing
from dispatch.queue.states import State
from dispatch.waits import conditions
from dispatch.waits.holds import Hold, Holds
from hosts.identity import host_of

if TYPE_CHECKING:
    import redis

_STATES: Mapping[Standing, frozenset[State]] = {
    Standing.RUNNING: frozenset({State.IN_HAND, State.STARTED}),
    Standing.WAITING: frozenset({State.QUEUED}),
    Standing.DEFERRED: frozenset({State.SCHEDULED}),
    Standing.HELD: frozenset({State.SCHEDULED}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job: why it stands as it does, and what of its data may be shown (None: not known).

    `rq_id` is its id in RQ's alphabet; None for an id that nobody of ours wrote, which no command finds.
    """

    explained: Explanation
    rq_id: str | None = None
    kind: str | None = None
    flow: str | None = None
    model: str | None = None

    @property
    def entry(self) -> Entry:
        """The job as its hash describes it."""
        return self.explained.facts.entry


@dataclass(frozen=True, slots=True)
class _Seen:
    entry: Entry
    raw_id: bytes
    payload_bytes: int


def read_rows(
    client: redis.Redis,
    selection: Selection,
    standing: Standing,
    around: Circumstances,
    *,
    start: int = 0,
    limit: int | None = None,
) -> tuple[JobRow, ...]:
    """Read the jobs that were found, in a few steps for all; one that has moved on meanwhile is left out.

    Those that run come the longest first, of which `limit` from `start` on are answered.
    """
    seen = [one for one in _seen(client, selection.found) if one.entry.state in _STATES[standing]]
    if standing is Standing.RUNNING:
        seen.sort(key=lambda one: one.entry.since_ms or selection.now_ms)
    seen = seen[start:] if limit is None else seen[start : start + limit]
    jobs = _jobs(client, seen)
    holds: Mapping[str, Hold] = {}
    if standing is Standing.HELD:
        holds = Holds(client).read_many([one.entry.job_id for one in seen])
    containers = _containers(client, seen)
    of_queues = {
        queue: around.facts(queue, now_ms=selection.now_ms, beats=selection.beats[queue])
        for queue in {one.entry.queue for one in seen}
    }
    rows = []
    for one in seen:
        job, entry = jobs.get(one.raw_id), one.entry
        container = containers.get(entry.token or "")
        facts = replace(
            _facts(entry, selection, of_queues[entry.queue]),
            hold=holds.get(entry.job_id),
            conditions=conditions.read(job.wait_for if job else None),
            container=container.name if container else None,
            deadline_ms=container.deadline_ms if container else None,
        )
        about = {"kind": job.kind.value, "flow": job.flow, "model": job.model} if job else {}
        rows.append(JobRow(explained=explain(facts), rq_id=_ours(one.raw_id), **about))
    return tuple(rows)


def _ours(raw_id: bytes) -> str | None:
    text = raw_id.decode("utf-8", "backslashreplace")
    return None if natural_id(text) is None else text


def _facts(entry: Entry, selection: Selection, queue: QueueFacts) -> Facts:
    counts = selection.totals[entry.queue]
    return Facts(
        entry=entry,
        queue=queue,
        line=counts[Standing.WAITING],
        busy=counts[Standing.RUNNING],
        # Of one that is in hand a boot is known, if not yet by its hash.
        boot=boot_of(entry.token or ""),
    )


def _seen(client: redis.Redis, found: Sequence[Found]) -> list[_Seen]:
    with client.pipeline(transaction=False) as pipeline:
        for one in found:
            pipeline.hmget(keys.job(one.raw_id), *NAMES)
            pipeline.hstrlen(keys.job(one.raw_id), "data")
        answers: list[Any] = pipeline.execute(raise_on_error=False)
    return [
        _Seen(read_entry(one.queue, one.raw_id, values, position=one.place), one.raw_id, size)
        for one, values, size in zip(found, answers[::2], answers[1::2], strict=True)
        if isinstance(values, list) and isinstance(size, int)
    ]


def _jobs(client: redis.Redis, seen: Sequence[_Seen]) -> Mapping[bytes, JobData]:
    short = [one.raw_id for one in seen if 0 < one.payload_bytes <= LONGEST_PAYLOAD]
    with client.pipeline(transaction=False) as pipeline:
        for raw_id in short:
            pipeline.hget(keys.job(raw_id), "data")
        answers: list[Any] = pipeline.execute(raise_on_error=False)
    read = {raw_id: decode(one) for raw_id, one in zip(short, answers, strict=True) if isinstance(one, bytes)}
    return {raw_id: job for raw_id, job in read.items() if isinstance(job, JobData)}


def _containers(client: redis.Redis, seen: Sequence[_Seen]) -> Mapping[str, Begun]:
    """Find the containers of those that run, by the token of the pop that began each."""
    tokens = [one.entry.token for one in seen if one.entry.state is State.STARTED and one.entry.token]
    host_ids = {host_id for token in tokens if (host_id := host_of(boot_of(token)))}
    if not host_ids:
        return {}
    begun = begun_everywhere(client, sorted(host_ids))
    return {one.token: one for many in begun.values() if not isinstance(many, str) for one in many}
