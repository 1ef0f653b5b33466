from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.schedules.patterns import Recurrence, problem_of

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "triggers.json").read_text())["cases"]
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday
ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca")


def recurrence(pattern: str, *, zone: str = "UTC", schedule_id: str = "nightly") -> Recurrence:
    return Recurrence.parse(pattern, schedule_id=schedule_id, zone=zone)


def first(pattern: str, number: int = 3, *, zone: str = "UTC", schedule_id: str = "nightly") -> list[str]:
    """The first instants of 2026, written as `01-31 03:00:00`; the year where it is another."""
    found, last = [], START - SECOND
    while len(found) < number:
        last = recurrence(pattern, zone=zone, schedule_id=schedule_id).after(last)
        found.append(last.strftime("%m-%d %H:%M:%S" if last.year == 2026 else "%Y-%m-%d %H:%M:%S"))
    return found


# --- what the reference's files may have

# Accepted there and refused here, or the other way round, each on purpose (issue 5, items 1 and 2).
DEVIATIONS = {"cron-pattern-013": True, "cron-pattern-014": False}


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, id=one["name"]) for one in VECTORS if one["name"].startswith("cron-pattern-")],
)
def test_a_pattern_is_taken_or_refused_as_the_reference_does(case):
    [trigger] = case["in"]["file"]["triggers"]
    accepted = problem_of(trigger["on"].get("pattern", ""), schedule_id="nightly", tz=None) is None

    assert accepted is DEVIATIONS.get(case["name"], case["out"]["accept"])
    assert (accepted is case["out"]["accept"]) is (case["name"] not in DEVIATIONS)


# --- what is meant

MEANT = {
    "0 3 * * *": ["01-01 03:00:00", "01-02 03:00:00", "01-03 03:00:00"],
    " 0\t3 * * *  ": ["01-01 03:00:00", "01-02 03:00:00", "01-03 03:00:00"],
    "30 0 3 * * *": ["01-01 03:00:30", "01-02 03:00:30", "01-03 03:00:30"],
    "*/20 * * * * *": ["01-01 00:00:00", "01-01 00:00:20", "01-01 00:00:40"],
    "5/20 * * * *": ["01-01 00:05:00", "01-01 00:25:00", "01-01 00:45:00"],
    "59/20 * * * *": ["01-01 00:59:00", "01-01 01:59:00", "01-01 02:59:00"],
    "10-40/15,50 0 * * *": ["01-01 00:10:00", "01-01 00:25:00", "01-01 00:40:00"],
    "0 5-5 * * *": ["01-01 05:00:00", "01-02 05:00:00", "01-03 05:00:00"],
    "*/60 */24 * * *": ["01-01 00:00:00", "01-02 00:00:00", "01-03 00:00:00"],
    "0 0 1 Jan,JUL *": ["01-01 00:00:00", "07-01 00:00:00", "2027-01-01 00:00:00"],
    "0 0 1 mar-may/2 *": ["03-01 00:00:00", "05-01 00:00:00", "2027-03-01 00:00:00"],
    "0 0 * * 7": ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"],
    "0 0 * * 0": ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"],
    "0 0 * * Sat-Sun": ["01-03 00:00:00", "01-04 00:00:00", "01-10 00:00:00"],
    "0 0 * * 5-7": ["01-02 00:00:00", "01-03 00:00:00", "01-04 00:00:00"],
    "0 0 * * sun-tue": ["01-04 00:00:00", "01-05 00:00:00", "01-06 00:00:00"],
    "0 0 ? * mon": ["01-05 00:00:00", "01-12 00:00:00", "01-19 00:00:00"],
    "0 0 1-31 * mon": ["01-05 00:00:00", "01-12 00:00:00", "01-19 00:00:00"],
    "0 0 13 * fri": ["01-02 00:00:00", "01-09 00:00:00", "01-13 00:00:00"],
    "0 0 */14 * mon": ["01-01 00:00:00", "01-05 00:00:00", "01-12 00:00:00"],
    "0 0 L * *": ["01-31 00:00:00", "02-28 00:00:00", "03-31 00:00:00"],
    "0 0 15,L * *": ["01-15 00:00:00", "01-31 00:00:00", "02-15 00:00:00"],
    "0 0 * * 5L": ["01-30 00:00:00", "02-27 00:00:00", "03-27 00:00:00"],
    "0 0 * * L5": ["01-30 00:00:00", "02-27 00:00:00", "03-27 00:00:00"],
    "0 0 * * friL": ["01-30 00:00:00", "02-27 00:00:00", "03-27 00:00:00"],
    "0 0 * * 7L": ["01-25 00:00:00", "02-22 00:00:00", "03-29 00:00:00"],
    "0 0 * * mon#1,3#2": ["01-05 00:00:00", "01-14 00:00:00", "02-02 00:00:00"],
    "0 0 29 2 *": ["2028-02-29 00:00:00", "2032-02-29 00:00:00", "2036-02-29 00:00:00"],
    "0 0 31 2,4,5 *": ["05-31 00:00:00", "2027-05-31 00:00:00", "2028-05-31 00:00:00"],
    "0 0 31 2 mon": ["02-02 00:00:00", "02-09 00:00:00", "02-16 00:00:00"],
    "@hourly": ["01-01 00:00:00", "01-01 01:00:00", "01-01 02:00:00"],
    "@Daily": ["01-01 00:00:00", "01-02 00:00:00", "01-03 00:00:00"],
    "@midnight": ["01-01 00:00:00", "01-02 00:00:00", "01-03 00:00:00"],
    "@weekly": ["01-04 00:00:00", "01-11 00:00:00", "01-18 00:00:00"],
    "@monthly": ["01-01 00:00:00", "02-01 00:00:00", "03-01 00:00:00"],
    "@yearly": ["01-01 00:00:00", "2027-01-01 00:00:00", "2028-01-01 00:00:00"],
    "@annually": ["01-01 00:00:00", "2027-01-01 00:00:00", "2028-01-01 00:00:00"],
    # Of `nightly`, for ever.
    "H H * * *": ["01-01 21:06:00", "01-02 21:06:00", "01-03 21:06:00"],
    "H/15 H(0-7) * * *": ["01-01 05:06:00", "01-01 05:21:00", "01-01 05:36:00"],
    "H H H * *": ["01-27 21:06:00", "02-27 21:06:00", "03-27 21:06:00"],
}


