"""The newest run of each of many schedules."""

from __future__ import annotations

import pytest

from runs import latest, rows
from tests.harness.records import a_record

pytestmark = pytest.mark.django_db
NOW = 1_767_614_400_000


def test_each_has_its_newest_run_and_no_other_s(django_assert_max_num_queries):
    ids = [f"repeat:s{number}:{NOW - age}" for number in range(0, 700, 7) for age in (0, 1000, 60_000)]
    others = [
        f"repeat:a.b:{NOW}",
        f"repeat:a:{NOW - 5}",
        f"repeat:a-b:{NOW + 5}",
        f"repeat:a:x{NOW}",
        "repeat:a:",
    ]
    rows.write([a_record(number, job_id=job_id) for number, job_id in enumerate([*ids, *others])])
    wanted = [*(f"repeat:s{number}:" for number in range(700)), "repeat:a:", "repeat:a-b:", "repeat:a.b:"]

    with django_assert_max_num_queries(6):
        found = latest.newest(wanted, until_ms=NOW)

    told = {prefix: run.job_id for prefix, run in found.items()}
    assert told == {
        **{f"repeat:s{number}:": f"repeat:s{number}:{NOW}" for number in range(0, 700, 7)},
        "repeat:a:": f"repeat:a:{NOW - 5}",
        "repeat:a.b:": f"repeat:a.b:{NOW}",
    }


def test_what_a_run_of_the_far_future_says_hides_no_real_one():
    rows.write([a_record(1, job_id=f"repeat:a:{NOW}"), a_record(2, job_id="repeat:a:999999999999999")])

    assert latest.newest(["repeat:a:"], until_ms=NOW + 1)["repeat:a:"].job_id == f"repeat:a:{NOW}"


def test_nothing_is_asked_for_nothing(django_assert_max_num_queries):
    with django_assert_max_num_queries(0):
        assert latest.newest([], until_ms=NOW) == {}
