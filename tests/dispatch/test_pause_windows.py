from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dispatch.operator_files.pause_windows import MOST_HOPS, parse, pause_end, paused_until
from dispatch.operator_files.problems import OperatorFileError, shown
from dispatch.operator_files.zones import occurrence, zone_named

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "pause-windows.json").read_text())["cases"]
# Scopes that begin with the forge's name: of a later version of the reference.
NEWER = {"load-123", "load-124", "until-scope-017", "until-scope-018"}
NAME = "/etc/pi/pause-windows.json"
SCOPE = "acme/web"
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def file_of(*rows: object) -> bytes:
    return json.dumps({"windows": rows}).encode()


def windows_of(*rows: dict, **shared: object) -> tuple:
    return parse(file_of(*({"scope": "*", **shared, **row} for row in rows)), name=NAME)


def at(text: str) -> datetime:
    """Read `03-08 07:00` and such as an instant of 2026; a year in front of it counts."""
    return datetime.fromisoformat(text if text[:2] == "20" else f"2026-{text}").replace(tzinfo=UTC)


# --- the vectors


def cases_of(op: str) -> list:
    chosen = [case for case in CASES if case["in"]["op"] == op and case["name"] not in NEWER]
    return [pytest.param(case, id=case["name"]) for case in chosen]


def test_no_case_is_left_out_but_those_of_a_later_version():
    assert {case["name"] for case in CASES if case.get("newer")} == NEWER
    assert len(cases_of("load")) + len(cases_of("until")) + len(NEWER) == len(CASES) == 319


def minutes(text: str) -> timedelta:
    hour, minute = text.split(":")
    return timedelta(hours=int(hour), minutes=int(minute))


@pytest.mark.parametrize("case", cases_of("load"))
def test_a_file_is_taken_or_refused_as_the_reference_does(case):
    given_, out = case["in"], case["out"]
    content = given_["text"].encode() if "text" in given_ else json.dumps(given_["file"]).encode()
    if not out["accept"]:
        with pytest.raises(OperatorFileError):
            parse(content, name=NAME)
        return

    found = parse(content, name=NAME)

    assert len(found) == len(out["windows"])
    for window, kept in zip(found, out["windows"], strict=True):
        begins, ends = minutes(kept["from"]), minutes(kept["to"])
        days = {WEEKDAYS.index(day) for day in kept.get("days", ())}
        assert window.scope == kept["scope"]
        assert (window.begins, window.ends) == (begins, ends if begins < ends else ends + DAY)
        assert window.weekdays == (days or None)
        assert (window.first_date, window.last_date) == (kept.get("dateFrom"), kept.get("dateTo"))
        # A quirk keeps an alias as it is written; here a window has the zone.
        assert window.zone.key == zone_named(kept["tz"]).key
        assert case.get("quirk") or window.zone.key == kept["tz"]


@pytest.mark.parametrize("case", cases_of("until"))
def test_a_pause_ends_when_the_reference_says(case):
    given_ = case["in"]
    job = given_["job"]
    scope = job.get("folder") if job.get("kind") == "local" else job.get("repo")

    end = pause_end(windows_of(*given_["windows"]), scope, datetime.fromisoformat(given_["now"]))

    assert (end and end.timestamp() * 1000) in case.get("zoneDb", [case["out"]["untilMs"]])


# --- refusals

ROW = {"scope": "*", "from": "22:00", "to": "06:00"}
WHOLE = {"scope": "*", "allDay": True}
AN_OBJECT = 'allowed is an object such as {"scope": "*", "from": "22:00", "to": "06:00"}'
A_FILE = 'allowed is an object such as {"windows": [{"scope": "*", "from": "22:00", "to": "06:00"}]}'
A_SCOPE = "allowed is a repository as its forge writes it, a folder as its jobs write it, or *"
HOURS = "allowed is HH:MM from 00:00 to 23:59"
ZONE = "allowed is an IANA time zone such as Europe/London, or no tz for UTC"
A_DAY = "allowed is mon, tue, wed, thu, fri, sat, sun"
DAYS = "allowed is a list of mon, tue, wed, thu, fri, sat, sun, or no days for every day"
SAME = 'the same as from; allowed is another time, or "allDay": true alone'
BESIDE = "beside allDay; a whole day has no from and to"


def without(*fields: str) -> dict:
    return {key: value for key, value in ROW.items() if key not in fields}


