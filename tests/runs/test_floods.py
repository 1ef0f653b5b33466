"""Jobs that print without end: right outcome, bounded memory and disk, nobody else held up (check 9)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from runs import labels
from runs.abort import Abort
from runs.output import CUT
from runs.runner import Runner
from runs.watcher import Watcher
from tests.runs.jobs import exit_line, until

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def runner(docker_backend, jobs) -> Iterator[Runner]:
    watcher = Watcher(docker_backend, labels={labels.HOST: jobs.host_id, labels.BOOT: jobs.boot})
    yield Runner(docker_backend, watcher)
    watcher.close()


@contextmanager
def memory_watched() -> Iterator[list[int]]:
    """The growth of this process's resident memory in bytes, as a list of what was seen."""
    seen: list[int] = [0]
    before, over = _resident_bytes(), threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            seen.append(_resident_bytes() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    yield seen
    over.set()
    thread.join()


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param({"output-bytes": str(40 << 20)}, id="40 MB"),
        pytest.param({"line-bytes": str(64 << 20)}, id="a line of 64 MB"),
    ],
)
def test_a_flood_ends_as_its_code_says_and_costs_neither_memory_nor_disk(runner, jobs, orders):
    raw_log = jobs.folder / "flood.log"

    with memory_watched() as growth, ThreadPoolExecutor(2) as pool:
        flood = pool.submit(runner.run, jobs.spec("flood", orders), abort=Abort(), raw_log=raw_log)
        until(lambda: raw_log.exists() and raw_log.stat().st_size > 10_000)
        began = time.monotonic()
        other = pool.submit(runner.run, jobs.spec("other"), abort=Abort()).result()
        other_took = time.monotonic() - began
        result = flood.result()

    assert (result.exit_code, other.exit_code) == (0, 0)
    assert exit_line(result.tail)["event"] == "exit"
    assert max(growth) < 16 << 20
    assert raw_log.stat().st_size < 12 << 20
    assert result.log_truncated
    assert raw_log.read_bytes().endswith(CUT + result.tail)
    assert other_took < 5


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
