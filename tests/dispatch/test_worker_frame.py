"""The worker as a whole, in this process: boot order, what it keeps going, a shutdown that keeps its time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from dispatch.ids import occurrence_id
from dispatch.jobs import local_job
from dispatch.queue import keys
from dispatch.queue.owner import Owner
from dispatch.queue.producer import Producer
from dispatch.queue.timings import Timings
from dispatch.schedules import keys as schedule_keys
from dispatch.worker.build import build
from dispatch.worker.edges import Edges
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.timings import WorkerTimings
from dispatch.worker.worker import Worker
from hosts.names import SHARED_QUEUE
from pidispatch_site import conf
from pidispatch_site.envfile import Environment
from runs.files import RecordFiles
from runs.models import Run
from runs.protocols import EngineSilentError
from runs.workspace.jobuser import Account
from tests.dispatch import queuekit
from tests.harness.null_runs import IMAGE, NullBackend, NullRuns, null_prepare

pytestmark = pytest.mark.django_db(transaction=True)

TIMINGS = WorkerTimings(
    scope_recheck=1,
    backoff_base=0,
    pop_block=0.1,
    pause_recheck=0.05,
    promote_every=0.05,
    sweep_every=0.1,
    reap_every=0.2,
    record_every=0.2,
    valkey_retry_max=0.05,
    shutdown_patience=3,
    thread_patience=1,
    queue=Timings(beat_every=0.1),
)
OWNER = Owner(boot="aaaa-00000002", host_id="aaaa", host="alpha")


@pytest.fixture
def make(state_dir, valkey_url, tmp_path) -> Callable[..., Worker]:
    config = conf.load(
        Environment(
            {
                "PI_STATE_DIR": str(state_dir),
                "PI_EGRESS": "0",
                "PI_CONCURRENCY": "2",
                "PI_JOB_IMAGE": IMAGE,
                "PI_AUTH_FROM_PI": "0",
                "ANTHROPIC_API_KEY": "not-a-key",
            }
        )
    )
    config.logs_dir.mkdir(parents=True, exist_ok=True)

    def build_one(*, url: str = valkey_url, timings: WorkerTimings = TIMINGS, **edges: Any) -> Worker:
        given = {"backend": NullBackend(), "runs": NullRuns(orders=True), "prepare": null_prepare, **edges}
        return build(
            config, OWNER, url, Edges(account=Account(1000, 1000), timings=timings, **given), OperatorFiles()
        )

    return build_one


class Running:
    """A worker that runs in a thread of the test."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def stop(self) -> float:
        """Stop it; how long that took."""
        begun = time.monotonic()
        self.worker.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()
        return time.monotonic() - begun


@contextmanager
def running(worker: Worker) -> Iterator[Running]:
    it = Running(worker)
    it.thread.start()
    try:
        yield it
    finally:
        it.stop()


