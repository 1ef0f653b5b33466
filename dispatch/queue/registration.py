"""The rows of a worker in RQ's list of workers, one per queue, so that RQ's tools show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rq import worker_registration
from rq.serializers import JSONSerializer
from rq.utils import now
from rq.worker import BaseWorker, WorkerStatus

from dispatch.queue.queues import DispatchJob, rq_queue

if TYPE_CHECKING:
    import redis

    from dispatch.queue.owner import Owner

# RQ keeps a row for its `worker_ttl` and a minute after a beat.
_LIFETIME = 90


class Registration(BaseWorker):
    """RQ's worker of one queue in name only: born, beating, dying. It takes no job and installs nothing."""

    def __init__(self, client: redis.Redis, owner: Owner, queue: str) -> None:
        super().__init__(
            [rq_queue(client, queue)],
            name=owner.worker_name(queue),
            connection=client,
            job_class=DispatchJob,
            serializer=JSONSerializer,
            worker_ttl=_LIFETIME,
        )

    def _set_connection(self, connection: Any) -> Any:
        # RQ would raise the socket timeout of the whole pool to minutes.
        return connection

    def procline(self, message: str) -> None:
        """Leave the process its name."""

    def register(self) -> None:
        """Appear in RQ's list. May be repeated after a lost answer."""
        try:
            self.register_birth()  # type: ignore[no-untyped-call]
        except ValueError:
            # The name carries our boot id: the row that is there is the one of the first try.
            self.birth_date = self.birth_date or now()
        self.beat(busy=False)
        # RQ's maintenance, which never runs here, would take the rows of killed boots out of the list.
        worker_registration.clean_worker_registry(self.queues[0])

    def beat(self, *, busy: bool) -> None:
        """Stay in RQ's list; a row that had expired is written again."""
        lifetime = _LIFETIME + 60
        with self.connection.pipeline() as pipeline:
            self.heartbeat(lifetime, pipeline=pipeline)
            self.set_state(WorkerStatus.BUSY if busy else WorkerStatus.IDLE, pipeline=pipeline)
            was_gone = pipeline.execute()[0] == 1
            if was_gone:
                pipeline.hset(self.key, mapping=self.serialize())
                worker_registration.register(self, pipeline)
                pipeline.expire(self.key, lifetime)
                pipeline.execute()

    def unregister(self) -> None:
        """Leave RQ's list. Only after all runs ended: RQ drops the index of executions with it."""
        self.register_death()  # type: ignore[no-untyped-call]
