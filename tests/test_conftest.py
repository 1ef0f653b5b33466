"""The last line of a test run: how many tests were skipped and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import pytest
from tests.conftest import absent

def test_passes(): pass
@pytest.mark.skip(reason="not today")
def test_one(): pass
def test_two(): absent("no engine")
def test_three(): pytest.skip("no engine")
"""


def run(folder, *, tests=TESTS, ci, options=()):
    (folder / "test_some.py").write_text(tests)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.conftest"),
            *("-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder), *options, str(folder)),
        ],
        cwd=ROOT,
        env={
            **environment,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **({"CI": "true"} if ci else {}),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("options", [(), ("-q",)], ids=["plain", "quiet"])
def test_it_counts_the_skips_by_reason(tmp_path, options):
    done = run(tmp_path, ci=False, options=options)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "skipped: 3 (no engine: 2, not today: 1)"


def test_nothing_skipped_is_said_too(tmp_path):
    done = run(tmp_path, tests="def test_passes(): pass", ci=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "skipped: 0"


def test_in_ci_a_skip_is_a_failure_however_it_came_about(tmp_path):
    done = run(tmp_path, tests="import pytest\ndef test_three(): pytest.skip('no engine')", ci=True)

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "skipped: 1 (no engine: 1)"
