"""Which schedules a host can serve, by the folders that it has."""

from __future__ import annotations

import json

import pytest

from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules.placement import Placed, place
from dispatch.schedules.unserved import UnservedReason
from dispatch.triggers.parse import parse
from tests.harness.standing_work import cron


@pytest.fixture
def ground(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "here")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    return tmp_path


def triggers(*entries):
    return parse(json.dumps({"triggers": entries}).encode(), name="f")


def placed(*entries, fleet_mode=True, host_zone="Europe/Paris"):
    return place(triggers(*entries), fleet_mode=fleet_mode, host_zone=host_zone, name="f")


# Changes of an entry whose folder is here, the reason, and the problem of a single host (G: the ground).
UNSERVED = {
    "absent": ({"folder": "G/gone"}, "folder-absent", "run.folder is 'G/gone', which is no folder"),
    "a file": ({"folder": "G/file"}, "folder-absent", "run.folder is 'G/file', which is no folder"),
    "below a file": ({"folder": "G/file/x"}, "folder-absent", "run.folder is 'G/file/x', which"),
    "a dangling link": ({"folder": "G/dangling"}, "folder-absent", "run.folder is 'G/dangling', which"),
    "too long a name": ({"folder": "G/" + "x" * 300}, "folder-absent", "run.folder is 'G/xxx"),
    "relative": ({"folder": "here"}, "folder-relative", "run.folder is 'here', which is no absolute path"),
    "no skills": ({"skillsDir": "G/gone"}, "skills-dir-absent", "run.skillsDir is 'G/gone', which is no"),
    "relative skills": ({"skillsDir": "here"}, "skills-dir-relative", "run.skillsDir is 'here', which is"),
    # Whose folder is elsewhere has its skills elsewhere, too.
    "neither": ({"folder": "G/gone", "skillsDir": "x"}, "folder-absent", "run.folder is 'G/gone', which"),
}


@pytest.mark.parametrize(("run", "reason", "words"), UNSERVED.values(), ids=UNSERVED)
def test_in_a_fleet_it_is_left_to_others_and_on_a_single_host_it_is_a_problem(ground, run, reason, words):
    run = {"folder": "G/here", **run}
    run = {field: value.replace("G", str(ground)) for field, value in run.items()}
    bad, good = cron("bad", "0 3 * * *", ground), cron("good", "0 3 * * *", ground / "link")
    bad["run"] |= run

    found = placed(bad, good)
    assert [one.id for one in found.served] == ["good"]
    assert [(one.id, one.reason) for one in found.unserved] == [("bad", UnservedReason(reason))]

    with pytest.raises(OperatorFileError) as raised:
        placed(good, bad, fleet_mode=False)
    (problem,) = raised.value.problems
    place = 'trigger at index 1 (cron trigger "bad"): '
    assert problem.startswith(f"f: {place}{words.replace('G', str(ground))}")
    assert raised.value.places == (place + words.partition(" ")[0],)


def test_every_problem_is_told_at_once(ground):
    entries = [cron(str(number), "0 3 * * *", ground / "gone") for number in range(3)]

    with pytest.raises(OperatorFileError) as raised:
        placed(*entries, fleet_mode=False)
    assert len(raised.value.problems) == 3


def test_a_host_whose_zone_has_no_name_serves_what_names_its_own(ground):
    entries = [cron("own", "0 3 * * *", ground, tz="Asia/Tokyo"), cron("hosts", "0 3 * * *", ground)]

    assert [(one.id, one.zone) for one in placed(*entries).served] == [
        ("own", "Asia/Tokyo"),
        ("hosts", "Europe/Paris"),
    ]
    nameless = placed(*entries, host_zone="")
    assert [one.id for one in nameless.served] == ["own"]
    assert [one.reason for one in nameless.unserved] == [UnservedReason.ZONE_UNKNOWN]
    with pytest.raises(OperatorFileError, match=r"on\.tz is not set, and this host's own time zone"):
        placed(*entries, fleet_mode=False, host_zone="")


def test_a_folder_has_one_name_its_real_path(ground):
    direct, by_link = cron("direct", "0 3 * * *", ground / "here"), cron("link", "0 3 * * *", ground / "link")

    served = placed(direct, by_link).served

    assert {one.job().folder for one in served} == {str(ground / "here")}


def test_an_id_that_no_jobs_id_could_hold_is_not_served(ground):
    long = cron("x" * 178, "0 3 * * *", ground)

    assert [one.reason for one in placed(long).unserved] == [UnservedReason.ID_TOO_LONG]
    with pytest.raises(OperatorFileError, match=r"on\.id is 'x+\.\.\., which no job's id can hold"):
        placed(long, fleet_mode=False)


def test_only_schedules_have_a_place(ground):
    comment = {"on": {"type": "comment", "phrase": "/pi"}, "run": {"kind": "github", "flow": "fix"}}

    assert placed(comment, fleet_mode=False) == Placed()
