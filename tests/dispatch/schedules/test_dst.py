"""Every night from 2024 to 2030 on which a clock changes: the rule of D5, judged minute by minute.

The oracle knows nothing of patterns: a row says in Python which minutes are meant, and zoneinfo what the
clock shows at each minute of UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim

from dispatch.schedules.patterns import Recurrence

ZONES = (
    *("America/New_York", "Europe/London", "Europe/Paris", "Australia/Lord_Howe", "America/Santiago"),
    *("Asia/Kathmandu", "UTC"),
)
YEARS = range(2024, 2031)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
Meant = Callable[[datetime], bool]

# What a pattern means on a clock that shows every time once.
FIXED: dict[str, Meant] = {
    "0 0 * * *": lambda wall: (wall.hour, wall.minute) == (0, 0),
    "30 0 * * *": lambda wall: (wall.hour, wall.minute) == (0, 30),
    "30 1 * * *": lambda wall: (wall.hour, wall.minute) == (1, 30),
    "45 1 * * *": lambda wall: (wall.hour, wall.minute) == (1, 45),
    "0 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 0),
    "15 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 15),
    "30 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 30),
    "0,30 1,2,3 * * *": lambda wall: wall.hour in {1, 2, 3} and wall.minute in {0, 30},
    "0-50 2 * * *": lambda wall: wall.hour == 2 and wall.minute <= 50,
    "30 23 * * *": lambda wall: (wall.hour, wall.minute) == (23, 30),
    "30 2 * * sun": lambda wall: (wall.hour, wall.minute, wall.weekday()) == (2, 30, 6),
    "0 0 29 2 *": lambda wall: (wall.month, wall.day, wall.hour, wall.minute) == (2, 29, 0, 0),
}
ELAPSED: dict[str, Meant] = {
    "*/15 * * * *": lambda wall: wall.minute % 15 == 0,
    "0 * * * *": lambda wall: wall.minute == 0,
    "30 */2 * * *": lambda wall: wall.minute == 30 and wall.hour % 2 == 0,
    "* 3 * * *": lambda wall: wall.hour == 3,
    "0-59/20 1 * * *": lambda wall: wall.hour == 1 and wall.minute % 20 == 0,
    "*/30 0 * * sun": lambda wall: (wall.hour, wall.weekday()) == (0, 6) and wall.minute % 30 == 0,
}
MEANT = FIXED | ELAPSED


def minutes(begin: datetime, end: datetime) -> Iterator[datetime]:
    while begin < end:
        yield begin
        begin += MINUTE


def clock(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def offset(instant: datetime, zone: ZoneInfo) -> timedelta | None:
    return instant.astimezone(zone).utcoffset()


@cache
def nights(name: str) -> list[tuple[datetime, datetime]]:
    """A day before each change and a day after it; in a zone without any, days of any kind."""
    zone = ZoneInfo(name)
    begin, end = (datetime(year, 1, 1, tzinfo=UTC) for year in (YEARS.start, YEARS.stop))
    days = [begin + DAY * n for n in range((end - begin) // DAY + 1)]
    hours = [
        day + HOUR * n
        for day, following in pairwise(days)
        if offset(day, zone) != offset(following, zone)
        for n in range(24)
    ]
    changes = [hour for hour in hours if offset(hour, zone) != offset(hour + HOUR, zone)]
    without = [datetime(year, month, 28, tzinfo=UTC) for year in YEARS for month in (2, 12)]
    return [(change - DAY, change + DAY) for change in changes or without]


@cache
def shown(name: str) -> list[list[tuple[datetime, datetime, list[datetime]]]]:
    """For each minute of each night: the instant, the clock, and the times that it has just left out."""
    zone = ZoneInfo(name)
    found = []
    for begin, end in nights(name):
        rows, before = [], clock(begin - MINUTE, zone)
        for instant in minutes(begin, end):
            now = clock(instant, zone)
            rows.append((instant, now, list(minutes(before + MINUTE, now))))
            before = now
        found.append(rows)
    return found


def expected(pattern: str, rows: list[tuple[datetime, datetime, list[datetime]]], zone: ZoneInfo) -> list:
    """Say by the rule at which minutes of a night a pattern fires."""
    meant = MEANT[pattern]
    if pattern in ELAPSED:
        return [instant for instant, now, _ in rows if meant(now)]
    return [
        instant
        for instant, now, left_out in rows
        if (meant(now) and not instant.astimezone(zone).fold) or (left_out and any(map(meant, left_out)))
    ]


@cache
def rules(pattern: str, name: str) -> list[list[datetime]]:
    """By night, at which minutes a pattern fires."""
    return [expected(pattern, rows, ZoneInfo(name)) for rows in shown(name)]


def fired(recurrence: Recurrence, begin: datetime, end: datetime) -> list[datetime]:
    found, last = [], begin - MINUTE
    while (last := recurrence.after(last)) is not None and last < end:
        found.append(last)
    return found


def test_the_clocks_change_as_this_test_believes():
    changing = {name for name in ZONES for begin, end in nights(name) if is_changed(name, begin, end)}

    assert changing == set(ZONES[:5])
    assert all(len(nights(name)) == 2 * len(YEARS) for name in ZONES)


def is_changed(name: str, begin: datetime, end: datetime) -> bool:
    return offset(begin, ZoneInfo(name)) != offset(end, ZoneInfo(name))


@pytest.mark.parametrize("name", ZONES)
def test_each_night_is_as_the_rule_says(name):
    for pattern in MEANT:
        recurrence = Recurrence.parse(pattern, schedule_id="a", zone=name)
        for (begin, end), rule in zip(nights(name), rules(pattern, name), strict=True):
            assert fired(recurrence, begin, end) == rule, (pattern, begin)
            passed = recurrence.last_passed(begin - MINUTE, end - MINUTE)
            assert passed == (rule[-1] if rule else None, len(rule)), (pattern, begin)


@pytest.mark.parametrize("name", ZONES)
def test_from_whatever_moment_about_the_change_one_looks(name):
    second = timedelta(seconds=1)
    for pattern in MEANT:
        recurrence = Recurrence.parse(pattern, schedule_id="a", zone=name)
        for (begin, end), rule in zip(nights(name)[:2], rules(pattern, name), strict=False):
            change = begin + DAY
            moments = [
                change + MINUTE * n for n in (-121, -90, -61, -60, -59, -31, -30, -29, -1, 0, 29, 60, 90)
            ]
            for moment in (*moments, change - second, change + second):
                coming = [instant for instant in rule if instant > moment]

                found = recurrence.after(moment)
                assert found == coming[0] if coming else found >= end, (pattern, moment)
                passed = recurrence.last_passed(moment, end - MINUTE)
                assert passed == (coming[-1] if coming else None, len(coming)), (pattern, moment)


def once(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which the clock shows a time or, where it leaves it out, a later one."""
    first = wall.replace(tzinfo=zone).astimezone(UTC)
    while clock(first, zone) != wall:
        wall += MINUTE
        first = wall.replace(tzinfo=zone).astimezone(UTC)
    return first


