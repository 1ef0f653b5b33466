"""Acting on due schedules: the latest instant that has passed becomes a job, those before it are passed over.

Any number of hosts may do so at once, for one table or for several with the same schedules. What time it is,
is read once for each tick, from the clock that all share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from dispatch.instants import instant_of
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.firing import Due, Firing, Landed, Occurrence, Shot, Turn, TurnNotes
from dispatch.queue.scripts import shared
from dispatch.schedules import definition, keys
from dispatch.schedules.notes import read_acted, whole_ms
from dispatch.schedules.scripts import text_of
from dispatch.schedules.table import Table
from dispatch.schedules.turning import Coming, coming
from hosts.faults import token_of
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS

if TYPE_CHECKING:
    import redis

    from dispatch.schedules.definition import Schedule

# Read at once and per queue, and no more often than this in one tick, whatever stands there.
_MOST, _MOST_BYTES, _PAGES = 200, 4 * 1024 * 1024, 100
# A server's clock is corrected by less than this all the time.
_STEP_BACK_MS = 1000
# What has passed since the tick before; of that, what was acted on is known to have occurred.
_BETWEEN_TICKS = timedelta(seconds=2)
# What is wrong with a definition that is none, in an event.
_NO_DEFINITION = "definition"
# What is noted of its earlier instants cannot be, and was thrown away.
_NO_OCCURRED = "occurred"
_LONGEST_ID = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An instant that became a job. `skipped`: how many came to nothing since the occurrence before it."""

    queue: str
    schedule_id: str
    job_id: str
    instant_ms: int
    skipped: int


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Something that keeps a schedule, or with the id None all of a queue, from being acted on."""

    queue: str
    schedule_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Aimed:
    """A due schedule that has an instant to act on."""

    due: Due
    its: Coming
    shot: Shot


@dataclass(slots=True)
class _Turn:
    """One tick: its instant, what came of it, and how many due schedules were left as they are, by queue."""

    now_ms: int
    fired: list[Fired] = field(default_factory=list)
    unreadable: set[_Unreadable] = field(default_factory=set)
    left: dict[str, int] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return instant_of(self.now_ms)

    @contextmanager
    def apart(self, queue: str, schedule_id: str | None = None) -> Iterator[None]:
        """End the block where something cannot be read, and note it; faults of Valkey go through."""
        try:
            yield
        except VALKEY_FAULTS:
            raise
        except ResponseError as fault:
            self.unreadable.add(_Unreadable(queue, schedule_id, token_of(fault)))
        except ValueError:
            self.unreadable.add(_Unreadable(queue, schedule_id, _NO_DEFINITION))


class Ticker:
    """The schedules of the queues that a worker drains; for one thread.

    `clock_ms` tells the instant to act by. `may_fire` says of a queue whether its schedules may act now; it
    is asked only when one is due.
    """

    def __init__(
        self,
        client: redis.Redis,
        queues: Sequence[str],
        *,
        clock_ms: Callable[[], int],
        may_fire: Callable[[str], bool] = lambda _: True,
        delays: Delays = no_delay,
    ) -> None:
        self._tables = {queue: Table(client, queue) for queue in queues}
        self._clock_ms = clock_ms
        self._may_fire = may_fire
        self._firing = Firing(client, delays=delays)
        self._due = client.register_script("\n".join((shared("apart"), text_of("due"))))
        self._latest_ms = 0
        self._told: frozenset[_Unreadable] = frozenset()

    def tick(self) -> tuple[Fired, ...]:
        """Act on each schedule that is due; answer what became a job.

        One round trip when none is due, beside reading the clock. What cannot be read is said once, and keeps
        nothing else from being acted on. Raises VALKEY_FAULTS; what is due by then is so at the next tick.
        """
        queues: Sequence[str] = list(self._tables)
        turn = _Turn(self._clock_ms())
        self._notice_a_step_back(turn)
        for _ in range(_PAGES):
            if not queues:
                break
            queues = self._act_on_some(queues, turn)
        self._tell(turn.unreadable)
        return tuple(turn.fired)

    def _notice_a_step_back(self, turn: _Turn) -> None:
        """Let no schedule stand still until a clock that was ahead is there again."""
        back_ms = self._latest_ms - turn.now_ms
        if back_ms > _STEP_BACK_MS:
            log.event("schedule_clock_back", byMs=back_ms)
            for queue, table in self._tables.items():
                with turn.apart(queue):
                    table.hasten(now=turn.now - _BETWEEN_TICKS)
        self._latest_ms = turn.now_ms

    def _act_on_some(self, queues: Sequence[str], turn: _Turn) -> list[str]:
        """Act on the foremost of each queue that are due; answer the queues that had any and may."""
        found = []
        for queue, answer in zip(queues, self._read(queues, turn), strict=True):
            with turn.apart(queue):
                rows = _rows(queue, answer)
                if not rows or not self._may_fire(queue):
                    continue
                turn.left[queue] = turn.left.get(queue, 0) + self._act_on(rows, turn)
                found.append(queue)
        return found

    def _read(self, queues: Sequence[str], turn: _Turn) -> Sequence[Any]:
        names = (keys.upcoming, keys.definitions, keys.fired)
        answer: Sequence[Any] = self._due(
            keys=[name(queue) for queue in queues for name in names],
            args=[
                *(turn.now_ms, _MOST, _MOST_BYTES, definition.MAX_BYTES),
                *(turn.left.get(queue, 0) for queue in queues),
            ],
        )
        return answer

    def _act_on(self, rows: Sequence[tuple[Due, bytes]], turn: _Turn) -> int:
        """Act on these schedules; answer how many of them are due still."""
        aimed, gone_on = [], 0
        for due, note in rows:
            with turn.apart(due.queue, _sayable(due.schedule_id)):
                schedule = _schedule_of(due)
                its = coming(schedule, due_ms=whole_ms(due.score), before=read_acted(note), now=turn.now)
                if its.instant_ms is None:
                    gone_on += self._tables[due.queue].go_on(due.schedule_id, due.definition, its.next_ms)
                else:
                    aimed.append(self._aim(due, schedule, its))
        landed = zip(aimed, self._firing.fire([one.shot for one in aimed]), strict=True)
        # What a full server refused ends the tick, so first what it has taken.
        for one, found in sorted(landed, key=lambda pair: isinstance(pair[1], Exception)):
            with turn.apart(one.due.queue, _sayable(one.due.schedule_id)):
                gone_on += self._fired(one, found, turn)
        return len(rows) - gone_on

    def _aim(self, due: Due, schedule: Schedule, its: Coming) -> _Aimed:
        notes = TurnNotes(enqueued=its.enqueued.text(), exists=its.exists.text(), waiting=its.waiting.text())
        occurrence = _occurrence(due, schedule, its)
        return _Aimed(due, its, self._firing.aim(due, occurrence, notes, now_ms=its.now_ms))

    def _fired(self, one: _Aimed, found: Landed | Exception, turn: _Turn) -> bool:
        """Hear what became of one; False when it is due still."""
        if isinstance(found, Exception):
            raise found
        due, its = one.due, one.its
        if not found.is_sound:
            turn.unreadable.add(_Unreadable(due.queue, _sayable(due.schedule_id), _NO_OCCURRED))
        if found.turn is Turn.ENQUEUED:
            log.event(
                "occurrence_enqueued",
                jobId=its.job_id,
                schedulerId=due.schedule_id,
                skipped=its.skipped or None,
                lateMs=its.late_ms,
            )
            turn.fired.append(
                Fired(
                    queue=due.queue,
                    schedule_id=due.schedule_id,
                    job_id=its.job_id,
                    instant_ms=its.enqueued.instant_ms,
                    skipped=its.skipped,
                )
            )
        elif found.turn is Turn.WAITING and its.before and not its.before.waited:
            log.event("schedule_occurrence_skipped", schedulerId=due.schedule_id, jobId=its.before.job_id)
        return found.turn is not Turn.CHANGED

    def _tell(self, unreadable: Iterable[_Unreadable]) -> None:
        """Say what has become unreadable since the last tick."""
        found = frozenset(unreadable)
        for one in sorted(found - self._told, key=repr):
            log.event("schedule_unreadable", queue=one.queue, schedulerId=one.schedule_id, reason=one.reason)
        self._told = found


def _rows(queue: str, answer: Any) -> list[tuple[Due, bytes]]:
    if isinstance(answer, Exception):
        raise answer
    return [
        (
            Due(queue=queue, schedule_id=one.decode("utf-8", "replace"), score=score, definition=text),
            note,
        )
        for one, score, text, note in zip(*(answer[at::4] for at in range(4)), strict=True)
    ]


def _schedule_of(due: Due) -> Schedule:
    schedule = definition.read(due.definition)
    if schedule is None or schedule.id != due.schedule_id:
        raise ValueError("not the definition of this schedule")
    return schedule


def _occurrence(due: Due, schedule: Schedule, its: Coming) -> Occurrence:
    instant_ms = its.enqueued.instant_ms
    due_ms = whole_ms(due.score)
    return Occurrence(
        job_id=its.job_id,
        job=schedule.job(),
        instant_ms=instant_ms,
        since_ms=instant_ms if due_ms is None else due_ms,
        follows=its.passed == 1,
        next_ms=its.next_ms,
        before=its.before.job_id if its.before else None,
    )


def _sayable(schedule_id: str) -> str | None:
    """Let an id of what may be anything into an event only if it is as short and plain as ours."""
    plain = schedule_id.isascii() and schedule_id.isprintable() and len(schedule_id) <= _LONGEST_ID
    return schedule_id if plain else None
