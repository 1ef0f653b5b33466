"""What the product costs per container: 100 jobs `true`, against the same containers made by a bare loop."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import docker
import redis

from dispatch.jobs import local_job
from dispatch.queue.producer import Producer
from runs.container import ISOLATION, build_spec
from runs.engine_requests import creation_body
from runs.request import JobUser, RunRequest
from runs.workspace.scope import hash16
from tests.bench import product
from tests.bench.engine import engine
from tests.bench.folders import make_folders
from tests.bench.report import report
from tests.bench.server import valkey
from tests.harness.images import CHANGES, _root, busybox

JOBS, THREADS, ROUNDS = 100, 4, 3
TAG = "pi-dispatch-bench:true"


def image(client: docker.DockerClient) -> str:
    """Make the image whose entry point is `true`."""
    repository, tag = TAG.split(":")
    changes = ['ENTRYPOINT ["/bin/true"]', *(line for line in CHANGES if not line.startswith("ENTRYPOINT"))]
    client.api.import_image_from_data(_root(busybox()), repository=repository, tag=tag, changes=changes)
    return TAG


def ours(folders: list[Path]) -> float:
    """Seconds from the first pop to the last job's end, everything of the product on the way."""
    with valkey() as url, tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        producer = Producer(redis.Redis.from_url(url))
        for number, folder in enumerate(folders):
            job = local_job(str(folder), task="nothing")
            producer.enqueue("pi-jobs", f"bench-{number}", job, scope_hash=hash16(str(folder)))
        with product.running(Path(home) / "state", url, concurrency=THREADS, null=False, image=TAG) as worker:
            begun = time.perf_counter()
            product.until_completed(worker, JOBS)
            return time.perf_counter() - begun


def bare(folders: list[Path]) -> float:
    """Seconds for the same containers: create, start, wait, remove, in four threads and nothing else."""
    user = JobUser(1001, 1001) if os.geteuid() == 0 else JobUser(os.getuid(), os.getgid())

    def one(pair: tuple[int, Path]) -> None:
        number, folder = pair
        request = RunRequest(
            job_id=f"bare-{number}",
            attempt=0,
            token="bench/1",
            boot="bench",
            host_id="bench",
            kind="local",
            scope_hash=None,
            image=TAG,
            provider="anthropic",
            model="none",
            max_turns=1,
            job_dir=folder,
            workspace=folder,
            user=user,
            deadline=datetime.now(UTC) + timedelta(minutes=30),
        )
        spec = build_spec(request)
        client = clients[number % THREADS]
        container = client.create_container_from_config(creation_body(spec, ISOLATION), spec.name)["Id"]
        client.start(container)
        client.wait(container)
        client.remove_container(container)

    clients = [docker.APIClient(version="auto") for _ in range(THREADS)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(one, enumerate(folders)))
    took = time.perf_counter() - begun
    for client in clients:
        client.close()
    return took


def bench(keys: tuple[str, ...]) -> None:
    with engine() as client:
        image(client)
    with tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        folders = make_folders(Path(home), JOBS)
        rounds = [(bare(folders), ours(folders)) for _ in range(ROUNDS)]
    bares, mine = (statistics.median(column) for column in zip(*rounds, strict=True))
    report(
        *keys,
        ours=mine,
        peer=bares,
        note="rounds (bare, ours): " + ", ".join(f"({a:.2f}, {b:.2f})" for a, b in rounds),
    )
