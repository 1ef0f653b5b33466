from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.db.utils import ConnectionHandler

from pidispatch_site import databases, schema
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory

ROOT = Path(__file__).parents[2]
CODE = """
import django; django.setup()
from django.conf import settings
from pidispatch_site import databases, schema
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory
print(schema.migrate_if_needed(StateDirectory(settings.PIDISPATCH.state_dir)), schema.is_current())
"""


@pytest.mark.django_db
def test_nothing_is_done_to_a_current_database(tmp_path):
    assert schema.is_current()
    assert schema.migrate_if_needed(StateDirectory(tmp_path / "s")) is False
    assert not (tmp_path / "s").exists()


def test_a_database_that_is_not_there_is_said(tmp_path, monkeypatch, django_db_blocker):
    handler = ConnectionHandler({"default": databases.settings(None, default=tmp_path)})
    monkeypatch.setattr(schema, "connections", handler)

    with django_db_blocker.unblock(), pytest.raises(OperationalError, match="cannot be used: unable to open"):
        schema.is_current()


def test_of_those_who_come_at_once_one_migrates_and_all_go_on(tmp_path):
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings",
        "PI_STATE_DIR": str(tmp_path / "s"),
        "HOME": str(tmp_path),
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CODE],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]

    answers = [process.communicate(timeout=60) for process in started]

    assert sorted(out for out, _ in answers) == ["False True\n", "False True\n", "True True\n"], answers