def times(field: str, *values: object) -> list:
    return [({**ROW, field: value}, f"{field} is {shown(value)}; {HOURS}") for value in values]


REFUSED_ROWS = [
    *[(without(field), f"{field} is missing; {HOURS}") for field in ("from", "to")],
    *times("from", "24:00", "12:60", "9:5", "009:00", "0900", "09:00:00", "-1:00", "", 900, None, True),
    *times("to", "\u0660\u0669:\u0660\u0660", "0\u0669:00", "23:59\n7", "2 2:00", ["06:00"], 6.5),
    (without("scope"), f"scope is missing; {A_SCOPE}"),
    *[
        ({**ROW, "scope": value}, f"scope is {shown(value)}; {A_SCOPE}")
        for value in ("", "\ufeff \n", None, ["a"])
    ],
    ({**ROW, "to": "22:00"}, f"to is '22:00', {SAME}"),
    ({**ROW, "from": "9:00", "to": "09:00"}, f"to is '09:00', {SAME}"),
    *[
        ({**ROW, "tz": value}, f"tz is {shown(value)}; {ZONE}")
        for value in (
            "Mars/Olympus",
            "",
            "Europe",
            "Amsterdam",
            "UTC+2",
            "BST",
            "localtime",
            "../UTC",
            "/etc",
        )
    ],
    *[
        ({**ROW, "tz": value}, f"tz is {shown(value)}; {ZONE}")
        for value in ("Europe/\u212ayiv", "UTC\x00", None, 5, False)
    ],
    *[({**ROW, "days": value}, f"days is {shown(value)}; {DAYS}") for value in (None, "mon", [], {}, 1)],
    *[
        ({**ROW, "days": ["mon", value]}, f"days[1] is {shown(value)}; {A_DAY}")
        for value in ("funday", "", "mo", "m on", "\uff4don", 1, None, True, ["tue"])
    ],
    *[
        ({**ROW, field: value}, f"{field} is {shown(value)}; allowed is YYYY-MM-DD, or no {field}")
        for field in ("dateFrom", "dateTo")
        for value in ("2026-1-1", "2026-00-10", "2026-13-10", "2026-01-32", "26-01-01", "2026-01-01T00:00")
    ],
    *[
        ({**ROW, "dateFrom": value}, f"dateFrom is {shown(value)}; allowed is YYYY-MM-DD, or no dateFrom")
        for value in ("\u0662\u0660\u0662\u0666-01-01", "2026-01-01\n.", "", None, 20260101, True)
    ],
    (
        {**WHOLE, "dateFrom": "2026-01-02", "dateTo": "2026-01-01"},
        "dateTo is '2026-01-01', before dateFrom '2026-01-02'; allowed is that day or a later one",
    ),
    *[
        ({**WHOLE, "allDay": value}, f"allDay is {shown(value)}; allowed is true, or no allDay")
        for value in (False, None, 1, "true", [])
    ],
    ({**ROW, "allDay": False}, "allDay is false; allowed is true, or no allDay"),
    ({**WHOLE, "from": "22:00"}, f"from is '22:00' {BESIDE}"),
    ({**WHOLE, "to": None}, f"to is null {BESIDE}"),
]


@pytest.mark.parametrize(("row", "says"), REFUSED_ROWS)
def test_a_window_is_refused_with_index_field_value_and_what_is_allowed(row, says):
    with pytest.raises(OperatorFileError) as error:
        parse(file_of(ROW, row), name=NAME)

    assert error.value.problems == (f"{NAME}: windows[1].{says}",)
    assert error.value.places == (f"windows[1].{says.split()[0]}",)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[]", f"holds []; {A_FILE}"),
        (b"null", f"holds null; {A_FILE}"),
        (b"{}", 'windows is missing; add "windows": [], with an object for each in it'),
        (b'{"windows": null}', "windows is null; allowed is a list of objects"),
        (b'{"windows": {"0": {}}}', "windows is {'0': {}}; allowed is a list of objects"),
        (file_of(ROW, []), f"windows[1] is []; {AN_OBJECT}"),
        (file_of("22:00"), f"windows[0] is '22:00'; {AN_OBJECT}"),
        (
            b'{"windows": [{"scope": "a", "scope": "b", "allDay": true}]}',
            "has the key 'scope' twice in one object; write it once (windows[0])",
        ),
    ],
)
def test_a_file_is_refused_as_a_whole(content, says):
    with pytest.raises(OperatorFileError) as error:
        parse(content, name=NAME)

    assert error.value.problems == (f"{NAME}: {says}",)


