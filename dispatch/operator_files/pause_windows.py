"""`pause-windows.json`: when jobs of a scope do not start, and until when (Q 5.2).

A window occurs on each day that it allows, from its `from` to its `to` (on the next day where that is not
later) by the clock of its zone. `dispatch.operator_files.zones` says what that is on the nights on which the
clock changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

from dispatch.operator_files import strict_json
from dispatch.operator_files.fields import Fields
from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from dispatch.operator_files.zones import DAY, UTC_ZONE, Day, clock_time, days_about, occurrence, zone_named

EVERY_SCOPE = "*"
KEYS = frozenset({"scope", "from", "to", "allDay", "tz", "days", "dateFrom", "dateTo"})
# A pause that ends this soon is not worth putting a job off.
GRACE = timedelta(seconds=1)
# A pause is followed from the end of one window into another this often: two weeks of whole days. Where it
# goes on after that, the job wakes there and asks again.
MOST_HOPS = 16

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
# The reference takes the 31st of every month, and it is a plain limit there.
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)

_FILE = 'an object such as {"windows": [{"scope": "*", "from": "22:00", "to": "06:00"}]}'
_ROW = 'an object such as {"scope": "*", "from": "22:00", "to": "06:00"}'
_SCOPE = "a repository as its forge writes it, a folder as its jobs write it, or *"
_HOURS = "HH:MM from 00:00 to 23:59"
_ZONE = "an IANA time zone such as Europe/London, or no tz for UTC"
_DAYS = ", ".join(WEEKDAYS)


# Compared by identity, so that what was found for a window can be remembered cheaply.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PauseWindow:
    """One window: `begins` and `ends` count from the midnight of the day it begins on, `ends` up to 48 h.

    Weekdays (0: Monday) and dates (`YYYY-MM-DD`, inclusive) limit the days it begins on; None: no limit.
    """

    scope: str
    begins: timedelta
    ends: timedelta
    zone: ZoneInfo
    weekdays: frozenset[int] | None = None
    first_date: str | None = None
    last_date: str | None = None


def pause_end(windows: Sequence[PauseWindow], scope: str | None, now: datetime) -> datetime | None:
    """Give the latest end (UTC) of the windows of a job that hold at `now`; None if none does.

    `scope` is the repository or folder as the job has it, compared letter by letter; a job without one is
    never paused. ValueError for a `now` without a time zone.
    """
    return _latest_end(_of_scope(windows, scope), now)


def paused_until(windows: Sequence[PauseWindow], scope: str | None, now: datetime) -> datetime | None:
    """Give the end (UTC) of the pause that a job is in; None if it may go, or may within `GRACE`.

    Windows that touch or overlap are one pause, which is followed through at most `MOST_HOPS` windows.
    """
    if not scope:
        return None
    # Apart, since what is found for every scope serves the jobs of all.
    parts = (_of_every_scope(tuple(windows)), tuple([one for one in windows if one.scope == scope]))
    end = _latest(_latest_end(part, now) for part in parts)
    if end is None:
        return None
    for _ in range(MOST_HOPS):
        further = _latest(_end_after(part, end) for part in parts)
        if further is None:
            break
        end = further
    return end if end - now > GRACE else None


def _of_scope(windows: Sequence[PauseWindow], scope: str | None) -> tuple[PauseWindow, ...]:
    return tuple([one for one in windows if one.scope in (EVERY_SCOPE, scope)]) if scope else ()


@lru_cache(maxsize=8)
def _of_every_scope(windows: tuple[PauseWindow, ...]) -> tuple[PauseWindow, ...]:
    return tuple([one for one in windows if one.scope == EVERY_SCOPE])


# All jobs meet the same few ends.
@lru_cache(maxsize=4096)
def _end_after(windows: tuple[PauseWindow, ...], end: datetime) -> datetime | None:
    return _latest_end(windows, end)


def _latest(ends: Iterable[datetime | None]) -> datetime | None:
    return max((end for end in ends if end), default=None)


def _latest_end(windows: Iterable[PauseWindow], now: datetime) -> datetime | None:
    if now.tzinfo is None:
        raise ValueError("a pause needs an instant with a time zone")
    by_zone: dict[ZoneInfo, list[PauseWindow]] = {}
    for window in windows:
        by_zone.setdefault(window.zone, []).append(window)
    return max((end for zone, own in by_zone.items() for end in _ends(own, zone, now)), default=None)


def _ends(windows: Sequence[PauseWindow], zone: ZoneInfo, now: datetime) -> Iterator[datetime]:
    """Give the ends of windows of this zone that hold now, the latest among them."""
    wall = clock_time(now, zone)
    days, change = days_about(wall.date(), zone)
    for day in days:
        since = wall - day.midnight
        low, high = since - change, since + change
        near = [one for one in windows if one.begins <= high and low < one.ends and _occurs(one, day)]
        if near and not change:
            # The clock is steady: all of them hold, and the order of their ends is that of the clock.
            near = [max(near, key=attrgetter("ends"))]
        for one in near:
            begin, end = occurrence(day.midnight, one.begins, one.ends, zone)
            if begin <= now < end:
                yield end


def _occurs(window: PauseWindow, day: Day) -> bool:
    return (
        (window.weekdays is None or day.weekday in window.weekdays)
        and (window.first_date is None or window.first_date <= day.date)
        and (window.last_date is None or day.date <= window.last_date)
    )


def parse(content: bytes, *, name: str) -> tuple[PauseWindow, ...]:
    """Read the content of the file of this name; OperatorFileError with everything that is wrong with it."""
    document = strict_json.load(content, name=name)
    problems: list[Problem] = []
    windows = [
        _window(row, f"windows[{index}]", problems) for index, row in enumerate(_rows(document, problems))
    ]
    if problems:
        raise OperatorFileError(name, problems)
    return tuple(window for window in windows if window)


def _rows(document: Any, problems: list[Problem]) -> Sequence[Any]:
    if not isinstance(document, dict):
        problems.append(Problem("", f"holds {shown(document)}; allowed is {_FILE}"))
    elif "windows" not in document:
        problems.append(Problem("windows", 'is missing; add "windows": [], with an object for each in it'))
    elif isinstance(document["windows"], list):
        return document["windows"]
    else:
        problems.append(Problem("windows", f"is {shown(document['windows'])}; allowed is a list of objects"))
    return ()


def _window(row: Any, place: str, problems: list[Problem]) -> PauseWindow | None:
    """Read one window; None when something is wrong with its scope or its hours."""
    if not isinstance(row, dict):
        problems.append(Problem(place, f"is {shown(row)}; allowed is {_ROW}"))
        return None
    fields = Fields(row, place, problems)
    scope = fields.required("scope", _SCOPE, lambda text: text or None)
    hours = _all_day(fields) if "allDay" in row else _hours(fields)
    zone = fields.optional("tz", _ZONE, zone_named) or UTC_ZONE
    weekdays = _weekdays(fields)
    first_date, last_date = _dates(fields)
    if scope is None or hours is None:
        return None
    begins, ends = hours
    return PauseWindow(
        scope=scope,
        begins=begins,
        ends=ends,
        zone=zone,
        weekdays=weekdays,
        first_date=first_date,
        last_date=last_date,
    )


def _all_day(fields: Fields) -> tuple[timedelta, timedelta] | None:
    if fields.row["allDay"] is not True:
        fields.wrong("allDay", f"is {shown(fields.row['allDay'])}; allowed is true, or no allDay")
        return None
    for field in [field for field in ("from", "to") if field in fields.row]:
        fields.wrong(field, f"is {shown(fields.row[field])} beside allDay; a whole day has no from and to")
    return timedelta(), DAY


def _hours(fields: Fields) -> tuple[timedelta, timedelta] | None:
    begins = fields.required("from", _HOURS, _time)
    ends = fields.required("to", _HOURS, _time)
    if begins is None or ends is None:
        return None
    if begins == ends:
        found = shown(fields.row["to"])
        fields.wrong("to", f'is {found}, the same as from; allowed is another time, or "allDay": true alone')
        return None
    return begins, ends if begins < ends else ends + DAY


def _time(text: str) -> timedelta | None:
    found = _TIME.fullmatch(text)
    return timedelta(hours=int(found[1]), minutes=int(found[2])) if found else None


def _weekdays(fields: Fields) -> frozenset[int] | None:
    if "days" not in fields.row:
        return None
    listed = fields.row["days"]
    if not isinstance(listed, list) or not listed:
        fields.wrong("days", f"is {shown(listed)}; allowed is a list of {_DAYS}, or no days for every day")
        return None
    found = [fields.checked(f"days[{index}]", one, _DAYS, weekday_of) for index, one in enumerate(listed)]
    return frozenset(day for day in found if day is not None)


def weekday_of(text: str) -> int | None:
    """Read the name of a weekday (0: Monday), by its first three letters; None for what is none."""
    name = text[:3].lower()
    return WEEKDAYS.index(name) if name in WEEKDAYS else None


def _dates(fields: Fields) -> tuple[str | None, str | None]:
    first, last = (
        fields.optional(field, f"YYYY-MM-DD, or no {field}", _date) for field in ("dateFrom", "dateTo")
    )
    if first and last and last < first:
        found, other = shown(fields.row["dateTo"]), shown(fields.row["dateFrom"])
        fields.wrong("dateTo", f"is {found}, before dateFrom {other}; allowed is that day or a later one")
    return first, last


def _date(text: str) -> str | None:
    return text if _DATE.fullmatch(text) else None