def until(holds: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def folder(tmp_path: Path, name: str = "one", **orders: str) -> Path:
    (tmp_path / name / ".fake").mkdir(parents=True)
    for order, value in orders.items():
        (tmp_path / name / ".fake" / order.replace("_", "-")).write_text(value)
    return tmp_path / name


def enqueue(valkey: redis.Redis, place: Path, job_id: str = "local-1") -> None:
    Producer(valkey).enqueue(SHARED_QUEUE, job_id, local_job(str(place), task="x"))


def status(valkey: redis.Redis, job_id: str = "local-1") -> str | None:
    found = valkey.hget(f"rq:job:{job_id}", "status")
    return found.decode() if found else None


def names(events: Callable[[], list[dict[str, object]]]) -> list[object]:
    return [one["event"] for one in events()]


def test_a_job_goes_through_to_its_record_and_the_worker_leaves_nothing_behind(
    make, valkey, tmp_path, events
):
    with running(make()) as it:
        enqueue(valkey, folder(tmp_path))
        until(lambda: Run.objects.filter(job_id="local-1").exists())
        it.stop()

    assert it.error is None
    assert Run.objects.get(job_id="local-1").outcome == "completed"
    assert valkey.keys("records:pending:*") == []
    assert valkey.smembers("rq:workers") == set()
    assert valkey.hgetall("containers:aaaa") == {}
    assert [name for name in names(events) if name.startswith(("worker", "job"))] == [
        "worker_started",
        "job_started",
        "job_completed",
        "worker_stopped",
    ]


def test_containers_are_reaped_before_the_worker_is_known_and_before_it_takes_over_its_dead_boots_jobs(
    make, valkey, tmp_path
):
    dead = queuekit.Host(valkey)
    dead.beats.register()
    dead.enqueue("left-1", "left-2")
    dead.claim()
    dead.start()
    seen: list[tuple[object, object]] = []

    class Engine(NullBackend):
        def listing(self, labels):
            takers = keys.queue_keys(SHARED_QUEUE).takers
            seen.append((valkey.zscore(takers, OWNER.boot), status(valkey, "left-2")))
            return []

    with running(make(backend=Engine())):
        until(lambda: status(valkey, "left-2") == "failed")
        until(lambda: status(valkey, "left-1") == "finished")

    assert seen[0] == (None, "started")


def test_a_job_of_a_schedule_that_is_lost_with_its_worker_counts_as_a_stall(make, valkey):
    dead = queuekit.Host(valkey)
    dead.beats.register()
    dead.enqueue(occurrence_id("tidy", instant=datetime(2026, 3, 3, tzinfo=UTC)))
    dead.start()

    with running(make()):
        until(lambda: valkey.get(schedule_keys.stalls("tidy")) == b"1")


def test_a_running_job_is_stopped_recorded_and_not_tried_again(make, valkey, tmp_path):
    with running(make()) as it:
        enqueue(valkey, folder(tmp_path, delay="60"))
        until(lambda: status(valkey) == "started")
        took = it.stop()

    assert took < TIMINGS.shutdown_patience
    run = Run.objects.get(job_id="local-1")
    assert (run.outcome, run.reason, run.final) == ("policy", "worker-abort", True)


def test_a_job_that_a_pop_brings_during_the_shutdown_goes_back_unspent(make, valkey, tmp_path):
    popped, go_on = threading.Event(), threading.Event()

    def held(point: str) -> None:
        if point == "after pop" and valkey.hexists("rq:job:local-1", "taker"):
            popped.set()
            go_on.wait(10)

    with running(make(delays=held)) as it:
        enqueue(valkey, folder(tmp_path))
        assert popped.wait(10)
        it.worker.stop()
        time.sleep(0.1)
        go_on.set()
        it.stop()

    assert queuekit.listed(valkey) == ["local-1"]
    assert valkey.keys("*:taken:*") == []
    assert not Run.objects.exists()


@pytest.mark.parametrize("stuck_in", ["git", "engine"])
def test_a_shutdown_waits_for_no_call_that_does_not_return(make, valkey, tmp_path, events, stuck_in):
    entered, go_on = threading.Event(), threading.Event()

    def stuck(*_: object, **__: object) -> Any:
        entered.set()
        go_on.wait(20)
        raise EngineSilentError("engine-timeout")

    timings = replace(TIMINGS, shutdown_patience=0.5)
    edges: dict[str, Any] = {"timings": timings}
    if stuck_in == "git":
        edges["prepare"] = stuck
    else:
        edges["runs"] = type("Runs", (), {"run": stuck})()
    with running(make(**edges)) as it:
        enqueue(valkey, folder(tmp_path))
        assert entered.wait(10)
        took = it.stop()
        assert took < timings.shutdown_patience + timings.thread_patience + 1
        incomplete = [one for one in events() if one["event"] == "shutdown_incomplete"]
        assert [one["jobs"] for one in incomplete] == [1]
        assert it.error is None
        go_on.set()
        until(lambda: len(it.worker._host.live) == 0)


def test_an_engine_that_does_not_answer_the_boot_does_not_hold_up_a_stop(make, valkey):
    asked, go_on = threading.Event(), threading.Event()

    class Engine(NullBackend):
        def listing(self, labels):
            asked.set()
            go_on.wait(20)
            raise EngineSilentError("engine-timeout")

    timings = replace(TIMINGS, shutdown_patience=0.3)
    with running(make(backend=Engine(), timings=timings)) as it:
        assert asked.wait(10)
        took = it.stop()
        go_on.set()

    assert took < timings.shutdown_patience + timings.thread_patience + 1
    assert valkey.keys("takers:*") == []


def test_threads_that_do_not_end_cost_their_patience_once_and_not_each(make):
    """The promoter, the pop and the reaper are all stuck when the stop comes."""
    go_on = threading.Event()
    stuck: set[str] = set()

    def held(point: str) -> None:
        if point in {"before promote", "before pop"}:
            stuck.add(point)
            go_on.wait(20)

    class Engine(NullBackend):
        listings = 0

        def listing(self, labels):
            self.listings += 1
            if self.listings > 1:
                stuck.add("listing")
                go_on.wait(20)
            return []

    timings = replace(TIMINGS, shutdown_patience=1, thread_patience=1)
    with running(make(delays=held, backend=Engine(), timings=timings)) as it:
        until(lambda: len(stuck) == 3)
        took = it.stop()
        go_on.set()

    assert took < timings.shutdown_patience + timings.thread_patience + 0.9


def test_production_keeps_within_the_fifteen_seconds_that_are_promised():
    timings = WorkerTimings()

    assert timings.shutdown_patience + timings.thread_patience <= 14
    # A job that ignores SIGTERM is killed after 5 s, and the record has still to be pushed.
    assert timings.shutdown_patience >= 8


def test_what_breaks_the_boot_is_raised_after_an_orderly_shutdown(make, valkey, tmp_path):
    class Engine(NullBackend):
        def image(self, reference):
            raise RuntimeError("a bug")

    with running(make(backend=Engine())) as it:
        it.thread.join(20)
        assert not it.thread.is_alive()

    assert isinstance(it.error, RuntimeError)
    assert valkey.smembers("rq:workers") == set()


def test_a_stop_that_was_asked_before_the_boot_ends_it(make, valkey):
    worker = make()
    worker.stop()

    with running(worker) as it:
        it.thread.join(20)

    assert it.error is None
    assert valkey.smembers("rq:workers") == set()


def test_a_stop_ends_the_wait_for_a_valkey_that_is_not_there(make, tmp_path, events):
    with running(make(url=f"unix://{tmp_path}/nobody")) as it:
        until(lambda: "valkey_unreachable" in names(events))
        took = it.stop()

    assert took < TIMINGS.shutdown_patience
    assert names(events).count("valkey_unreachable") == 1


def test_logs_that_cannot_be_swept_do_not_keep_the_worker_from_its_work(make, valkey, monkeypatch, events):
    def refused(self: RecordFiles) -> None:
        raise PermissionError("/srv/secret")

    monkeypatch.setattr(RecordFiles, "sweep", refused)
    with running(make()):
        until(lambda: "worker_started" in names(events))

    assert {"event": "log_reaper_skipped", "error": "PermissionError"} in events()


def test_an_attempt_that_failed_is_tried_again_by_the_same_worker(make, valkey, tmp_path):
    with running(make()):
        enqueue(valkey, folder(tmp_path, exit_code="1"))
        until(lambda: status(valkey) == "failed")
        until(lambda: Run.objects.filter(job_id="local-1", final=True).exists())

    run = Run.objects.get(job_id="local-1")
    assert (run.attempt, len(run.attempts)) == (1, 1)


def test_jobs_of_one_folder_never_run_side_by_side(make, valkey, tmp_path):
    place = folder(tmp_path, delay="0.05", journal="")
    with running(make()):
        for number in range(5):
            enqueue(valkey, place, f"local-{number}")
        until(lambda: all(status(valkey, f"local-{number}") == "finished" for number in range(5)))

    words = [line.split()[0] for line in (place / ".fake" / "journal").read_text().splitlines()]
    assert words == ["begin", "end"] * 5


def test_nothing_starts_while_the_queue_is_paused(make, valkey, tmp_path):
    valkey.hset("pause:*", mapping={"by": "op", "until": ""})
    with running(make()) as it:
        enqueue(valkey, folder(tmp_path))
        until(lambda: valkey.smembers("rq:workers"))
        time.sleep(0.3)
        assert status(valkey) == "queued"
        valkey.delete("pause:*")
        until(lambda: status(valkey) == "finished")
        it.stop()


@pytest.mark.parametrize("shared", ["name", "id"])
def test_nothing_starts_while_another_machine_is_this_host_too(make, valkey, tmp_path, events, shared):
    def other_beats() -> None:
        now = queuekit.now_ms(valkey)
        if shared == "name":
            valkey.hset("host:h:alpha", mapping={"hostId": "fedcba9876543210", "beatAt": now})
        else:
            entry = {"name": "alpha", "beat": now, "boot": "aaaa-0000c0c0"}
            valkey.hset("known:hosts", "aaaa", json.dumps(entry))

    def is_noticed() -> bool:
        other_beats()
        return f"host_{shared}_taken" in names(events)

    with running(make(timings=replace(TIMINGS, host_beat_every=0.1, host_row_ttl=2))):
        until(lambda: "worker_started" in names(events))
        until(is_noticed)
        # The engine of this machine does not have it, and it may run on the other one.
        valkey.hset("containers:aaaa", "pi-job-theirs", "{}")
        enqueue(valkey, folder(tmp_path))
        for _ in range(4):
            other_beats()
            time.sleep(0.1)
        assert status(valkey) == "queued"
        assert valkey.exists("containers:aaaa") == (shared == "id")
        until(lambda: status(valkey) == "finished")
        until(lambda: not valkey.exists("containers:aaaa"))

    assert names(events).count(f"host_{shared}_taken") == 1 == names(events).count(f"host_{shared}_restored")
