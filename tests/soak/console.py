"""Check 2 of the console: a long history, 50 hosts and 10,000 waiting jobs; how long each page takes.

Each address of the site is asked for (`console_addresses`). A file that is downloaded has figures of its own:
its first bytes come as quickly as a page, and all of its 100,000 runs within a minute.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch.ids import rq_id
from hosts.names import SHARED_QUEUE
from runs.files import RecordFiles
from tests.harness.postgres_server import missing, postgres_server
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import ROOT, WorkerProcess, until
from tests.soak.console_addresses import RUNS, Address, There, every, forms
from tests.soak.console_asking import Asking
from tests.soak.console_files import Files
from tests.soak.console_filling import HERE, Amounts, Filling, doomed
from tests.soak.stage import Clock, stage

_MOST_SECONDS = 0.5
_MOST_QUERIES = 15
_GROWTH_MIB = 48
# Of a file, which has no more runs than these.
_FILE_SECONDS, _FILE_RUNS = 60, 100_000
_LOG_LINES = 40_000
#: Tables that grow without end.
_HISTORIES = ("runs_run", "django_admin_log")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """How much there is, and how often each address (of so many one) is asked for by HTTP."""

    runs: int
    entries: int
    jobs: Amounts
    rounds: int
    one_of: int = 1


_SHORT = _Size(
    runs=20_000, entries=2_000, jobs=Amounts(waiting=1_000, asleep=150, cancelled=250), rounds=1, one_of=3
)
_FULL = _Size(
    runs=1_000_000, entries=100_000, jobs=Amounts(waiting=10_000, asleep=3_000, cancelled=1_000), rounds=20
)


def run(*, short: bool) -> dict[str, object]:
    """A million runs on SQLite and on PostgreSQL, each address asked for twenty times over HTTP.

    Short: twenty thousand, on SQLite. Without HTTP each address is there once, is quick and asks the database
    no more than it may; over HTTP each third one, each form and each file is there and quick. Whether the
    process grows by what it is asked for, this form cannot tell.
    """
    if short:
        return {"sqlite": _measure(_SHORT)}
    assert missing() is None, missing()
    with postgres_server() as url:
        on_postgres = _measure(_FULL, environment={"DATABASE_URL": url})
    return {"sqlite": _measure(_FULL), "postgresql": on_postgres}


def _measure(size: _Size, *, environment: Mapping[str, str] | None = None) -> dict[str, object]:
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="pd-console-") as folder, stage(containers=False) as (fleet, _):
        home = Path(folder)
        files = Files(home / "files")
        more = {"PI_DAILY_CAP": "100", **files.environment, **(environment or {})}
        worker = fleet.worker(HERE, environment=more)
        _python(worker, "tests.harness.long_history", str(size.runs))
        filling = Filling(fleet.client, files)
        filling.fill(size.jobs)
        filling.beat()
        filled = clock.seconds
        with WebProcess(worker.environment, home) as web:
            there = _there(worker, filling, Asking(web), size)
            figures = _ask_everything(web, worker, filling, there, size)
    return {"seconds": clock.seconds, "filledAfter": filled, "runs": size.runs, **figures}


def _there(worker: WorkerProcess, filling: Filling, asking: Asking, size: _Size) -> There:
    """Fill what only a web process fills, and tell what there is to ask for."""
    people = json.loads(_python(worker, "tests.soak.console_people", str(size.entries)))
    (newest,) = _read(asking, "runs?limit=1")["runs"]
    log = RecordFiles(worker.state_dir / "logs").log_path(newest["jobId"])
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.write_text('{"event":"turn","text":"Looked through what had changed since."}\n' * _LOG_LINES)
    return There(
        runs=(newest["jobId"], newest["parentJobId"]),
        deep=_read(asking, "runs?until=300d&limit=1")["next"],
        jobs=filling.some(),
        waiting=filling.waiting,
        turn=_read(asking, f"queue?queue={SHARED_QUEUE}&limit=200")["next"],
        operation=_cancelled(asking, size.jobs.cancelled),
        cancelled=size.jobs.cancelled,
        **people,
    )


def _read(asking: Asking, address: str) -> dict[str, Any]:
    answer = asking.get(f"/api/{address}")
    assert answer.status == 200, answer.body[-300:]
    found: dict[str, Any] = json.loads(answer.body)
    return found


def _cancelled(asking: Asking, count: int) -> str:
    """Have the console cancel so many jobs in the background; the operation's id, once it is over."""
    tokens = " ".join(rq_id(doomed(place)) for place in range(count))
    answer = asking.post(
        "/admin/queue/cancel/", {"jobs": tokens, "confirmed": "1", "reason": "they are many"}
    )
    assert answer.status == 302, (answer.status, answer.body[-300:])
    address = answer.headers["Location"]
    all_of_them = f"{count} of {count} jobs cancelled.".encode()
    until(lambda: all_of_them in asking.get(f"{address}progress/").body, seconds=60, what="all are cancelled")
    return address.strip("/").rpartition("/")[2]


