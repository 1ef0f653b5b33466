"""What the address of the insights page asks for: a span, what to count by, and by what to order.

Anything that it does not understand is as if it were not there, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import TypeVar

from runs.rollup_figures import Dimension, Order
from runs.rollup_periods import floor_hour, hours_kept_from

T = TypeVar("T", bound=StrEnum)

_DAY = timedelta(days=1)
#: The longest span that is shown.
MOST_DAYS = 400
#: Up to here hours are drawn, as long as they are kept.
HOURLY = 2 * _DAY
#: From here on weeks are drawn instead of days.
WEEKLY = timedelta(days=120)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Span(StrEnum):
    """What one can choose instead of two dates."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    QUARTER = "90d"
    YEAR = "400d"


class By(StrEnum):
    """What one can count by."""

    FLOW = "flow"
    MODEL = "model"
    TRIGGER = "trigger"
    SCOPE = "scope"
    HOST = "host"
    KIND = "kind"
    END = "end"

    @property
    def dimension(self) -> Dimension:
        """Name it as the rollups do."""
        return Dimension(self.value)


_DAYS = {Span.WEEK: 7, Span.MONTH: 30, Span.QUARTER: 90, Span.YEAR: MOST_DAYS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question. Times are aware, in UTC, and begin hours.

    `span` is None where dates were given; `is_hourly`: single hours are drawn.
    """

    span: Span | None
    since: datetime
    until: datetime
    by: By
    order: Order
    is_hourly: bool
    problems: tuple[str, ...] = ()

    @property
    def is_weekly(self) -> bool:
        """Whether weeks are drawn."""
        return self.until - self.since > WEEKLY

    @property
    def before(self) -> tuple[datetime, datetime]:
        """Give the span of the same length right before."""
        return self.since - (self.until - self.since), self.since

    @property
    def last_day(self) -> date:
        """Give the last day of the span."""
        return (self.until - timedelta(microseconds=1)).date()

    @property
    def parameters(self) -> dict[str, str]:
        """Write the question as the parameters of an address."""
        asked = {"by": self.by.value, "order": self.order.value}
        if self.span is not None:
            return {"span": self.span.value, **asked}
        return {"from": self.since.date().isoformat(), "to": self.last_day.isoformat(), **asked}


def read(given: Mapping[str, str], now: datetime) -> Asked:
    """Read an address' parameters; `now` is aware, in UTC."""
    problems: list[str] = []
    dates = _dates(given, now, problems)
    span = None if dates else _choice(Span, given, "span", Span.MONTH, problems)
    since, until = dates or _span(span or Span.MONTH, now)
    return Asked(
        span=span,
        since=since,
        until=until,
        by=_choice(By, given, "by", By.FLOW, problems),
        order=_choice(Order, given, "order", Order.RUNS, problems),
        is_hourly=until - since <= HOURLY and floor_hour(since) >= hours_kept_from(now),
        problems=tuple(problems),
    )


def _span(span: Span, now: datetime) -> tuple[datetime, datetime]:
    """Give the span up to the end of this hour; of days it begins one."""
    until = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if span is Span.DAY:
        return until - _DAY, until
    return _midnight(now.date()) - (_DAYS[span] - 1) * _DAY, until


def _dates(given: Mapping[str, str], now: datetime, problems: list[str]) -> tuple[datetime, datetime] | None:
    """Read the two dates, both included; None unless one is given. A missing one is the nearest possible."""
    read = {name: _date(given, name, problems) for name in ("from", "to")}
    if not any(read.values()):
        return None
    last = min(read["to"] or now.date(), now.date())
    first = read["from"] or last
    if first > last:
        problems.append("The span ends before it begins, or lies in the future: shown is its last day.")
        first = last
    oldest = last - (MOST_DAYS - 1) * _DAY
    if first < oldest:
        problems.append(f"The span is longer than {MOST_DAYS} days: shown are its last {MOST_DAYS}.")
        first = oldest
    return _midnight(first), min(_midnight(last) + _DAY, _span(Span.DAY, now)[1])


def _date(given: Mapping[str, str], name: str, problems: list[str]) -> date | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        found = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        found = None
    if found is None or not date(1971, 1, 1) <= found < date(9999, 1, 1):
        problems.append(f"“{name}” is no date and was left out; write it as 2026-11-30.")
        return None
    return found


def _choice(kind: type[T], given: Mapping[str, str], name: str, usual: T, problems: list[str]) -> T:
    text = given.get(name, "")
    if not text:
        return usual
    try:
        return kind(text)
    except ValueError:
        problems.append(f"“{name}” may be {', '.join(kind)}; it was left out.")
        return usual


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
