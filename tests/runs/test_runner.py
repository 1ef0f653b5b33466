from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runs import labels
from runs.abort import Abort, AbortReason
from runs.engine import Engine
from runs.launch import Patience
from runs.runner import Runner, StopPatience
from runs.watcher import Watcher
from tests.runs.jobs import Jobs, exit_line, until

pytestmark = pytest.mark.docker

PATIENCE = Patience(settle=0.5, ask=0.05, ask_at_most=0.2, remove=2.0)


@pytest.fixture
def watcher(docker_backend: Engine, jobs: Jobs) -> Iterator[Watcher]:
    watcher = Watcher(docker_backend, labels={labels.HOST: jobs.host_id, labels.BOOT: jobs.boot})
    yield watcher
    watcher.close()


@pytest.fixture
def runner(docker_backend: Engine, watcher: Watcher) -> Runner:
    return Runner(docker_backend, watcher, patience=PATIENCE)


def containers(engine: Any, jobs: Jobs) -> list[str]:
    found = engine.api.containers(all=True, filters={"label": [f"{labels.HOST}={jobs.host_id}"]})
    return [name for container in found for name in container["Names"]]


def test_a_job_that_ends_well_gives_its_code_times_and_exit_line_and_leaves_nothing(runner, jobs, engine):
    gone = []
    before = datetime.now(UTC)

    result = runner.run(jobs.spec(orders={"delay": "0.2"}), abort=Abort(), on_gone=gone.append)

    assert (result.exit_code, result.abort_reason, result.oom_killed) == (0, None, False)
    assert (result.never_started, result.not_attempted, result.detached) == (False, False, False)
    assert exit_line(result.tail)["jobId"] == result.container
    assert before <= result.started_at <= result.ended_at <= datetime.now(UTC)
    assert result.gone
    assert gone == [result.container]
    assert containers(engine, jobs) == []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(1, id="infrastructure"),
        pytest.param(2, id="policy"),
        pytest.param(127, id="a code that clients of the engine use themselves"),
    ],
)
def test_the_code_of_the_job_is_reported_as_it_is(runner, jobs, code):
    result = runner.run(jobs.spec(orders={"exit-code": str(code)}), abort=Abort())

    assert (result.exit_code, result.never_started) == (code, False)


def test_a_job_over_its_time_is_stopped_and_says_so(runner, jobs):
    spec = jobs.spec(orders={"delay": "60"})

    result = runner.run(spec, abort=Abort(), time_limit=timedelta(seconds=0.7))

    assert result.abort_reason == "timeout"
    assert result.exit_code == 2
    assert exit_line(result.tail)["reason"] == "aborted"


def test_a_job_that_ignores_sigterm_is_killed_after_the_grace(docker_backend, watcher, jobs, engine):
    runner = Runner(docker_backend, watcher, patience=PATIENCE, stopping=StopPatience(grace=1))
    spec = jobs.spec(orders={"ignore-term": "", "delay": "60"})

    result = runner.run(spec, abort=Abort(), time_limit=timedelta(seconds=0.7))

    assert (result.abort_reason, result.exit_code, result.gone) == ("timeout", 137, True)
    assert not result.oom_killed
    assert containers(engine, jobs) == []


def test_an_abort_before_it_begins_creates_nothing(runner, jobs, engine):
    abort = Abort()
    abort.set(AbortReason.SWITCH)

    result = runner.run(jobs.spec(), abort=abort)

    assert (result.not_attempted, result.abort_reason, result.exit_code) == (True, "switch", None)
    assert not result.never_started
    assert result.started_at is None
    assert _created(engine, jobs) == 0


def test_an_abort_between_create_and_start_starts_nothing_and_is_not_paid_back(docker_backend, watcher, jobs):
    abort = Abort()

    class AbortedOnCreate(Engine):
        def create(self, spec):
            container = docker_backend.create(spec)
            abort.set(AbortReason.OPERATOR_CANCEL)
            return container

        def start(self, container):
            raise AssertionError("started in spite of the abort")

    backend = AbortedOnCreate(environment={})

    result = Runner(backend, watcher, patience=PATIENCE).run(jobs.spec(), abort=abort)

    assert (result.abort_reason, result.exit_code, result.gone) == ("operator-cancel", None, True)
    assert (result.not_attempted, result.never_started) == (False, False)