def test_all_that_is_wrong_is_said_at_once():
    worst = {"from": "25:00", "tz": "x", "days": ["mon", 1, "x"], "dateFrom": "2026-02-02", "dateTo": "2026"}
    late = {**WHOLE, "from": "09:00", "to": "09:00", "dateFrom": "2027-01-01", "dateTo": "2026-12-31"}

    with pytest.raises(OperatorFileError) as error:
        parse(file_of(worst, ROW, 5, late), name=NAME)

    assert error.value.places == (
        *(f"windows[0].{one}" for one in ("scope", "from", "to", "tz", "days[1]", "days[2]", "dateTo")),
        "windows[2]",
        *(f"windows[3].{one}" for one in ("from", "to", "dateTo")),
    )


def test_blanks_names_and_unknown_keys_are_taken_kindly():
    (one,) = windows_of(
        {
            "from": " 7:07 ",
            "to": "00:00\n",
            "tz": "us/eastern ",
            "days": [" FRIDAY ", "fri", "Sun"],
            "note": None,
        },
        scope="\ufeff acme/web\t",
        dateTo=" 2026-02-31 ",
    )

    assert (one.scope, one.zone.key, one.weekdays) == (SCOPE, "US/Eastern", {4, 6})
    assert (one.begins, one.ends) == (timedelta(hours=7, minutes=7), DAY)
    assert (one.first_date, one.last_date) == (None, "2026-02-31")
    assert parse(b'\xef\xbb\xbf{"windows": [], "version": 5}', name=NAME) == ()


# --- nights on which the clock changes: one occurrence, by hand, from its first instant to its last

