"""What a due schedule is to do now: which of the instants that have passed counts, and when it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dispatch.ids import occurrence_id
from dispatch.instants import epoch_ms, instant_of
from dispatch.schedules.missed import GRACE
from dispatch.schedules.notes import Acted

if TYPE_CHECKING:
    from dispatch.schedules.definition import Schedule

_MS = timedelta(milliseconds=1)
_GRACE_MS = GRACE // _MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """The turn of a schedule at `now_ms`. It goes on to `next_ms`, None: its pattern has ended.

    `instant_ms` is the latest instant that has passed, one of `passed`; None when the pattern has none there.
    `before` is what is noted of the instant acted on last.
    """

    now_ms: int
    next_ms: int | None
    instant_ms: int | None
    passed: int
    job_id: str
    before: Acted | None

    @property
    def skipped(self) -> int:
        """How many instants have come to nothing since the last occurrence, if this one becomes a job."""
        return self._waited + self.passed - 1

    @property
    def late_ms(self) -> int | None:
        """How late it is; None while it could not have been missed yet."""
        late_ms = self.now_ms - (self.now_ms if self.instant_ms is None else self.instant_ms)
        return late_ms if late_ms > _GRACE_MS else None

    @property
    def enqueued(self) -> Acted:
        """The note if it becomes a job."""
        return self._acted(self.job_id, self.skipped)

    @property
    def exists(self) -> Acted:
        """The note if it was dealt with already; the occurrence before may wait here still."""
        return self._acted(self.before.job_id if self.before else self.job_id, 0)

    @property
    def waiting(self) -> Acted:
        """The note if it comes to nothing because the occurrence before waits."""
        before = self.before.job_id if self.before else self.job_id
        return self._acted(before, self._waited + self.passed, waited=True)

    @property
    def _waited(self) -> int:
        return self.before.skipped if self.before and self.before.waited else 0

    def _acted(self, job_id: str, skipped: int, *, waited: bool = False) -> Acted:
        return Acted(
            instant_ms=self.instant_ms or 0, at_ms=self.now_ms, skipped=skipped, job_id=job_id, waited=waited
        )


def coming(schedule: Schedule, *, due_ms: int | None, before: Acted | None, now: datetime) -> Coming:
    """Work out the turn of a schedule that is due since `due_ms` (None: nobody knows).

    ValueError for a pattern or zone that this host cannot read.
    """
    recurrence = schedule.recurrence()
    after = now if due_ms is None else instant_of(due_ms) - _MS
    instant, passed = recurrence.last_passed(min(after, now), now)
    following = recurrence.after(now)
    return Coming(
        now_ms=epoch_ms(now),
        next_ms=epoch_ms(following) if following else None,
        instant_ms=epoch_ms(instant) if instant else None,
        passed=passed,
        job_id=occurrence_id(schedule.id, instant=instant or now),
        before=before,
    )
