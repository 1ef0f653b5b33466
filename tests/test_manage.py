"""The command line itself, whatever command it runs."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from tests.dispatch.consolekit import MANAGE, Console


@pytest.mark.parametrize("words", [["fleet"], ["status"], ["queue", "--json"]], ids=" ".join)
def test_a_reader_that_has_had_enough_costs_no_traceback(valkey, valkey_url, tmp_path, words):
    console = Console(tmp_path, url=valkey_url)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*MANAGE, *words],
            env=console.environment({}),
            cwd=console.home,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    finally:
        os.close(writing)

    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


@pytest.mark.parametrize("words", ["help", "fleet --json"])
@pytest.mark.parametrize(
    ("closed", "why"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")]
)
def test_an_output_that_takes_nothing_is_said_in_a_line(valkey, valkey_url, tmp_path, words, closed, why):
    said = _typed(Console(tmp_path, url=valkey_url), f"{words} {closed}")

    assert said.returncode == 1
    assert said.stderr.splitlines()[-1] == f"Standard output cannot be written: {why}."
    assert "Traceback" not in said.stderr
    assert "Exception" not in said.stderr


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_what_is_closed_changes_no_exit_code_of_a_refusal(tmp_path, closed):
    said = _typed(Console(tmp_path), f"triggers --check no.json {closed}")

    assert (said.returncode, said.stderr) == (2, "")


def _typed(console: Console, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(MANAGE)} {line}"],
        env=console.environment({}),
        cwd=console.home,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