def _ask_everything(
    web: WebProcess, worker: WorkerProcess, filling: Filling, there: There, size: _Size
) -> dict[str, object]:
    """Ask for each address so often: how long it takes, and what the process grows by from round to round."""
    asking, pages = Asking(web), every(there)
    queries, inside = _inside(worker, pages)
    addresses = [*pages[:: size.one_of], *forms(there)]
    for address in addresses:
        _asked(asking, address)
    before = _memory(web.pid)
    took = {text: [seconds] for text, seconds in inside.items()}
    for _ in range(size.rounds):
        filling.beat()
        for address in addresses:
            took.setdefault(str(address), []).append(_asked(asking, address))
    worst = {text: _p95(times) for text, times in took.items()}
    slow = {text: seconds for text, seconds in worst.items() if seconds > _MOST_SECONDS}
    assert not slow, slow
    files = _download(asking, size)
    growth = round(_memory(web.pid) - before, 1)
    assert growth < _GROWTH_MIB, growth
    slowest = max(worst, key=lambda text: worst[text])
    figures = {
        "pages": len(took),
        "slowest": slowest,
        "p95": worst[slowest],
        **files,
        "queries": queries,
    }
    # One round says what a cache takes, not whether it ends.
    return {**figures, "growthMiB": growth} if size.rounds > 1 else figures


def _asked(asking: Asking, address: Address) -> float:
    answer = asking.post(address.text, dict(address.form)) if address.form else asking.get(address.text)
    assert answer.status == address.status, (str(address), answer.status, answer.body[-300:])
    return answer.seconds


def _download(asking: Asking, size: _Size) -> dict[str, object]:
    """Download the whole list as each kind of file."""
    figures: dict[str, object] = {}
    for kind in ("csv", "json"):
        file = asking.stream(f"{RUNS}export.{kind}")
        assert file.first < _MOST_SECONDS, (kind, file)
        assert file.seconds < _FILE_SECONDS, (kind, file)
        assert file.lines >= min(size.runs, _FILE_RUNS), (kind, file)
        figures[kind] = {
            "first": round(file.first, 3),
            "seconds": round(file.seconds, 1),
            "lines": file.lines,
        }
    return figures


def _inside(worker: WorkerProcess, pages: Sequence[Address]) -> tuple[int, Mapping[str, float]]:
    """Ask for each once without HTTP: the most statements of one to the database, and seconds by address.

    None counts a history; every route of the site is among them, and every parameter that a page reads.
    """
    texts = json.dumps([page.text for page in pages])
    found = json.loads(_python(worker, "tests.soak.console_queries", said=texts))
    assert not found["unasked"], f"no address of the soak leads to {found['unasked']}"
    assert not found["unread"], f"no address of the soak has the parameters {found['unread']}"
    assert found["statuses"] == {page.text: page.status for page in pages}
    statements: dict[str, list[str]] = found["statements"]
    many = {text: asked for text, asked in statements.items() if len(asked) > _MOST_QUERIES}
    assert not many, many
    counting = {text: one for text, asked in statements.items() for one in asked if _counts_all(one)}
    assert not counting, counting
    return max(map(len, statements.values())), found["seconds"]


def _counts_all(statement: str) -> bool:
    """Tell whether a statement counts the rows of a history; what was done to one account is none."""
    is_of_one = "object_id" in statement.partition("WHERE")[2]
    return "COUNT(" in statement.upper() and any(table in statement for table in _HISTORIES) and not is_of_one


def _python(worker: WorkerProcess, module: str, *arguments: str, said: str = "") -> str:
    """Run a module beside the worker's database; the last line of what it answers."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=dict(worker.environment),
        cwd=ROOT,
        input=said,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    # Events are written there, too.
    return done.stdout.splitlines()[-1] if done.stdout else ""


def _p95(times: list[float]) -> float:
    return round(sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)], 3)


def _memory(pid: int) -> float:
    """Give the resident memory of the web process and its children, in MiB."""
    pids = [pid, *_children(pid)]
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
