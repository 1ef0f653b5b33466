"""The settings in processes of their own, under environments that no test process could live in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from pidispatch_site.known_names import LATER
from pidispatch_site.variables import VARIABLES

ROOT = Path(__file__).parents[2]
NAMES = [row.name for row in VARIABLES if row.name != "PI_ENV_FILE"]
# The system needs these to run Python at all.
BASE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
GARBAGE = {
    "control characters": "\x01\x1b[31m\n\t",
    "no utf-8": "\udcff\udcfe",
    "huge": "9" * 10_000,
    "a half url": "postgres://[::1",
    "templates": "${HOME} %s {0} $(id)",
    "spaces": "   ",
}


def run(code_or_command, folder, **environment):
    return subprocess.run(
        [sys.executable, *code_or_command],
        cwd=folder,
        env=BASE
        | {"PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings"}
        | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


SETUP = "import django; django.setup(); from django.conf import settings; print('up', settings.DEBUG)"


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_django_starts_with_garbage_in_every_variable(tmp_path, garbage):
    everything = dict.fromkeys(
        [*NAMES, *LATER, "PI_ENV_FILE", "VALKEY_URL_FILE", "DATABASE_URL_FILE"], garbage
    )

    answer = run(["-c", SETUP], tmp_path, **everything)

    assert (answer.stdout, answer.returncode) == ("up False\n", 0), answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_django_starts_with_a_broken_file_in_the_folder(tmp_path):
    (tmp_path / ".env").write_bytes(b"\xff\nexport A=1\nPI_CONCURRENCY=x\nDATABASE_URL=nothing\n")

    assert run(["-c", SETUP], tmp_path).stdout == "up False\n"


def test_touching_the_configuration_says_everything_that_is_wrong(tmp_path):
    (tmp_path / ".env").write_text("export A=1\nPI_CONCURRENCY=x\n")
    code = (
        "from django.conf import settings\n"
        "try: settings.PIDISPATCH.concurrency\n"
        "except Exception as e: print(e.exit_code, e)"
    )

    answer = run(["-c", code], tmp_path, PI_EGRESS="maybe")

    assert answer.stdout.startswith("2 ")
    assert len(answer.stdout.splitlines()) == 3


def test_the_file_in_the_folder_counts_and_the_process_wins(tmp_path):
    (tmp_path / ".env").write_text("PI_CONCURRENCY=7\nPI_DAILY_CAP=8\n")
    code = "from django.conf import settings as s; print(s.PIDISPATCH.concurrency, s.PIDISPATCH.daily_cap)"

    assert run(["-c", code], tmp_path, PI_DAILY_CAP="9").stdout == "7 9\n"


def test_a_command_that_needs_the_database_says_what_is_wrong_with_it(tmp_path):
    answer = run([str(ROOT / "manage.py"), "migrate"], tmp_path, DATABASE_URL="mysql://u:hunter2@h/n")

    assert answer.returncode == 2
    assert answer.stderr.startswith("DATABASE_URL is set to a value that is not shown; expected postgres://")
    assert "hunter2" not in answer.stderr + answer.stdout
    assert "Traceback" not in answer.stderr


def test_a_command_that_needs_none_runs_under_a_broken_one(tmp_path):
    answer = run(
        [str(ROOT / "manage.py"), "valkey", "stop"],
        tmp_path,
        DATABASE_URL="nothing",
        PI_CONCURRENCY="x",
        PI_STATE_DIR=str(tmp_path / "s"),
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == f"The embedded Valkey server of {tmp_path}/s was not running.\n"


def test_migrating_a_fresh_machine_makes_a_private_directory(tmp_path):
    answer = run([str(ROOT / "manage.py"), "migrate"], tmp_path, PI_STATE_DIR=str(tmp_path / "s"))

    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "s" / "db.sqlite3").exists()


def test_the_settings_as_django_prints_them_hold_no_secret(tmp_path):
    answer = run(
        [str(ROOT / "manage.py"), "diffsettings", "--all"],
        tmp_path,
        PI_STATE_DIR=str(tmp_path / "s"),
        ANTHROPIC_API_KEY="hunter2",
        VALKEY_URL="redis://:hunter2@h",
    )

    assert answer.returncode == 0
    assert "PIDISPATCH_ENVIRONMENT" in answer.stdout
    assert "hunter2" not in answer.stdout
    assert not (tmp_path / "s").exists()


def test_library_lines_go_to_stderr_from_warning_on(tmp_path):
    code = (
        "import django; django.setup(); import logging\n"
        "for name in ('rq.worker', 'django.request', 'docker', 'py'):\n"
        "    logging.getLogger(name).info('info'); logging.getLogger(name).warning('warned %s', name)"
    )

    answer = run(["-c", code], tmp_path)

    assert answer.stdout == ""
    assert [line.split()[1] for line in answer.stderr.splitlines()] == [
        "rq.worker",
        "django.request",
        "docker",
        "py",
    ]


def test_debug_is_off_and_nothing_can_turn_it_on(tmp_path):
    assert settings.DEBUG is False
    assert run(["-c", SETUP], tmp_path, DEBUG="1", DJANGO_DEBUG="1").stdout == "up False\n"


def test_the_tests_themselves_live_in_an_environment_of_their_own():
    config = settings.PIDISPATCH

    assert Path.home() not in config.state_dir.parents
    assert "6379" not in config.valkey_url


def test_a_command_that_stops_work_runs_in_a_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec {sys.executable} {ROOT / 'manage.py'} pause"

    done = subprocess.run(
        ["sh", "-c", script],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VALKEY_URL": f"unix://{tmp_path}/nobody"},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert "Traceback" not in done.stderr


DEPLOYED = """
import django; django.setup()
from django.core.management import call_command
call_command("check", deploy=True, fail_level="WARNING")
from django.conf import settings as s
print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.SECURE_SSL_REDIRECT, s.SECURE_HSTS_SECONDS > 0)
"""


def test_behind_tls_the_check_of_deployments_finds_nothing(tmp_path):
    variables = {"PI_WEB_ORIGINS": "https://pi.example.org", "PI_STATE_DIR": str(tmp_path / "s")}

    answer = run(["-c", DEPLOYED], tmp_path, **variables)

    assert (answer.returncode, answer.stderr) == (0, "")
    shown = answer.stdout.splitlines()[-1]
    assert shown == "__Host-pidispatch_session __Host-pidispatch_csrf True True"


def test_without_tls_the_check_of_deployments_says_what_settles_all_it_finds(tmp_path):
    answer = run(["-c", DEPLOYED], tmp_path, PI_STATE_DIR=str(tmp_path / "s"))

    found = set(re.findall(r"security\.(W\d+)\)", answer.stderr))
    ours = answer.stderr.partition("(pidispatch.W001)")[2]
    assert found == {"W004", "W008", "W012", "W016"}
    assert [name for name in found if name not in ours] == []
    assert "PI_WEB_ORIGINS=https://" in ours