@pytest.mark.parametrize("pattern", MEANT)
def test_what_a_pattern_means(pattern):
    assert problem_of(pattern, schedule_id="nightly", tz=None) is None
    assert first(pattern) == MEANT[pattern]


def test_a_hash_is_the_same_for_an_id_and_spreads_others():
    times = {first("H H(0-7) * * *", 1, schedule_id=f"repo-{n}")[0] for n in range(40)}

    assert len(times) > 30
    assert max(times) < "01-01 08"
    assert first("H(10-19) * * * *", 1) == first("h(10-19) * * * *", 1, zone="Europe/Paris")


# --- what is refused, in words

REFUSED = {
    "": "has 0 fields; allowed are 5",
    "daily": "has 1 field; allowed are 5",
    "CRON_TZ=Europe/Paris 0 3 * * *": "begins with a time zone; allowed is the pattern alone",
    "TZ=UTC * * * * *": "begins with a time zone",
    "* * * *": "has 4 fields; allowed are 5 (minute hour day-of-month month day-of-week) or 6 (second first)",
    "0 0 0 1 1 * 2027": "has 7 fields; allowed are 5",
    "@reboot": "is '@reboot'; allowed are @hourly, @daily,",
    "nonsense a b c d": "has 'nonsense' in its minute field; allowed is 0 to 59, *, a range a-b, a step /n",
    "60 * * * *": "has '60' in its minute field; allowed is 0 to 59",
    "60 * * * * *": "has '60' in its second field; allowed is 0 to 59",
    "0 24 * * *": "has '24' in its hour field; allowed is 0 to 23",
    "0 0 0 * *": "has '0' in its day-of-month field; allowed is 1 to 31",
    "0 0 1 13 *": "has '13' in its month field; allowed is 1 to 12, jan to dec",
    "0 0 1 mon *": "has 'mon' in its month field; allowed is 1 to 12, jan to dec",
    "0 0 * * 8": "has '8' in its day-of-week field; allowed is 0 to 6, sun to sat",
    "0 0 * * 5#6": "has '5#6' in its day-of-week field; allowed",
    "0 0 * * L": "has 'l' in its day-of-week field; allowed",
    "0 0 L-3 * *": "has 'l-3' in its day-of-month field; allowed",
    "0 0 15W * *": "has '15w' in its day-of-month field; allowed",
    "R * * * *": "has 'r' in its minute field; allowed",
    "? * * * *": "has '?' in its minute field; allowed",
    "H,30 * * * *": "has 'h' in its minute field; allowed",
    "H(0-60) * * * *": "has 'H(0-60)' in its minute field; allowed is H(a-b) with a below b, both of 0 to 59",
    "0 H(7-7) * * *": "has 'H(7-7)' in its hour field; allowed is H(a-b)",
    "H/90 * * * *": "has the step /90 in its minute field; allowed is /1 to /60",
    "*/90 * * * *": "has the step /90 in its minute field; allowed is /1 to /60",
    "*/0 * * * *": "has the step /0 in its minute field; allowed",
    "*-5 * * * *": "has '*-5' in its minute field; allowed",
    "1,,2 * * * *": "has '' in its minute field; allowed",
    "-1 * * * *": "has '-1' in its minute field; allowed",
    "0 22-6 * * *": "has the range '22-6' in its hour field, which ends before it begins; allowed is",
    "0 0 * * 1/2": "has '1/2' in its day-of-week field, which some read to Saturday",
    "0 0 * * 1,5L": "mixes days of every week with days of the month in its day-of-week field ('1,5l')",
    "0 0 * * *,5L": "mixes days of every week with days of the month",
    "0 0 1-7 * mon#1": "has days in its day-of-month field beside 1#1 in its day-of-week field, which some",
    "0 0 31 2 *": "has the day 31 in its day-of-month field and never fires: none of its months has that day",
    "0 0 30,31 2 ?": "has the day 30 in its day-of-month field and never fires",
    "0 0 31 4,jun *": "has the day 31 in its day-of-month field and never fires",
    "0 3\n* * *": "has the character '\\n'; allowed are printable ASCII characters, blanks and tabs",
    "٣ 0 * * *": "has the character '\\u0663'; allowed",
    "0\u00a03 * * *": "has the character '\\xa0'; allowed",
    "0 3 * * \ud800": "has the character '\\ud800'; allowed",
    "9" * 500 + " * * * *": f"has '{'9' * 96}... in its minute field; allowed",
    "*/1," * 2500 + "1 * * * *": "has 10009 characters; allowed are 512",
}


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: ascii(pattern)[:30])
def test_what_no_pattern_is_and_why(pattern):
    begun = time.process_time()
    problem = problem_of(pattern, schedule_id="a", tz=None)

    assert time.process_time() - begun < 0.5
    assert problem.startswith(REFUSED[pattern]), problem
    assert len(problem) < 300
    with pytest.raises(ValueError, match="allowed"):
        recurrence(pattern)


