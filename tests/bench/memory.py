"""Resident memory of the worker at concurrency 16 under load."""

from __future__ import annotations

import tempfile
from pathlib import Path

import redis

from dispatch.jobs import local_job
from dispatch.queue.producer import Producer
from runs.workspace.scope import hash16
from tests.bench import product
from tests.bench.engine import engine
from tests.bench.folders import make_folders
from tests.bench.report import report
from tests.bench.server import valkey
from tests.harness.images import build_fake_image

JOBS = 96


def bench(keys: tuple[str, ...]) -> None:
    with engine() as client:
        tag = build_fake_image(client)
    most = 0.0
    with valkey() as url, tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        folders = make_folders(Path(home), JOBS)
        producer = Producer(redis.Redis.from_url(url))
        for number, folder in enumerate(folders):
            job = local_job(str(folder), task="nothing")
            producer.enqueue("pi-jobs", f"bench-{number}", job, scope_hash=hash16(str(folder)))

        def look() -> None:
            nonlocal most
            most = max(most, resident_mib(worker.pid))

        with product.running(Path(home) / "state", url, concurrency=16, null=False, image=tag) as worker:
            product.until_completed(worker, JOBS, meanwhile=look)
    report(*keys, ours=most, peer=None)


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
