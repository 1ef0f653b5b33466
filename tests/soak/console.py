"""Check 2 of the console: a long history, 50 hosts and 10,000 waiting jobs; how long each page takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import redis
from django.contrib.admin.utils import quote

from dispatch.jobs import local_job
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.producer import Producer
from hosts import keys
from hosts.names import SHARED_QUEUE, host_queue
from tests.harness.long_history import HOSTS
from tests.harness.postgres_server import missing, postgres_server
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import ROOT
from tests.soak.stage import Clock, stage

_RUNS, _QUEUE, _INSIGHTS = "/admin/runs/run/", "/admin/queue/", "/admin/insights/"
#: Each page, each filter of each page, and each part that a page fetches again.
PAGES: tuple[tuple[str, Mapping[str, str]], ...] = (
    *((path, {}) for path in ("/admin/", "/admin/fleet/", "/admin/switch/", "/admin/log/", "/admin/banner/")),
    *((path, {}) for path in (_RUNS, _QUEUE, _INSIGHTS, "/admin/dispatch/schedule/")),
    *((f"/admin/overview/{part}/", {}) for part in ("now", "history", "care")),
    *((f"/admin/fleet/{part}", {}) for part in ("live/", "host/build-07/", "host/build-07/live/")),
    *((f"/admin/fleet/host/build-07/{what}/", {}) for what in ("drain", "undrain", "reroute")),
    *((f"/admin/switch/{what}/", {}) for what in ("pause", "resume", "resume-fleet", "stop")),
    *((f"/admin/switch/{what}/", {"queue": "pi-jobs@build-07"}) for what in ("pause", "resume")),
    ("/admin/switch/stop/", {"host": "build-07"}),
    *(
        (f"/admin/{part}/", {})
        for part in ("switch/state", "settings", "settings/live", "dispatch/schedule/live", "auth/user")
    ),
    *(
        (f"/admin/settings/{part}/", {})
        for part in ("overlay", "windows", "windows/add", "limits", "limits/add")
    ),
    ("/admin/settings/taken/overlay/", {}),
    ("/admin/dispatch/schedule/add/", {}),
    ("/admin/dispatch/schedule/", {"q": "night"}),
    ("/admin/log/", {"older_than": "1"}),
    *((f"{_QUEUE}{part}/", {}) for part in ("lists", "tabs", "job/local-0000000000000001")),
    *(("/admin/fleet/", {"show": show}) for show in ("look-after", "alive", "late", "gone")),
    ("/admin/fleet/", {"q": "build-1"}),
    *((_RUNS, {"host": host}) for host in ("build-00", "build-49")),
    *((_RUNS, {"outcome": outcome}) for outcome in ("completed", "policy", "failed")),
    *((_RUNS, {"reason": reason}) for reason in ("-", "stalled", "deadline")),
    *((_RUNS, {"kind": kind}) for kind in ("local", "gitlab")),
    *((_RUNS, {"flow": flow}) for flow in ("local-flow-1", "gitlab-flow-59", "no-such-flow")),
    *((_RUNS, {"model": model}) for model in ("claude-sonnet-x", "gemini-3")),
    *((_RUNS, {"q": beginning}) for beginning in ("local-", "gh-1", "nothing")),
    *((_RUNS, {"since": since}) for since in ("24h", "30d")),
    (_RUNS, {"until": "200d", "kind": "gitlab", "outcome": "failed", "host": "build-31"}),
    (_RUNS, {"host": "build-09", "reason": "worker-lost", "kind": "gitlab", "flow": "gitlab-flow-41"}),
    (_RUNS, {"model": "gpt-5", "flow": "github-flow-2", "outcome": "policy", "since": "90d"}),
    *((_INSIGHTS, {"span": span}) for span in ("24h", "7d", "30d", "90d", "400d")),
    *((_INSIGHTS, {"span": "400d", "by": by}) for by in ("model", "trigger", "scope", "host", "kind", "end")),
    *((_QUEUE, {"section": section}) for section in ("running", "waiting", "deferred", "held")),
    *((_QUEUE, {"queue": queue}) for queue in ("pi-jobs", "pi-jobs@build-07")),
    (_QUEUE, {"section": "waiting", "page": "90"}),
    (_QUEUE, {"live": "1"}),
    ("/admin/queue/job/local-0000000000000001/now/", {}),
    (_QUEUE, {"id": "local-00000000000000"}),
    *((path, {}) for path in ("/api/status", "/api/fleet", "/api/queue", "/api/runs", "/metrics")),
    ("/api/runs", {"outcome": "failed", "kind": "gitlab", "since": "90d", "limit": "200"}),
    ("/api/queue", {"queue": "pi-jobs", "limit": "1000"}),
)
_MOST_SECONDS = 0.5
_GROWTH_MIB = 48


def run(*, short: bool) -> dict[str, object]:
    """A million runs on SQLite and on PostgreSQL; short: twenty thousand, on SQLite."""
    if short:
        return {"sqlite": _measure(20_000, waiting=1_000, rounds=4)}
    assert missing() is None, missing()
    with postgres_server() as url:
        on_postgres = _measure(1_000_000, waiting=10_000, rounds=25, environment={"DATABASE_URL": url})
    return {"sqlite": _measure(1_000_000, waiting=10_000, rounds=25), "postgresql": on_postgres}


def _measure(
    count: int, *, waiting: int, rounds: int, environment: Mapping[str, str] | None = None
) -> dict[str, object]:
    clock = Clock()
    home = Path(tempfile.mkdtemp(prefix="pd-console-"))
    with stage(containers=False) as (fleet, _):
        worker = fleet.worker(HOSTS[7], environment={"PI_DAILY_CAP": "100", **(environment or {})})
        subprocess.run(
            [sys.executable, "-m", "tests.harness.long_history", str(count)],
            env=dict(worker.environment),
            cwd=ROOT,
            check=True,
        )
        _wait_in_line(fleet.client, waiting)
        filled = clock.seconds
        with WebProcess(worker.environment, home) as web:
            took, growth = _ask_everything(web, fleet.client, rounds)
        slow = {page: worst for page, worst in took.items() if worst > _MOST_SECONDS}
        assert not slow, slow
        assert growth < _GROWTH_MIB, growth
        slowest = max(took, key=lambda page: took[page])
        return {
            "seconds": clock.seconds,
            "filledAfter": filled,
            "runs": count,
            "pages": len(took),
            "slowest": slowest,
            "p95": took[slowest],
            "growthMiB": growth,
        }


def _wait_in_line(client: redis.Redis, waiting: int) -> None:
    producer = Producer(client)
    for number in range(waiting):
        queue = "pi-jobs" if number % 2 else host_queue(HOSTS[number // 2 % len(HOSTS)])
        job = local_job("/srv/site", task="Do it.")
        producer.enqueue(queue, f"local-{number:016x}", job, keeping=LOCAL, scope_hash=f"{number % 40:016x}")


def _ask_everything(web: WebProcess, client: redis.Redis, rounds: int) -> tuple[dict[str, float], float]:
    """Ask for each page so often; the 95th percentile of each (s), and what the process grew by (MiB)."""
    took: dict[str, list[float]] = {}
    with _asking(web) as ask:
        (run,) = json.loads(ask("/api/runs?limit=1")[1])["runs"]
        pages = [*map(_address, PAGES), f"{_RUNS}{quote(run['jobId'])}/"]
        for page in pages:
            ask(page)
        before = _memory(web.pid)
        for _ in range(rounds):
            _beat(client)
            for page in pages:
                took.setdefault(page, []).append(ask(page)[0])
    return {page: _p95(times) for page, times in took.items()}, round(_memory(web.pid) - before, 1)


def _beat(client: redis.Redis) -> None:
    """Write every host's row as its own beats would have."""
    seconds, microseconds = client.time()
    now = seconds * 1000 + microseconds // 1000
    pipeline = client.pipeline(transaction=False)
    for number, host in enumerate(HOSTS):
        host_id = f"{number:016x}"
        row: dict[Any, Any] = {"name": host, "hostId": host_id, "beatAt": now, "clockAt": now, "tz": "UTC"}
        row |= {"version": "0.1.0", "concurrency": 4, "slotsUsed": 1, "routes": "true"}
        pipeline.hset(keys.host_row(host), mapping=row)
        pipeline.sadd(keys.HOSTS_LIVE, host)
        pipeline.sadd(keys.QUEUES_KNOWN, SHARED_QUEUE, host_queue(host))
        for queue in (SHARED_QUEUE, host_queue(host)):
            pipeline.zadd(f"takers:{queue}", {f"{host_id}-00000001": now})
    pipeline.execute()


def _address(page: tuple[str, Mapping[str, str]]) -> str:
    path, filters = page
    return f"{path}?{urlencode(filters)}" if filters else path


@contextmanager
def _asking(web: WebProcess) -> Iterator[Callable[[str], tuple[float, bytes]]]:
    """Give what asks for a page, as an admin: how long it took (s), and the page."""
    address = urlsplit(web.url)
    cookie = "; ".join(f"{name}={value}" for name, value in web.cookies("admin").items())

    def ask(page: str) -> tuple[float, bytes]:
        connection = HTTPConnection(str(address.hostname), address.port, timeout=30)
        began = time.perf_counter()
        connection.request("GET", page, headers={"Cookie": cookie})
        answer = connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - began
        connection.close()
        assert answer.status == 200, (page, answer.status, body[-300:])
        return took, body

    yield ask


def _p95(times: list[float]) -> float:
    return round(sorted(times)[max(0, -(-len(times) * 95 // 100) - 1)], 3)


def _memory(pid: int) -> float:
    """Give the resident memory of the web process and its children, in MiB."""
    pids = [pid, *_children(pid)]
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
