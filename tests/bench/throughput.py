"""Jobs a second through the whole ladder, record and row included, against stock RQ doing nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer

from dispatch.jobs import local_job
from dispatch.queue.producer import Producer
from tests.bench import product
from tests.bench.peer import nothing
from tests.bench.report import report
from tests.bench.server import valkey

JOBS = 600
ROUNDS = 3


def ours() -> float:
    """Jobs a second of the product, from the start of the worker's work to the last record in its table."""
    with valkey() as url, tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        client = redis.Redis.from_url(url)
        producer = Producer(client)
        for number in range(JOBS):
            job = local_job(f"/srv/folder-{number}", task="nothing")
            producer.enqueue("pi-jobs", f"bench-{number}", job, scope_hash=f"{number:016x}")
        state = Path(home) / "state"
        with product.running(state, url, concurrency=4, null=True) as worker:
            begun = time.perf_counter()
            product.until_completed(worker, JOBS)
            _until(lambda: not client.exists(*client.keys("records:pending:*") or ["none"]))
            took = time.perf_counter() - begun
        assert len(list((state / "logs").glob("*.json"))) == JOBS
        return JOBS / took


def simple() -> float:
    """Jobs a second of RQ's SimpleWorker, which runs the function in its own process."""
    with valkey() as url:
        client = redis.Redis.from_url(url)
        queue = Queue("peer", connection=client, serializer=JSONSerializer)
        for number in range(JOBS):
            queue.enqueue(nothing, job_id=f"peer-{number}")
        worker = SimpleWorker([queue], connection=client, serializer=JSONSerializer)
        begun = time.perf_counter()
        worker.work(burst=True, logging_level="ERROR")
        return JOBS / (time.perf_counter() - begun)


def pool() -> float:
    """Jobs a second of a stock pool of four workers, from the first job taken to the last one finished."""
    with valkey() as url:
        client = redis.Redis.from_url(url)
        queue = Queue("peer", connection=client)
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "rq.cli", "worker", "--quiet", "--url", url, "peer"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).resolve().parents[2],
            )
            for _ in range(4)
        ]
        try:
            _until(lambda: client.scard("rq:workers:peer") == 4)
            begun = time.perf_counter()
            queue.enqueue_many([Queue.prepare_data(nothing, job_id=f"peer-{n}") for n in range(JOBS // 3)])
            _until(lambda: queue.finished_job_registry.get_job_count(cleanup=False) == JOBS // 3)
            return (JOBS // 3) / (time.perf_counter() - begun)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(timeout=30)


def _until(holds: object, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the benchmark did not come to its end")
        time.sleep(0.01)


PEERS = {"throughput-simple": simple, "throughput-pool": pool}


def bench(keys: tuple[str, ...]) -> None:
    rounds = [(ours(), *(PEERS[key]() for key in keys)) for _ in range(ROUNDS)]
    mine, *peers = (statistics.median(column) for column in zip(*rounds, strict=True))
    for key, peer in zip(keys, peers, strict=True):
        report(key, ours=mine, peer=peer)