@pytest.mark.parametrize("name", ZONES)
def test_a_time_of_the_clock_comes_once_on_each_of_its_days(name):
    zone = ZoneInfo(name)
    begin, end = (once(datetime.combine(date(year, 1, 1), time.min), zone) for year in (2024, 2031))
    days = [date(2024, 1, 1) + DAY * n for n in range(2557)]
    for pattern, at, of_day in (
        ("0 0 * * *", time(0, 0), lambda day: True),
        ("30 1 * * *", time(1, 30), lambda day: True),
        ("30 2 * * sun", time(2, 30), lambda day: day.weekday() == 6),
        ("0 0 29 2 *", time(0, 0), lambda day: (day.month, day.day) == (2, 29)),
    ):
        recurrence = Recurrence.parse(pattern, schedule_id="a", zone=name)
        rule = [once(datetime.combine(day, at), zone) for day in days if of_day(day)]

        assert fired(recurrence, begin, end) == rule, pattern
        assert recurrence.last_passed(begin - MINUTE, end - MINUTE) == (rule[-1], len(rule)), pattern


@pytest.mark.parametrize("name", ZONES)
def test_a_quarter_of_an_hour_is_one_in_seven_years(name):
    begin, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    recurrence = Recurrence.parse("*/15 * * * *", schedule_id="a", zone=name)

    assert recurrence.last_passed(begin, end) == (end, (end - begin) // (MINUTE * 15))


@pytest.mark.parametrize("pattern", FIXED)
def test_a_field_for_the_second_changes_nothing_of_the_rule(pattern):
    for name in ZONES:
        five = Recurrence.parse(pattern, schedule_id="a", zone=name)
        six = Recurrence.parse(f"0 {pattern}", schedule_id="a", zone=name)
        for begin, end in nights(name)[:4]:
            assert fired(six, begin, end) == fired(five, begin, end)


# --- what the libraries say by themselves, in the eight hours before and after each change

TWICE, AFTER_THE_GAP, LOST = "twice in the overlap", "after the gap", "lost"
# By zone and pattern, with the number of nights. Who changes a library reads here what has become of it.
_ONE_THIRTY = [("30 1 * * *", TWICE, 7), ("45 1 * * *", TWICE, 7), ("0,30 1,2,3 * * *", TWICE, 7)]
_IN_THE_THIRD = ("0 2 * * *", "15 2 * * *", "30 2 * * *", "0,30 1,2,3 * * *", "0-50 2 * * *", "30 2 * * sun")
CRONITERS = {
    "America/New_York": {*_ONE_THIRTY, ("30 */2 * * *", AFTER_THE_GAP, 7)},
    "Europe/London": {*_ONE_THIRTY, ("0-59/20 1 * * *", AFTER_THE_GAP, 7)},
    "Europe/Paris": {*((one, TWICE, 7) for one in _IN_THE_THIRD), ("30 */2 * * *", AFTER_THE_GAP, 7)},
    "Australia/Lord_Howe": {*_ONE_THIRTY, ("0-59/20 1 * * *", LOST, 7)},
    "America/Santiago": {
        ("30 23 * * *", TWICE, 7),
        ("30 */2 * * *", AFTER_THE_GAP, 7),
        ("*/30 0 * * sun", AFTER_THE_GAP, 7),
    },
}
# Alone it takes only what begins with a star for elapsed time, and half an hour's change for a whole one's.
CRONSIMS = {
    "America/New_York": {("0-59/20 1 * * *", LOST, 7)},
    "Europe/London": {("0-59/20 1 * * *", AFTER_THE_GAP, 7), ("0-59/20 1 * * *", LOST, 7)},
    "Australia/Lord_Howe": {("0-59/20 1 * * *", LOST, 7), ("* 3 * * *", LOST, 14)},
    "America/Santiago": {("*/30 0 * * sun", AFTER_THE_GAP, 7)},
}


def by_croniter(pattern: str, begin: datetime, end: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    each = croniter(pattern, (begin - MINUTE).astimezone(zone), ret_type=datetime)
    while (instant := each.get_next().astimezone(UTC)) < end:
        yield instant


def by_cronsim(pattern: str, begin: datetime, end: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    each = CronSim(pattern, (begin - MINUTE).astimezone(zone))
    while (instant := next(each).astimezone(UTC)) < end:
        yield instant


def difference(rule: list[datetime], other: list[datetime], name: str) -> str | None:
    more, less = set(other) - set(rule), set(rule) - set(other)
    if less:
        return LOST
    if not more:
        return None if rule == other else "again"
    return TWICE if all(one.astimezone(ZoneInfo(name)).fold for one in more) else AFTER_THE_GAP


@pytest.mark.parametrize(("answers", "known"), [(by_croniter, CRONITERS), (by_cronsim, CRONSIMS)])
def test_where_a_library_answers_otherwise(answers, known):
    for name in ZONES:
        zone, found = ZoneInfo(name), Counter()
        for night, (begin, end) in enumerate(nights(name)):
            begin, end = begin + HOUR * 16, end - HOUR * 16
            for pattern in MEANT:
                rule = [instant for instant in rules(pattern, name)[night] if begin <= instant < end]
                if kind := difference(rule, list(answers(pattern, begin, end, zone)), name):
                    found[pattern, kind] += 1

        assert {(*row, number) for row, number in found.items()} == known.get(name, set()), name
