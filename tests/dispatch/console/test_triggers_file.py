"""The file as a command finds it: its schedules are those that this host's worker puts into its table."""

from __future__ import annotations

import json

import pytest

from dispatch.console import triggers_file
from dispatch.schedules.placement import place


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