NY, LONDON, LORD_HOWE = "America/New_York", "Europe/London", "Australia/Lord_Howe"
SANTIAGO, KATHMANDU, HAVANA = "America/Santiago", "Asia/Kathmandu", "America/Havana"
NIGHTS = [
    # 02:00 -> 03:00 on 8 March at 07:00 UTC, 02:00 -> 01:00 on 1 November at 06:00 UTC
    (NY, "03-07", "22:00-06:00", "03-08 03:00", "03-08 10:00"),
    (NY, "03-07", "22:00-02:30", "03-08 03:00", "03-08 07:30"),
    (NY, "03-08", "02:30-05:00", "03-08 07:00", "03-08 09:00"),
    (NY, "03-08", "02:10-02:40", "03-08 07:00", "03-08 07:40"),
    (NY, "03-08", "00:00-03:00", "03-08 05:00", "03-08 07:00"),
    (NY, "03-08", "all day", "03-08 05:00", "03-09 04:00"),
    (NY, "10-31", "22:00-06:00", "11-01 02:00", "11-01 11:00"),
    (NY, "10-31", "22:00-01:30", "11-01 02:00", "11-01 06:30"),
    (NY, "11-01", "01:30-05:00", "11-01 05:30", "11-01 10:00"),
    (NY, "11-01", "01:10-01:50", "11-01 05:10", "11-01 06:50"),
    (NY, "11-01", "all day", "11-01 04:00", "11-02 05:00"),
    # 01:00 -> 02:00 on 29 March, 02:00 -> 01:00 on 25 October, both at 01:00 UTC
    (LONDON, "03-28", "23:00-01:30", "03-28 23:00", "03-29 01:30"),
    (LONDON, "03-29", "01:30-04:00", "03-29 01:00", "03-29 03:00"),
    (LONDON, "03-29", "all day", "03-29 00:00", "03-29 23:00"),
    (LONDON, "10-24", "23:00-01:30", "10-24 22:00", "10-25 01:30"),
    (LONDON, "10-25", "01:30-04:00", "10-25 00:30", "10-25 04:00"),
    (LONDON, "10-25", "all day", "10-24 23:00", "10-26 00:00"),
    # 02:00 -> 01:30 on 5 April at 15:00 UTC of the 4th, 02:00 -> 02:30 on 4 October at 15:30 UTC of the 3rd
    (LORD_HOWE, "04-04", "22:00-01:45", "04-04 11:00", "04-04 15:15"),
    (LORD_HOWE, "04-05", "01:45-04:00", "04-04 14:45", "04-04 17:30"),
    (LORD_HOWE, "04-05", "all day", "04-04 13:00", "04-05 13:30"),
    (LORD_HOWE, "10-03", "22:00-02:15", "10-03 11:30", "10-03 15:45"),
    (LORD_HOWE, "10-04", "02:15-04:00", "10-03 15:30", "10-03 17:00"),
    (LORD_HOWE, "10-04", "all day", "10-03 13:30", "10-04 13:00"),
    # 24:00 -> 23:00 on 4 April at 03:00 UTC of the 5th, 00:00 -> 01:00 on 6 September at 04:00 UTC
    (SANTIAGO, "04-04", "22:00-23:30", "04-05 01:00", "04-05 03:30"),
    (SANTIAGO, "04-04", "23:30-02:00", "04-05 02:30", "04-05 06:00"),
    (SANTIAGO, "04-04", "all day", "04-04 03:00", "04-05 04:00"),
    (SANTIAGO, "04-05", "all day", "04-05 04:00", "04-06 04:00"),
    (SANTIAGO, "09-05", "22:00-00:30", "09-06 02:00", "09-06 04:30"),
    (SANTIAGO, "09-06", "00:30-03:00", "09-06 04:00", "09-06 06:00"),
    (SANTIAGO, "09-05", "all day", "09-05 04:00", "09-06 04:00"),
    (SANTIAGO, "09-06", "all day", "09-06 04:00", "09-07 03:00"),
    # never
    (KATHMANDU, "03-28", "22:00-02:30", "03-28 16:15", "03-28 20:45"),
    (KATHMANDU, "10-25", "02:30-05:00", "10-24 20:45", "10-24 23:15"),
    (KATHMANDU, "11-01", "all day", "10-31 18:15", "11-01 18:15"),
    ("UTC", "03-28", "23:00-01:30", "03-28 23:00", "03-29 01:30"),
    ("UTC", "11-01", "01:30-05:00", "11-01 01:30", "11-01 05:00"),
    ("UTC", "11-01", "all day", "11-01 00:00", "11-02 00:00"),
    # 01:00 -> 00:00 on 1 November at 05:00 UTC: midnight comes twice, and the first one is it
    (HAVANA, "10-31", "all day", "10-31 04:00", "11-01 04:00"),
    (HAVANA, "11-01", "all day", "11-01 04:00", "11-02 05:00"),
    # 23:00 -> 00:00 on 28 March at 01:00 UTC of the 29th: an end two days after the begin
    ("America/Nuuk", "03-27", "23:45-23:30", "03-28 01:45", "03-29 01:30"),
    ("America/Nuuk", "03-28", "all day", "03-28 02:00", "03-29 01:00"),
    # 00:01 -> 23:01 of the day before, which comes back for an hour
    ("America/St_Johns", "2006-10-29", "00:00-02:00", "2006-10-29 02:30", "2006-10-29 05:30"),
    ("America/St_Johns", "2006-10-28", "all day", "2006-10-28 02:30", "2006-10-29 03:30"),
    # A day that was left out, and the one before it
    ("Pacific/Apia", "2011-12-29", "all day", "2011-12-29 10:00", "2011-12-30 10:00"),
    ("Pacific/Apia", "2011-12-30", "all day", "2011-12-30 10:00", "2011-12-30 10:00"),
]


def hours_of(text: str) -> dict:
    return {"allDay": True} if text == "all day" else dict(zip(("from", "to"), text.split("-"), strict=True))


@pytest.mark.parametrize(("zone", "day", "hours", "begin", "end"), NIGHTS)
def test_an_occurrence_is_exact_on_the_nights_on_which_the_clock_changes(zone, day, hours, begin, end):
    only = at(day).date().isoformat()
    windows = windows_of({**hours_of(hours), "tz": zone, "dateFrom": only, "dateTo": only})
    first, last, moment = at(begin), at(end), timedelta(microseconds=1)

    inside = [first + (last - first) * step / 50 for step in range(50)]
    ends = [pause_end(windows, SCOPE, now) for now in (*inside, max(first, last - moment))]
    outside = [pause_end(windows, SCOPE, now) for now in (first - DAY, first - moment, last, last + DAY)]

    assert set(ends) == ({last} if first < last else {None})
    assert outside == [None] * 4


# --- windows that go on where another ends

