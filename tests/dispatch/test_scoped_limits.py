"""`scoped-limits.json`: the vectors, every refusal in its words, and that a row finds its jobs."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.money.windows import scope_prefix
from dispatch.operator_files.integers import whole_number
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.scoped_limits import NO_LIMITS, ScopedLimit, ScopedLimits, ceiling, parse
from runs.workspace.scope import canonical_scope, hash16

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "scoped-limits.json").read_text())["cases"]
NAME = "/etc/pi/scoped-limits.json"


def cases_of(op):
    return [
        pytest.param(case["in"], case["out"], id=case["name"]) for case in CASES if case["in"]["op"] == op
    ]


def content_of(given_):
    return (given_["text"] if "text" in given_ else json.dumps(given_["file"])).encode()


def file_of(*rows, **more):
    return json.dumps({"version": 1, "limits": list(rows), **more}).encode()


def as_vector(row):
    return {name: getattr(row, name) for name in ("scope", "day", "week", "month", "concurrent")}


def scope_of(job):
    return canonical_scope(kind=job.get("kind", ""), folder=job.get("folder"), repository=job.get("repo"))


def test_no_case_is_left_out():
    assert {case["in"]["op"] for case in CASES} == {"load", "scope", "key", "concurrency", "caps"}
    assert len(CASES) == 118


@pytest.mark.parametrize(("given_", "out"), cases_of("load"))
def test_a_file_is_taken_or_refused(given_, out):
    if out["accept"]:
        assert [as_vector(row) for row in parse(content_of(given_), name=NAME).rows] == out["rows"]
    else:
        with pytest.raises(OperatorFileError):
            parse(content_of(given_), name=NAME)


@pytest.mark.parametrize(("given_", "out"), cases_of("scope"))
def test_a_job_has_a_canonical_scope(given_, out):
    assert {"scope": scope_of(given_["job"])} == out


@pytest.mark.parametrize(("given_", "out"), cases_of("key"))
def test_a_scope_has_counters_of_its_own(given_, out):
    assert {"prefix": scope_prefix(hash16(given_["scope"]))} == out


@pytest.mark.parametrize(("given_", "out"), cases_of("concurrency"))
def test_a_row_limits_the_containers_of_a_repository_and_a_folder_has_one(given_, out):
    limit = parse(content_of(given_), name=NAME).of(scope_of(given_["job"]))

    found = ceiling(limit, is_forge=given_["job"].get("kind") != "local")

    assert {"ceiling": "unlimited" if found is None else found} == out


@pytest.mark.parametrize(("given_", "out"), cases_of("caps"))
def test_a_row_has_the_windows_that_it_sets(given_, out):
    limit = parse(content_of(given_), name=NAME).of(scope_of(given_["job"]))
    applies = None
    if limit is not None and limit.caps.active():
        caps = {"day": limit.caps.day, "week": limit.caps.week, "month": limit.caps.month}
        applies = {"scope": limit.scope, "caps": caps}

    assert {"applies": applies} == out


ROW = {"scope": "a/b", "day": 1}
NUMBER = "; allowed is a whole number from 1 to 9007199254740991, or no day at all for no limit"
REFUSED = {
    "no object": (b"[1, 2]", 'holds [1, 2]; allowed is {"version": 1, "limits": [...]}'),
    "no JSON": (b"{", "is not JSON: "),
    "a key twice": (
        b'{"version": 1, "limits": [{"scope": "a/b", "day": 5, "day": 50}]}',
        "has the key 'day' twice in one object; write it once",
    ),
    "no version": (b'{"limits": []}', 'version is missing; add "version": 1'),
    "version text": (file_of(version="1"), "version is '1'; allowed is 1"),
    "version 0": (file_of(version=0), "version is 0; allowed is 1"),
    "version true": (file_of(version=True), "version is true; allowed is 1"),
    "version 1.5": (file_of(version=1.5), "version is 1.5; allowed is 1"),
    "newer": (file_of(version=7), "version is 7, and this program understands up to 1"),
    "no limits": (b'{"version": 1}', 'limits is missing; add "limits": []'),
    "limits null": (b'{"version": 1, "limits": null}', "limits is null; allowed is a list of objects"),
    "row": (file_of(ROW, 5), "limits[1] is 5; allowed is an object such as"),
    "no scope": (file_of({"day": 1}), "limits[0].scope is missing; allowed is an absolute folder or a repo"),
    "scope null": (file_of({"scope": None, "day": 1}), "limits[0].scope is null; allowed is an absolute"),
    "scope blank": (file_of({"scope": "\u00a0\ufeff ", "day": 1}), r"scope is '\xa0\ufeff '; allowed is"),
    "half a letter": (file_of({"scope": "\ud800", "day": 1}), r"is '\ud800', which holds half a character"),
    "wildcard": (file_of({"scope": "a/*", "day": 1}), "scope is 'a/*'; a limit has no wildcard"),
    "day 0": (file_of({"scope": "a/b", "day": 0}), f"limits[0].day is 0{NUMBER}"),
    "day text": (file_of({"scope": "a/b", "day": "5"}), f"limits[0].day is '5'{NUMBER}"),
    "day true": (file_of({"scope": "a/b", "day": True}), f"limits[0].day is true{NUMBER}"),
    "day too large": (file_of({"scope": "a/b", "day": 2**53}), f"day is {2**53}{NUMBER}"),
    "day endless": (b'{"version": 1, "limits": [{"scope": "a", "day": 1e999}]}', f"day is inf{NUMBER}"),
    "nothing": (file_of({"scope": "a/b", "day": None}), "limits[0] limits nothing; set at least one of day,"),
    "a slip": (file_of({"scope": "a/b", "dya": 5}), "limits[0] limits nothing (it has ['dya']); set at"),
    "the same folder": (
        file_of(ROW, {"scope": "/srv/we\u0301b", "day": 1}, {"scope": "//srv/x/../w\u00e9b/", "week": 0}),
        r"limits[2].scope is '//srv/x/../w\xe9b/', the same scope as limits[1] ('/srv/we\u0301b'); put all",
    ),
    "three times": (file_of(ROW, ROW, ROW), "limits[2].scope is 'a/b', the same scope as limits[0]"),
}


@pytest.mark.parametrize(("content", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_said_in_words(content, says):
    with pytest.raises(OperatorFileError, match=re.escape(says)) as error:
        parse(content, name=NAME)

    assert all(problem.startswith(f"{NAME}: ") for problem in error.value.problems)
    assert error.value.exit_code == 2


def test_all_that_is_wrong_is_said_at_once():
    rows = [5, {"scope": "*", "day": 0, "concurrent": "x"}, {"scope": 5}, ROW, {"scope": " a/b ", "day": -1}]

    with pytest.raises(OperatorFileError) as error:
        parse(json.dumps({"limits": rows}).encode(), name=NAME)

    assert error.value.places == (
        "version",
        "limits[0]",
        *("limits[1].scope", "limits[1].day", "limits[1].concurrent"),
        *("limits[2].scope", "limits[2]"),
        *("limits[4].day", "limits[4].scope"),
    )


def test_of_a_newer_version_nothing_but_that_is_said():
    with pytest.raises(OperatorFileError) as error:
        parse(b'{"version": 2, "limits": {"by": "scope"}}', name=NAME)

    assert error.value.places == ("version",)


def test_null_is_absent_and_unknown_keys_are_dropped():
    found = parse(file_of({**ROW, "week": None, "note": "x"}, more=1), name=NAME)

    assert found.rows == (ScopedLimit(scope="a/b", day=1),)


def test_no_limits_are_no_rows():
    assert (len(NO_LIMITS), NO_LIMITS.of("a/b"), NO_LIMITS.of(None)) == (0, None, None)
    assert len(parse(file_of(ROW), name=NAME)) == 1


@given(st.text(min_size=1).filter(lambda text: "*" not in text))
def test_a_row_of_a_folder_finds_the_jobs_of_that_folder(path):
    written = f"/{path}/./x/../"
    limits = parse(file_of({"scope": unicodedata.normalize("NFD", written), "day": 1}), name=NAME)

    assert limits.of(canonical_scope(kind="local", folder=written, repository=None)) == limits.rows[0]


@given(st.integers(-5, 2**54) | st.floats() | st.booleans() | st.none() | st.text())
def test_a_whole_number_is_one_however_it_is_written(value):
    found = whole_number(value)

    is_one = isinstance(value, int | float) and value is not True and 1 <= value < 2**53 and value % 1 == 0
    assert found == (int(value) if is_one else None)
    assert type(found) in {int, type(None)}


def test_rows_are_found_by_their_exact_scope():
    rows = tuple(ScopedLimit(scope=f"/srv/{number}", day=number) for number in range(1, 200))
    limits = ScopedLimits(rows)

    assert [limits.of(row.scope) for row in rows] == list(rows)
    assert (limits.of("/srv/1/"), limits.of("/SRV/1")) == (None, None)
