"""Running a job on a local folder once more: the same data under a new id, as if it were asked for now."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, cast

from dispatch.ids import local_id, natural_id, rq_id
from dispatch.jobs import JobData, Kind
from dispatch.queue import keys
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.place import Place, find
from dispatch.queue.producer import Exists, Producer
from hosts import capabilities
from hosts.names import is_queue
from pidispatch_site.errors import ConfigurationError, OperationalError
from runs import wording

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A job to be run again, on the queue where it stood last: the host that takes from it has its folder."""

    of: str
    queue: str
    job: JobData = field(repr=False)
    needs: frozenset[str] = frozenset()


def again(client: redis.Redis, given: str) -> Again:
    """Read the ended job of this id, natural or as RQ writes it.

    ConfigurationError, which says why, for one that cannot be run again.
    """
    place = find(client, given)
    if place is None:
        raise ConfigurationError(wording.data_gone(natural_id(given) or given))
    job, entry = place.job, place.entry
    if not isinstance(job, JobData):
        raise ConfigurationError(
            "Its data cannot be read: a newer version wrote them, or something else did."
        )
    if job.kind is not Kind.LOCAL or not job.folder:
        raise ConfigurationError(
            "Only a job on a local folder is run again from here: what a forge asked for is asked for there"
            " again, by a new delivery."
        )
    if not entry.state.is_over:
        raise ConfigurationError("It has not ended yet. Wait for that, or cancel it first.")
    if not is_queue(entry.queue):
        raise ConfigurationError("It stood on a queue that is none of ours.")
    return Again(of=entry.job_id, queue=entry.queue, job=job, needs=_needs(client, place))


def enqueue(client: redis.Redis, asked: Again, *, now: datetime) -> str:
    """Put the job at the back of its queue; its new id. OperationalError when that is known already."""
    job = asked.job
    job_id = local_id(job.folder or "", flow=job.flow, command=job.command, task=job.task, now=now)
    found = Producer(client).enqueue(
        asked.queue, job_id, job, keeping=LOCAL, scope_hash=job.scope_hash, needs=asked.needs
    )
    if isinstance(found, Exists):
        raise OperationalError(
            f"The same words on the same folder are one job for the rest of the minute, and {job_id} is"
            f" known already ({found.state}, on {found.queue}). Wait for the next minute."
        )
    return job_id


def _needs(client: redis.Redis, place: Place) -> frozenset[str]:
    raw_id = rq_id(place.entry.job_id).encode()
    found = cast("bytes | None", client.hget(keys.job(raw_id), "needs"))
    return capabilities.parse((found or b"").decode("utf-8", "replace"))
