"""What a job is about, as far as pages may show it: the same words as its record has, before it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dispatch.ids import rq_id
from dispatch.jobs import JobData, decode, encode
from dispatch.queue import keys
from runs.recording import facts_of

if TYPE_CHECKING:
    import redis

# Of a longer one nobody gets to know what it is about: a page has many, and little time.
LONGEST_PAYLOAD = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Its kind, flow, model, and target (`local:` and the last name of its folder); None: not said."""

    kind: str | None = None
    flow: str | None = None
    model: str | None = None
    target: str | None = None

    @property
    def in_short(self) -> str:
        """The same as one line; blank where nothing is known."""
        flow = f"flow {self.flow}" if self.flow else None
        return " · ".join(filter(None, (self.target or self.kind, flow, self.model)))


NOTHING = About()


def about(job: JobData) -> About:
    """Pick it out of a job's data."""
    facts = facts_of("", encode(job)["data"])
    return About(kind=facts.kind, flow=facts.flow, model=facts.model, target=facts.target)


def read(client: redis.Redis, job_ids: Sequence[str]) -> Mapping[str, About]:
    """Read it of these (natural) ids, in two steps; those of which nothing can be told are left out."""
    hashes = {job_id: keys.job(rq_id(job_id).encode()) for job_id in job_ids}
    with client.pipeline(transaction=False) as pipeline:
        for key in hashes.values():
            pipeline.hstrlen(key, "data")
        sizes: list[Any] = pipeline.execute(raise_on_error=False)
        short = [
            job_id
            for job_id, size in zip(hashes, sizes, strict=True)
            if isinstance(size, int) and 0 < size <= LONGEST_PAYLOAD
        ]
        for job_id in short:
            pipeline.hget(hashes[job_id], "data")
        data: list[Any] = pipeline.execute(raise_on_error=False)
    jobs = {job_id: decode(one) for job_id, one in zip(short, data, strict=True) if isinstance(one, bytes)}
    return {job_id: about(job) for job_id, job in jobs.items() if isinstance(job, JobData)}
