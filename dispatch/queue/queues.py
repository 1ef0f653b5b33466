"""RQ's queue and job objects, as everything here makes them: JSON only, and our fields beside RQ's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

if TYPE_CHECKING:
    import redis


class DispatchJob(Job):
    """RQ's job with our fields in its hash, so that RQ's unique enqueue stores both in one step.

    `ours` is empty on a fetched job: saving that one leaves our fields as they are.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ours: dict[str, str | int] = {}

    def to_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Write the fields of the hash."""
        return {**super().to_dict(*args, **kwargs), **self.ours}


def rq_queue(client: redis.Redis, name: str) -> Queue:
    """Make RQ's object of a queue."""
    return Queue(name, connection=client, job_class=DispatchJob, serializer=JSONSerializer)
