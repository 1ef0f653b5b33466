"""The command line itself, whatever command it runs."""

from __future__ import annotations

import os
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