def test_a_zone_is_one_of_the_database():
    assert problem_of("0 3 * * *", schedule_id="a", tz="europe/paris") is None
    assert problem_of("0 3 * * *", schedule_id="a", tz="Mars/Olympus").startswith(
        "has the zone 'Mars/Olympus'"
    )
    assert first("0 3 * * *", 1, zone="Asia/Kathmandu") == ["01-01 21:15:00"]


# --- instants

FIELDS = [
    st.sampled_from(texts.split())
    for texts in (
        "* 0 30 */20 10/7 5-50/9 1,2,59",
        "* 0 2 */6 22/1 1-3 0,12,23",
        "* 1 31 */10 L 28-31 5,15,L",
        "* 2 */3 jan-jun 12 feb,apr",
        "* 0 mon-fri 6-7 5L 2#5 sun#1,L3 1,3,5",
    )
]
PATTERNS = st.tuples(*FIELDS).map(" ".join)
INSTANTS = st.datetimes(datetime(2024, 1, 1), datetime(2031, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001


@given(PATTERNS, INSTANTS)
@settings(max_examples=80)
def test_in_utc_all_agree(pattern, begin):
    if problem_of(pattern, schedule_id="a", tz=None):
        return
    ours, each, last = (
        recurrence(pattern),
        croniter(pattern.replace("5L", "L5"), begin, ret_type=datetime),
        begin,
    )
    for _ in range(4):
        last = ours.after(last)

        assert last == each.get_next()


@given(PATTERNS, INSTANTS, st.sampled_from(ZONES), st.timedeltas(timedelta(), DAY * 3))
@settings(max_examples=80)
def test_what_has_passed_is_what_came(pattern, begin, zone, length):
    if problem_of(pattern, schedule_id="a", tz=None):
        return
    ours, end, came = recurrence(pattern, zone=zone), begin + length, []
    last = begin
    while (following := ours.after(last)) is not None and following <= end and len(came) < 500:
        assert following > last
        last = following
        came.append(last)
    end = end if len(came) < 500 else last

    assert ours.last_passed(begin, end) == (came[-1] if came else None, len(came))


def test_a_part_of_a_second_is_after_it():
    ours = recurrence("0 3 * * *")
    three = START.replace(hour=3)

    assert ours.after(three - timedelta(milliseconds=1)) == three
    assert ours.after(three + timedelta(milliseconds=1)) == three + DAY
    assert ours.last_passed(three - timedelta(milliseconds=1), three) == (three, 1)
    assert ours.last_passed(three, three + MINUTE) == (None, 0)


def test_what_is_rare_far_away_or_never_again():
    assert first("0 0 * feb mon#5", 1) == ["2044-02-29 00:00:00"]
    assert recurrence("* * * * *").after(datetime(9998, 12, 31, 23, 59, tzinfo=UTC)) is None
    assert recurrence("0 0 29 2 *").last_passed(datetime(1, 1, 2, tzinfo=UTC), START) == (
        datetime(2024, 2, 29, tzinfo=UTC),
        3,
    )


def test_every_second_of_thirty_days_is_counted_at_once():
    ours = recurrence("* * * * * *", zone="America/New_York")
    end = datetime(2026, 3, 20, tzinfo=UTC)
    ours.after(end)
    begun = time.process_time()

    assert ours.last_passed(end - DAY * 30, end) == (end, 30 * 86400)
    assert time.process_time() - begun < 0.5


def test_two_thousand_patterns_are_read_at_once():
    # A quarter of a second where nothing else runs.
    begun = time.process_time()
    for n in range(2000):
        recurrence(f"{n % 60} {n % 24} * * {n % 7}", zone="Europe/Paris", schedule_id=str(n)).after(START)

    assert time.process_time() - begun < 2