NIGHT = {"from": "22:00", "to": "06:00"}
WEEKEND = ({"allDay": True, "days": ["sat"]}, {"allDay": True, "days": ["sun"]})
UNBROKEN = {
    # 2026-06-12 is a Friday.
    "two whole days": (WEEKEND, "06-13 08:00", "06-15 00:00"),
    "nights and whole days": ((NIGHT, *WEEKEND), "06-12 23:00", "06-15 06:00"),
    "a morning": ((NIGHT, {"from": "06:00", "to": "09:00"}), "06-12 05:00", "06-12 09:00"),
    "an overlap": (({"from": "05:59", "to": "9:00"}, NIGHT), "06-12 05:00", "06-12 09:00"),
    "a minute between": ((NIGHT, {"from": "06:01", "to": "09:00"}), "06-12 05:00", "06-12 06:00"),
    "another scope": ((NIGHT, {"scope": "x/y", "from": "6:00", "to": "9:00"}), "06-12 05:00", "06-12 06:00"),
    "another zone": (
        ({"from": "08:00", "to": "09:00"}, {"from": "14:45", "to": "15:00", "tz": KATHMANDU}),
        "06-12 08:59",
        "06-12 09:15",
    ),
    "a gap": (
        ({"from": "22:00", "to": "02:30", "tz": NY}, {"from": "02:30", "to": "05:00", "tz": NY}),
        "03-08 03:00",
        "03-08 09:00",
    ),
    "an overlap of the clock": (
        ({"from": "22:00", "to": "01:30", "tz": NY}, {"from": "01:30", "to": "05:00", "tz": NY}),
        "11-01 02:00",
        "11-01 10:00",
    ),
    "days about a missing midnight": (
        ({"allDay": True, "tz": SANTIAGO, "dateTo": "2026-09-06"},),
        "09-05 12:00",
        "09-07 03:00",
    ),
    "the last second": ((NIGHT,), "06-12 05:59:59", None),
    "a little more": ((NIGHT,), "06-12 05:59:58.999", "06-12 06:00"),
    "the last second of the first": (WEEKEND, "06-13 23:59:59.500", "06-15 00:00"),
    "the last second of all": (WEEKEND, "06-14 23:59:59.500", None),
    "after it": (WEEKEND, "06-15 00:00", None),
    "for ever": (({"allDay": True},), "06-12 12:00", f"06-{13 + MOST_HOPS} 00:00"),
}


@pytest.mark.parametrize(("rows", "now", "until"), UNBROKEN.values(), ids=UNBROKEN)
def test_windows_that_touch_are_one_pause(rows, now, until):
    assert paused_until(windows_of(*rows), SCOPE, at(now)) == (until and at(until))


@pytest.mark.parametrize(
    ("scope", "job", "is_paused"),
    [
        ("/srv/a", "/srv/a", True),
        ("/srv/a/", "/srv/a", False),
        ("/srv/a", "/srv/a/", False),
        ("/srv/w\u00e9b", "/srv/w\u00e9b", True),
        ("/srv/w\u00e9b", "/srv/we\u0301b", False),
        ("Acme/Web", "acme/web", False),
        ("acme/*", "acme/web", False),
        ("*", "acme/web", True),
        ("*", None, False),
        ("*", "", False),
    ],
)
def test_a_scope_is_compared_letter_by_letter(scope, job, is_paused):
    windows = windows_of({"scope": scope, "from": "00:00", "to": "23:59"})

    assert (paused_until(windows, job, at("06-12 12:00")) is not None) is is_paused


def test_an_instant_without_a_zone_is_refused():
    for ask in (pause_end, paused_until):
        with pytest.raises(ValueError, match="time zone"):
            ask(windows_of(NIGHT), SCOPE, datetime(2026, 1, 1))  # noqa: DTZ001


# --- properties

ZONES = [NY, LONDON, LORD_HOWE, SANTIAGO, KATHMANDU, "UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Tokyo"]
clock_times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59]))
dates = st.dates(date(2026, 6, 1), date(2026, 6, 14)).map(str)


@st.composite
def rows(draw, zones=ZONES):
    row = {"scope": draw(st.sampled_from(["*", SCOPE, "x/y"])), "tz": draw(st.sampled_from(zones))}
    begins, ends = draw(clock_times), draw(clock_times)
    row |= {"allDay": True} if begins == ends else {"from": begins, "to": ends}
    if draw(st.booleans()):
        row["days"] = draw(st.lists(st.sampled_from(WEEKDAYS), min_size=1))
    return row


