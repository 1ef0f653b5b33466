"""From enqueue to start on an idle worker, 95th percentile, against stock RQ's SimpleWorker."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from dispatch.jobs import local_job
from dispatch.queue.producer import Producer
from tests.bench import product
from tests.bench.peer import nothing
from tests.bench.report import report
from tests.bench.server import valkey

JOBS = 150
_WORKER = "from rq.cli import main; main()"


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def ours() -> float:
    """Milliseconds from the enqueue to the job's start, as both stand in its hash and the worker's marks."""
    with valkey() as url, tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        client = redis.Redis.from_url(url)
        producer = Producer(client)
        waited = []
        with product.running(Path(home) / "state", url, concurrency=4, null=True):
            for number in range(JOBS):
                begun = time.time()
                job = local_job(f"/srv/folder-{number}", task="nothing")
                producer.enqueue("pi-jobs", f"bench-{number}", job, scope_hash=f"{number:016x}")
                waited.append(_started_at(client, f"rq:job:bench-{number}") - begun)
        return p95(waited) * 1000


def simple() -> float:
    """The same of a SimpleWorker in a process of its own."""
    with valkey() as url:
        client = redis.Redis.from_url(url)
        queue = Queue("peer", connection=client, serializer=JSONSerializer)
        words = (
            "worker",
            "--quiet",
            "--worker-class",
            "rq.SimpleWorker",
            "--serializer",
            "rq.serializers.JSONSerializer",
        )
        worker = subprocess.Popen(
            [sys.executable, "-c", _WORKER, *words, "--url", url, "peer"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).resolve().parents[2],
        )
        try:
            while not client.scard("rq:workers:peer"):
                time.sleep(0.05)
            waited = []
            for number in range(JOBS):
                begun = time.time()
                queue.enqueue(nothing, job_id=f"peer-{number}")
                waited.append(_started_at(client, f"rq:job:peer-{number}") - begun)
            return p95(waited) * 1000
        finally:
            worker.terminate()
            worker.wait(timeout=30)


def _started_at(client: redis.Redis, key: str) -> float:
    """Wait until the job is over and read when it had started, by the clock that both share here."""
    from datetime import datetime

    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        status, started = client.hmget(key, ["status", "started_at"])
        if status == b"finished" and started:
            # A breath, so that the next one finds an idle worker.
            time.sleep(0.02)
            return datetime.fromisoformat(started.decode()).timestamp()
        time.sleep(0.002)
    raise TimeoutError(key)


def bench(keys: tuple[str, ...]) -> None:
    report(*keys, ours=ours(), peer=simple())
