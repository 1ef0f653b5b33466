"""Finding jobs whose owner is gone: what it had in hand goes back, what it had started fails, recorded.

Owners are judged by their beats alone (contracts 3). A process judges a peer only after it has itself
watched, uninterrupted, for as long as the silence that it judges: after an outage every beat is old.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from dispatch.queue import fields, keys, results
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import execution_id
from dispatch.queue.scripts import Scripts
from dispatch.queue.timings import Timings
from runs.outcome import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import redis

    from dispatch.queue.owner import Owner

# A script asks no beat: the owner is known to be gone.
_ASK_NOBODY = -1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep decided, and nobody else: jobs back in their queue (RQ ids), and jobs that failed."""

    put_back: tuple[str, ...] = ()
    failed: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """An id that a boot has in hand or has started; `token` is empty for one moved and never claimed."""

    queue: str
    boot: str
    token: bytes
    raw_id: bytes


class Sweeper:
    """The sweep of one worker process, for one thread; `interrupted` is for any.

    `in_hand` answers the tokens that runs of this process hold on a queue. `record` makes the bytes for a job
    that is lost with its worker, which go to this host's pending records; it must not raise, whatever the job
    is. `clock` is monotonic seconds. Ticks come more often than `timings.late`.
    """

    def __init__(
        self,
        client: redis.Redis,
        owner: Owner,
        *,
        in_hand: Callable[[str], Collection[str]],
        record: Callable[[Lost], bytes],
        timings: Timings | None = None,
        clock: Callable[[], float] = time.monotonic,
        delays: Delays = no_delay,
    ) -> None:
        self._client = client
        self._owner = owner
        self._scripts = Scripts(client)
        self._in_hand = in_hand
        self._record = record
        self._timings = timings or Timings()
        self._clock = clock
        self._delays = delays
        self._watching_since = clock()
        self._looked_at_ms: int | None = None
        # Entries of our own boot that no run holds, and since when.
        self._unheld: dict[_Entry, float] = {}

    def interrupted(self) -> None:
        """Hear that Valkey was away: peers could not beat, so their silence means nothing for a while."""
        self._watching_since = self._clock()

    def at_boot(self, queues: Sequence[str]) -> Swept:
        """Take over at once what older boots of this host had.

        Only under the host's worker lock, which proves them dead, and after their containers are reaped.
        """
        put_back: list[str] = []
        failed: list[Lost] = []
        for queue in queues:
            in_hand, started = self._survey(queue, older_boots=True)
            failed += self._put_back(self._of_older_boots(in_hand), _ASK_NOBODY, put_back)
            failed += self._stall(self._of_older_boots(started), _ASK_NOBODY)
        return Swept(put_back=tuple(put_back), failed=tuple(failed))

    def tick(self, queues: Sequence[str]) -> Swept:
        """Judge the owners of these queues' jobs, and our own entries that no run of this process holds.

        The queues need not be those that this worker drains: a host that died for good has nobody else.
        """
        put_back: list[str] = []
        failed: list[Lost] = []
        # What stands on a queue that is not looked at now stays unheld since when it was.
        unheld = {one: since for one, since in self._unheld.items() if one.queue not in queues}
        for queue in queues:
            in_hand, started = self._survey(queue, older_boots=False)
            unheld |= self._find_unheld(queue, in_hand + started)
            failed += self._put_back(self._forgotten(in_hand, unheld), _ASK_NOBODY, put_back)
            failed += self._stall(self._forgotten(started, unheld), _ASK_NOBODY)
            late, gone = self._timings.late, self._timings.gone
            failed += self._put_back(self._of_peers(in_hand, late), _milliseconds(late), put_back)
            failed += self._stall(self._of_peers(started, gone), _milliseconds(gone))
        self._unheld = unheld
        return Swept(put_back=tuple(put_back), failed=tuple(failed))

    def _survey(self, queue: str, *, older_boots: bool) -> tuple[list[_Entry], list[_Entry]]:
        """Read what may have lost its owner: in hand, and started."""
        names = keys.queue_keys(queue)
        timings = self._timings
        now_ms, in_hand, started = self._scripts.call(
            "survey",
            (names.takers, names.started),
            (
                *(queue, keys.JOB, self._owner.boot, self._older_boots if older_boots else ""),
                *(_milliseconds(timings.late), _milliseconds(timings.gone), timings.sweep_most),
                _milliseconds(timings.forgotten),
            ),
        )
        self._notice_a_gap(now_ms)
        return _entries(queue, in_hand), _entries(queue, started)

    def _notice_a_gap(self, now_ms: int) -> None:
        """Count a time without looks (this process or its machine was suspended) as an interruption."""
        if self._looked_at_ms is not None and now_ms - self._looked_at_ms > _milliseconds(self._timings.late):
            self.interrupted()
        self._looked_at_ms = now_ms

    @property
    def _older_boots(self) -> str:
        return f"{self._owner.host_id}-"

    def _of_older_boots(self, entries: Iterable[_Entry]) -> Iterator[_Entry]:
        return (
            one for one in entries if one.boot != self._owner.boot and one.boot.startswith(self._older_boots)
        )

    def _of_peers(self, entries: Iterable[_Entry], silence: float) -> Iterator[_Entry]:
        if self._clock() - self._watching_since < silence:
            return iter(())
        return (one for one in entries if one.boot != self._owner.boot)

    def _find_unheld(self, queue: str, entries: Iterable[_Entry]) -> dict[_Entry, float]:
        held = self._in_hand(queue)
        now = self._clock()
        return {
            one: self._unheld.get(one, now)
            for one in entries
            if one.boot == self._owner.boot and _text(one.token) not in held
        }

    def _forgotten(self, entries: Iterable[_Entry], unheld: dict[_Entry, float]) -> Iterator[_Entry]:
        latest = self._clock() - self._timings.grace
        return (one for one in entries if one in unheld and unheld[one] <= latest)

    def _put_back(self, entries: Iterable[_Entry], silence_ms: int, put_back: list[str]) -> Iterator[Lost]:
        # Each goes to the front, so the one taken last goes first.
        for one in reversed(list(entries)):
            answer = self._try_put_back(one, silence_ms, record=b"")
            if answer == b"done":
                put_back.append(one.raw_id.decode("utf-8", "backslashreplace"))
            if answer != b"over":
                continue
            lost = self._lost(one, Reason.WORKER_LOST)
            if self._try_put_back(one, silence_ms, record=self._record(lost)) == b"failed":
                yield lost

    def _try_put_back(self, one: _Entry, silence_ms: int, *, record: bytes) -> bytes:
        names = keys.queue_keys(one.queue)
        now = datetime.now(UTC)
        self._delays("before put back")
        answer: bytes = self._scripts.call(
            "put_back",
            (
                *(keys.job(one.raw_id), names.taken(one.boot), names.jobs, names.takers),
                *(names.failed, keys.results(one.raw_id), keys.pending_records(self._owner.host_id)),
            ),
            (
                *(one.raw_id, one.boot, one.token, silence_ms, self._timings.most_put_backs, record),
                *(fields.rq_text(now), now.timestamp(), results.FAILED_SECONDS),
                *results.raised(Reason.WORKER_LOST.value),
            ),
        )
        self._delays("after put back")
        return answer

    def _stall(self, entries: Iterable[_Entry], silence_ms: int) -> Iterator[Lost]:
        for one in entries:
            lost = self._lost(one, Reason.STALLED)
            if self._try_stall(one, lost, silence_ms) == b"done":
                yield lost

    def _try_stall(self, one: _Entry, lost: Lost, silence_ms: int) -> bytes:
        names = keys.queue_keys(one.queue)
        now = datetime.now(UTC)
        self._delays("before stall")
        answer: bytes = self._scripts.call(
            "stall",
            (
                *(keys.job(one.raw_id), names.takers, names.failed, keys.results(one.raw_id)),
                keys.pending_records(self._owner.host_id),
                keys.execution(one.raw_id, execution_id(_text(one.token))),
                *(keys.executions(one.raw_id), names.started, keys.worker_executions(lost.worker_name)),
            ),
            (
                *(one.raw_id, one.boot, one.token, silence_ms, fields.rq_text(now), now.timestamp()),
                *(
                    lost.worker_name,
                    results.FAILED_SECONDS,
                    *results.raised(Reason.STALLED.value),
                    self._record(lost),
                ),
            ),
        )
        self._delays("after stall")
        return answer

    def _lost(self, one: _Entry, cause: Reason) -> Lost:
        names = (*fields.NAMES, "host", "started_at", "worker_name")
        values = cast("list[bytes | None]", self._client.hmget(keys.job(one.raw_id), list(names)))
        host, started_at, worker_name = (_text(value) for value in values[-3:])
        return Lost(
            **fields.read(one.queue, one.raw_id, values[:-3]),
            cause=cause,
            host=host or None,
            token=_text(one.token) or None,
            started_ms=fields.milliseconds(started_at),
            worker_name=worker_name,
        )


def _entries(queue: str, flat: Sequence[Any]) -> list[_Entry]:
    """Read triples of boot, token and id, one after another."""
    return [
        _Entry(queue, _text(boot), token, raw_id)
        for boot, token, raw_id in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    ]


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "backslashreplace")


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