def is_shown(row: dict, now: datetime) -> bool:
    """Read a window as its text says it: what does the clock show, and is that between the two?"""
    wall = now.astimezone(zone_named(row["tz"]))
    shown = f"{wall:%H:%M}"
    begins, ends = row.get("from", "00:00"), row.get("to", "24:00")
    today, yesterday = f"{wall:%a}".lower(), f"{wall - DAY:%a}".lower()
    days = row.get("days", [today, yesterday])
    if begins < ends:
        return today in days and begins <= shown < ends
    return (today in days and shown >= begins) or (yesterday in days and shown < ends)


@given(st.lists(rows(), max_size=3), st.integers(0, 14 * 24 * 60), st.integers(0, 59))
@settings(max_examples=60, deadline=None)
def test_a_pause_is_what_the_clock_shows_minute_by_minute(own, minute, second):
    start = at("06-01 00:00") + MINUTE * minute
    mine = [row for row in own if row["scope"] != "x/y"]

    until = paused_until(windows_of(*own), SCOPE, start + timedelta(seconds=second))

    end = start
    while any(is_shown(row, end) for row in mine) and end < start + 3 * DAY:
        end += MINUTE
    if end == start + 3 * DAY:
        assert until >= end
    else:
        assert until == (None if end <= start + timedelta(seconds=second + 1) else end)


CHANGES = [  # zone, and an instant near which its clock changes
    *((NY, day) for day in ("03-08", "11-01")),
    *((LORD_HOWE, day) for day in ("04-04", "10-03")),
    *((SANTIAGO, day) for day in ("04-05", "09-06")),
    *((HAVANA, day) for day in ("03-08", "11-01")),
    *(("America/St_Johns", day) for day in ("2006-04-02", "2006-10-29")),
    *((zone, "2011-12-30") for zone in ("Pacific/Apia", "Pacific/Fakaofo")),
    *(("America/Nuuk", day) for day in ("03-29", "10-25")),
]


@given(st.sampled_from(CHANGES), st.data(), st.integers(-3 * 24 * 60, 3 * 24 * 60))
@settings(max_examples=150, deadline=None)
def test_about_a_change_no_occurrence_is_missed_and_none_made_up(change, data, minute):
    zone, day = change
    now = at(day) + MINUTE * minute
    own = windows_of(*(data.draw(rows(zones=[zone])) for _ in range(2)))
    midnight = now.astimezone(zone_named(zone)).replace(tzinfo=None, hour=0, minute=0)

    ends = [
        end
        for window in own
        for morning in (midnight + DAY * ahead for ahead in range(-6, 7))
        if window.scope != "x/y" and (window.weekdays is None or morning.weekday() in window.weekdays)
        for begin, end in [occurrence(morning, window.begins, window.ends, window.zone)]
        if begin <= now < end
    ]

    assert pause_end(own, SCOPE, now) == max(ends, default=None)


@given(st.lists(rows(), min_size=1, max_size=4), dates, st.integers(0, 14 * 24 * 60 * 60 * 1000))
@settings(max_examples=100, deadline=None)
def test_a_pause_ends_later_than_now_and_then_it_is_over(own, last, milliseconds):
    now = at("06-01 00:00") + timedelta(milliseconds=milliseconds)
    windows = windows_of(*({**row, "dateTo": last} for row in own))
    until = paused_until(windows, SCOPE, now)
    end = pause_end(windows, SCOPE, now)
    if until is None:
        assert end is None or end - now <= timedelta(seconds=1)
        return

    assert until >= end > now
    assert until - now > timedelta(seconds=1)
    assume(until - now < timedelta(days=4))
    assert pause_end(windows, SCOPE, until) is None
    assert paused_until(windows, SCOPE, until) is None


anything = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=4))
FIELDS = ["scope", "from", "to", "tz", "days", "dateFrom", "dateTo", "allDay", "note"]


@given(st.lists(anything | st.dictionaries(st.sampled_from(FIELDS), anything), max_size=3))
def test_whatever_a_window_holds_is_taken_or_refused(listed):
    try:
        assert len(parse(file_of(*listed), name=NAME)) == len(listed)
    except OperatorFileError as error:
        assert all(place.startswith("windows[") for place in error.places)  # noqa: PT017
