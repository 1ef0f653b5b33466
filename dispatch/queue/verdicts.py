"""Carrying out what a sweep decides about one job: back to its queue, or failed with a record, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from dispatch.queue import fields, keys, results
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import execution_id
from dispatch.queue.scripts import Scripts
from runs.outcome import Reason

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(fields.QueuedJob):
    """A job that failed with its worker: `cause` is STALLED (it had started) or WORKER_LOST.

    `host` is the worker that had it, `token` its claim (None: it was moved and never claimed); `started_ms`
    is when that one began it, by its clock; `worker_name` is RQ's name of it.
    """

    cause: Reason
    host: str | None
    token: str | None
    started_ms: int | None
    worker_name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An id that a boot has in hand or has started; `token` is empty for one moved and never claimed."""

    queue: str
    boot: str
    token: bytes
    raw_id: bytes

    @property
    def claim(self) -> str:
        """The token as text."""
        return text(self.token)


class Verdicts:
    """The two ways out for an entry whose owner is gone, in the name of the host that sweeps.

    `record` makes the bytes for a job that is lost with its worker, which go to this host's pending records.
    A silence of -1 ms asks no beat: the owner is known to be gone. Raises redis-py's errors; may be repeated.
    """

    def __init__(
        self,
        client: redis.Redis,
        host_id: str,
        *,
        record: Callable[[Lost], bytes],
        most_put_backs: int,
        delays: Delays = no_delay,
    ) -> None:
        self._client = client
        self._scripts = Scripts(client)
        self._pending = keys.pending_records(host_id)
        self._record = record
        self._most_put_backs = most_put_backs
        self._delays = delays

    def put_back(self, one: Entry, silence_ms: int) -> Entry | Lost | None:
        """Put it back to the front of its queue, or fail it after too many times.

        Answers the entry that is back, or the job that failed; None when nothing is to be done about it.
        """
        answer = self._try_put_back(one, silence_ms, record=b"")
        if answer != b"over":
            return one if answer == b"done" else None
        lost = self._lost(one, Reason.WORKER_LOST)
        return lost if self._try_put_back(one, silence_ms, record=self._record(lost)) == b"failed" else None

    def stall(self, one: Entry, silence_ms: int) -> Lost | None:
        """Fail what had started; None when somebody else decided, or its owner spoke."""
        lost = self._lost(one, Reason.STALLED)
        return lost if self._try_stall(one, lost, silence_ms) == b"done" else None

    def _try_put_back(self, one: Entry, silence_ms: int, *, record: bytes) -> bytes:
        names = keys.queue_keys(one.queue)
        now = datetime.now(UTC)
        self._delays("before put back")
        answer: bytes = self._scripts.call(
            "put_back",
            (
                *(keys.job(one.raw_id), names.taken(one.boot), names.jobs, names.takers),
                *(names.failed, keys.results(one.raw_id), self._pending),
            ),
            (
                *(one.raw_id, one.boot, one.token, silence_ms, self._most_put_backs, record),
                *(fields.rq_text(now), now.timestamp(), results.FAILED_SECONDS),
                *results.raised(Reason.WORKER_LOST.value),
            ),
        )
        self._delays("after put back")
        return answer

    def _try_stall(self, one: Entry, lost: Lost, silence_ms: int) -> bytes:
        names = keys.queue_keys(one.queue)
        now = datetime.now(UTC)
        self._delays("before stall")
        answer: bytes = self._scripts.call(
            "stall",
            (
                *(keys.job(one.raw_id), names.takers, names.failed, keys.results(one.raw_id)),
                self._pending,
                keys.execution(one.raw_id, execution_id(one.claim)),
                *(keys.executions(one.raw_id), names.started, keys.worker_executions(lost.worker_name)),
            ),
            (
                *(one.raw_id, one.boot, one.token, silence_ms, fields.rq_text(now), now.timestamp()),
                *(lost.worker_name, results.FAILED_SECONDS),
                *(*results.raised(Reason.STALLED.value), self._record(lost)),
            ),
        )
        self._delays("after stall")
        return answer

    def _lost(self, one: Entry, cause: Reason) -> Lost:
        names = (*fields.NAMES, "host", "started_at", "worker_name")
        values = cast("list[bytes | None]", self._client.hmget(keys.job(one.raw_id), list(names)))
        host, started_at, worker_name = (text(value) for value in values[-3:])
        return Lost(
            **fields.read(one.queue, one.raw_id, values[:-3]),
            cause=cause,
            host=host or None,
            token=one.claim or None,
            started_ms=fields.milliseconds(started_at),
            worker_name=worker_name,
        )


def text(value: bytes | None) -> str:
    """Decode what anybody may have written; nothing is blank."""
    return (value or b"").decode("utf-8", "backslashreplace")