def test_many_runs_are_stopped_in_the_time_of_one(docker_backend, watcher, jobs, engine):
    runner = Runner(docker_backend, watcher, patience=PATIENCE, stopping=StopPatience(grace=2))
    aborts = [Abort() for _ in range(4)]
    specs = [jobs.spec(f"job{n}", {"ignore-term": "", "delay": "60"}) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        running = [
            pool.submit(runner.run, spec, abort=abort) for spec, abort in zip(specs, aborts, strict=True)
        ]
        until(lambda: all(jobs.prints(spec, engine) for spec in specs))

        began = time.monotonic()
        for abort in aborts:
            abort.set(AbortReason.SHUTDOWN)
        set_in = time.monotonic() - began
        results = [each.result() for each in running]
        ended_in = time.monotonic() - began

    assert set_in < 0.1
    assert ended_in < 7, "four graces of 2 s, one after the other, would be 8 s"
    assert {result.abort_reason for result in results} == {"shutdown"}
    assert {result.exit_code for result in results} == {137}


def test_a_job_that_ended_before_the_abort_was_noticed_was_not_stopped_by_us(docker_backend, watcher, jobs):
    abort = Abort()
    # Nobody rings and the run does not look: the abort itself is what makes it look.
    runner = Runner(docker_backend, _Deaf(), patience=PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, jobs.spec(), abort=abort)
        until(lambda: _status(docker_backend, jobs) == "exited")
        abort.set(AbortReason.OPERATOR_STOP)
        result = running.result()

    assert (result.abort_reason, result.exit_code) == (None, 0)


def test_a_job_killed_for_its_memory_is_told_from_other_kills(watcher, jobs):
    backend = Engine(environment={}, memory_bytes=32 << 20)

    result = Runner(backend, watcher, patience=PATIENCE).run(
        jobs.spec(orders={"fill-memory": ""}), abort=Abort()
    )

    assert (result.exit_code, result.oom_killed, result.abort_reason) == (137, True, None)


def test_a_job_that_leaves_a_process_behind_ends_with_its_own_code(runner, jobs, engine):
    began = time.monotonic()

    result = runner.run(jobs.spec(orders={"fork": "600", "exit-code": "0"}), abort=Abort())

    assert (result.exit_code, result.gone) == (0, True)
    assert time.monotonic() - began < 10
    assert containers(engine, jobs) == []


def test_a_container_that_somebody_else_removed_is_lost_and_not_repaid(docker_backend, jobs, engine):
    spec = jobs.spec(orders={"delay": "60"})
    abort = Abort()
    # It looks only when the abort makes it: while it is being removed the engine still tells a code.
    runner = Runner(docker_backend, _Deaf(), patience=PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, spec, abort=abort)
        until(lambda: jobs.prints(spec, engine))
        engine.api.remove_container(spec.name, force=True)
        abort.set(AbortReason.SHUTDOWN)
        result = running.result(timeout=10)

    assert (result.detached, result.exit_code, result.abort_reason, result.gone) == (True, None, None, True)
    assert (result.never_started, result.not_attempted) == (False, False)
    assert result.started_at is not None


def test_the_name_of_somebody_elses_container_is_refused_and_left_alone(runner, jobs, engine):
    spec = jobs.spec()
    foreign = engine.api.create_container_from_config(
        {"Image": spec.image, "Labels": {labels.HOST: jobs.host_id, labels.ATTEMPT: "another"}}, spec.name
    )["Id"]

    result = runner.run(spec, abort=Abort())

    assert (result.never_started, result.exit_code) == (True, None)
    assert result.fault == "engine-409"
    assert engine.api.inspect_container(foreign)["State"]["Status"] == "created"


def test_a_container_of_this_very_attempt_is_adopted(runner, docker_backend, jobs):
    spec = jobs.spec(orders={"exit-code": "1"})
    docker_backend.create(spec)

    result = runner.run(spec, abort=Abort())

    assert (result.exit_code, result.never_started, result.gone) == (1, False, True)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        pytest.param({"image": "pi-dispatch-none:none"}, "image-missing", id="no such image"),
        pytest.param({"mounts": "gone"}, "mount-source-missing", id="a folder that is gone"),
    ],
)
def test_what_the_engine_refuses_has_never_started(runner, jobs, engine, change, fault):
    spec = jobs.spec()
    if change.get("mounts"):
        mounts = (*spec.mounts, replace(spec.mounts[0], source=str(jobs.folder / "gone"), target="/gone"))
        change = {"mounts": mounts}

    result = runner.run(replace(spec, **change), abort=Abort())

    assert (result.never_started, result.fault, result.gone) == (True, fault, True)
    assert containers(engine, jobs) == []
    assert not (jobs.folder / "gone").exists()


