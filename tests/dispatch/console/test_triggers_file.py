"""The file as a command finds it: its schedules are those that this host's worker puts into its table."""

from __future__ import annotations

import json
from zoneinfo import available_timezones

import pytest

from dispatch.console import triggers_file
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.zones import zone_named
from dispatch.schedules.placement import place
from hosts.zone import zone_name


@pytest.mark.parametrize("name", ["Factory", "localtime"])
def test_a_host_whose_zone_is_none_is_told_at_the_place_of_the_schedule(tmp_path, name):
    run = {"kind": "local", "folder": str(tmp_path), "flow": "audit", "task": "Look."}
    path = tmp_path / "triggers.json"
    on = {"type": "cron", "id": "a", "pattern": "@daily"}
    path.write_text(json.dumps({"triggers": [{"on": on, "run": run}]}))

    file = triggers_file.of(path, {"TZ": name}, name=None)

    assert (file.zone, file.schedules["a"].zone) == ("", "")
    with pytest.raises(OperatorFileError, match=r"on\.tz is not set, and this host's own time zone"):
        place(file.triggers, fleet_mode=False, host_zone=file.zone, name=str(path))


def test_every_zone_of_a_host_is_one_that_schedules_know():
    told = {zone_name({"TZ": name}) for name in available_timezones()} - {""}

    assert len(told) > 300
    assert all(zone_named(name) is not None for name in told)


@pytest.mark.parametrize("written", ["site", "site/", "link", "link/../site"])
def test_a_schedule_is_what_the_table_of_this_host_has(tmp_path, written):
    (tmp_path / "site").mkdir()
    (tmp_path / "link").symlink_to("site")
    run = {"kind": "local", "folder": f"{tmp_path}/{written}", "flow": "audit", "task": "Look."}
    path = tmp_path / "triggers.json"
    path.write_text(
        json.dumps({"triggers": [{"on": {"type": "cron", "id": "a", "pattern": "@daily"}, "run": run}]})
    )

    file = triggers_file.loaded(path, zone="UTC", name=None)

    (installed,) = place(file.triggers, fleet_mode=False, host_zone="UTC", name="").served
    assert file.schedules == {"a": installed}