def test_a_refused_start_has_never_started_and_leaves_nothing(watcher, jobs, engine, docker_backend):
    spec = jobs.spec()

    class MountPulledAway(Engine):
        def create(self, spec):
            container = super().create(spec)
            shutil.rmtree(jobs.workspace("one"))
            return container

    gone = []

    result = Runner(MountPulledAway(environment={}), watcher, patience=PATIENCE).run(
        spec, abort=Abort(), on_gone=gone.append
    )

    assert (result.never_started, result.not_attempted, result.detached) == (True, False, False)
    assert gone == [spec.name]
    assert containers(engine, jobs) == []


def test_a_failing_listener_costs_no_result(runner, jobs):
    def fail(name: str) -> None:
        raise ValueError(name)

    assert runner.run(jobs.spec(), abort=Abort(), on_gone=fail).exit_code == 0


@pytest.mark.parametrize("where", ["watch", "forget"])
def test_a_bug_of_ours_leaves_no_container_that_nobody_watches(docker_backend, jobs, engine, where):
    watcher = _Deaf()

    def fail(*args: object) -> None:
        setattr(watcher, where, lambda *args: None)
        raise KeyError(where)

    setattr(watcher, where, fail)
    spec = jobs.spec(orders={"delay": "60"} if where == "watch" else {})

    with pytest.raises(KeyError):
        Runner(docker_backend, watcher, patience=PATIENCE, stopping=StopPatience(look=0.3)).run(
            spec, abort=Abort()
        )

    assert containers(engine, jobs) == []


def test_the_raw_log_holds_what_the_job_printed(runner, jobs):
    path = jobs.folder / "raw.log"

    result = runner.run(jobs.spec(orders={"output-bytes": "50000"}), abort=Abort(), raw_log=path)

    printed = path.read_bytes()
    assert printed.count(b"a line of the fake runner\n") >= 1900
    assert printed.endswith(result.tail)
    assert not result.log_truncated


def test_a_raw_log_that_cannot_be_written_costs_no_result(runner, jobs):
    (jobs.folder / "file").touch()

    result = runner.run(jobs.spec(), abort=Abort(), raw_log=jobs.folder / "file" / "raw.log")

    assert (result.exit_code, result.gone, result.log_truncated) == (0, True, True)


class _Deaf:
    """A watcher that never rings."""

    def watch(self, container, ring):
        pass

    def forget(self, container):
        pass


def _status(backend: Engine, jobs: Jobs) -> str | None:
    found = backend.listing({labels.HOST: jobs.host_id})
    return found[0].status if found else None


def _created(engine: Any, jobs: Jobs) -> int:
    """How many containers of this test the engine's own history shows as created."""
    events = engine.api.events(
        since=int(time.time()) - 60,
        until=int(time.time()) + 1,
        decode=True,
        filters={"event": ["create"], "label": [f"{labels.HOST}={jobs.host_id}"]},
    )
    return len(list(events))
