"""What is concluded when the engine does not answer: a real one, behind a socket that loses things."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from runs import labels
from runs.abort import Abort, AbortReason
from runs.engine import Engine
from runs.launch import Patience
from runs.runner import Runner, StopPatience
from runs.watcher import Watcher
from tests.harness.engine_proxy import Act
from tests.runs.jobs import Jobs, until

pytestmark = pytest.mark.docker

CREATE = "^POST /containers/create"
START = "^POST /containers/[^/]+/start"
INSPECT = "^GET /containers/[^/]+/json"
REMOVE = "^DELETE /containers/"
STOP = "^POST /containers/[^/]+/stop"

PATIENCE = Patience(settle=0.6, ask=0.05, ask_at_most=0.2, remove=3.0)
STOPPING = StopPatience(grace=1, again=0.2, alarm=30.0, look=30.0, silent=0.1)


@pytest.fixture
def runner(proxied: Engine, jobs: Jobs) -> Iterator[Runner]:
    watcher = Watcher(
        proxied, labels={labels.HOST: jobs.host_id, labels.BOOT: jobs.boot}, listened_seconds=0.2
    )
    yield Runner(proxied, watcher, patience=PATIENCE, stopping=STOPPING)
    watcher.close()


def left(engine: Any, jobs: Jobs) -> list[str]:
    found = engine.api.containers(all=True, filters={"label": [f"{labels.HOST}={jobs.host_id}"]})
    return [container["State"] for container in found]


@pytest.mark.parametrize("act", [Act.LOSE_ANSWER, Act.CUT])
def test_a_create_that_happened_without_an_answer_is_adopted_and_runs_once(runner, proxy, jobs, engine, act):
    proxy.next(CREATE, act)

    result = runner.run(jobs.spec(orders={"exit-code": "1"}), abort=Abort())

    assert (result.exit_code, result.never_started, result.gone) == (1, False, True)
    assert (proxy.seen(CREATE), proxy.seen(START)) == (1, 1)
    assert left(engine, jobs) == []


def test_a_create_that_never_reached_the_engine_is_paid_back_once_the_engine_says_so(runner, proxy, jobs):
    proxy.next(CREATE, Act.LOSE_REQUEST)

    result = runner.run(jobs.spec(), abort=Abort())

    assert (result.never_started, result.not_attempted, result.fault) == (True, False, "engine-timeout")
    assert (proxy.seen(CREATE), proxy.seen(START)) == (1, 0)
    assert proxy.seen(INSPECT) > 1, "one answer is not enough while the request may still be under way"


def test_a_create_that_arrives_late_is_adopted_too(runner, proxy, jobs, engine):
    proxy.next(CREATE, Act.HOLD)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, jobs.spec(), abort=Abort())
        until(lambda: proxy.seen(INSPECT) > 0)
        proxy.release()
        result = running.result(timeout=10)

    assert (result.exit_code, result.gone) == (0, True)
    assert proxy.seen(CREATE) == 1
    assert left(engine, jobs) == []


@pytest.mark.parametrize("act", [Act.LOSE_ANSWER, Act.CUT])
def test_a_start_that_happened_without_an_answer_is_watched_to_its_end(runner, proxy, jobs, engine, act):
    proxy.next(START, act)
    spec = jobs.spec(orders={"journal": "", "exit-code": "1"})

    result = runner.run(spec, abort=Abort())

    assert (result.exit_code, result.never_started, result.detached) == (1, False, False)
    assert proxy.seen(START) == 1
    assert _times_begun(jobs) == 1
    assert left(engine, jobs) == []


def test_a_start_that_never_reached_the_engine_is_withdrawn_and_paid_back(runner, proxy, jobs, engine):
    proxy.next(START, Act.LOSE_REQUEST)

    result = runner.run(jobs.spec(orders={"journal": ""}), abort=Abort())

    assert (result.never_started, result.gone, result.exit_code) == (True, True, None)
    assert proxy.seen(START) == 1
    assert _times_begun(jobs) == 0
    assert left(engine, jobs) == []


def test_a_start_that_arrives_while_we_withdraw_is_noticed_and_not_paid_back(runner, proxy, jobs):
    # The engine starts it between our look (still created) and our removal of what we take for unstarted.
    proxy.next(START, Act.LOSE_REQUEST)
    backend = runner._backend

    class StartedMeanwhile:
        def __getattr__(self, name):
            return getattr(backend, name)

        def discard(self, container):
            backend.start(container)
            return backend.discard(container)

    runner._launcher._backend = StartedMeanwhile()

    result = runner.run(jobs.spec(orders={"delay": "0.5", "journal": ""}), abort=Abort())

    assert (result.exit_code, result.never_started) == (0, False)
    assert _times_begun(jobs) == 1


def test_an_engine_that_freezes_during_create_is_waited_for_and_the_job_runs_once(
    runner, proxy, jobs, engine
):
    frozen = threading.Event()
    create = runner._backend.create

    def freezing(spec):
        proxy.freeze()
        frozen.set()
        return create(spec)

    runner._backend.create = freezing
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, jobs.spec(orders={"journal": ""}), abort=Abort())
        frozen.wait(5)
        # Longer than create's timeout and that of the first question after it.
        until(lambda: proxy.seen(INSPECT) > 1)
        assert not running.done()
        proxy.thaw()
        result = running.result(timeout=10)

    assert (result.exit_code, result.never_started) == (0, False)
    assert _times_begun(jobs) == 1
    assert left(engine, jobs) == []


def test_an_engine_that_cannot_be_reached_at_all_has_started_nothing(runner, proxy, jobs):
    proxy.down()

    result = runner.run(jobs.spec(), abort=Abort())

    assert (result.never_started, result.fault) == (True, "engine-unreachable")


def test_a_restart_of_the_socket_while_the_job_runs_changes_nothing(runner, proxy, jobs, engine):
    spec = jobs.spec(orders={"delay": "1.5", "exit-code": "0"})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, spec, abort=Abort())
        until(lambda: jobs.prints(spec, engine))
        proxy.down()
        time.sleep(0.5)
        proxy.listen()
        result = running.result(timeout=10)

    assert (result.exit_code, result.gone, result.tail != b"") == (0, True, True)


def test_a_stop_that_gets_lost_is_asked_again(runner, proxy, jobs, engine):
    proxy.next(STOP, Act.LOSE_REQUEST)
    spec, abort = jobs.spec(orders={"delay": "60"}), Abort()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, spec, abort=abort)
        until(lambda: jobs.prints(spec, engine))
        abort.set(AbortReason.OPERATOR_STOP)
        result = running.result(timeout=15)

    assert (result.abort_reason, result.exit_code) == ("operator-stop", 2)
    assert proxy.seen(STOP) == 2


def test_a_stop_that_does_not_take_is_told_once_and_waited_for(proxied, proxy, jobs, engine, capsys):
    proxy.next(STOP, Act.FAIL, times=10**6)
    spec, abort = jobs.spec(orders={"delay": "60"}), Abort()
    watcher = Watcher(proxied, labels={labels.HOST: jobs.host_id}, listened_seconds=0.2)
    stopping = StopPatience(grace=1, again=0.1, alarm=0.5)
    runner = Runner(proxied, watcher, patience=PATIENCE, stopping=stopping)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.run, spec, abort=abort)
        until(lambda: jobs.prints(spec, engine))
        abort.set(AbortReason.SHUTDOWN)
        until(lambda: proxy.seen(STOP) > 8)
        assert not running.done()
        engine.api.kill(spec.name)
        result = running.result(timeout=10)
    watcher.close()

    assert (result.abort_reason, result.exit_code) == ("shutdown", 137)
    assert capsys.readouterr().out.count("stop_did_not_take") == 1


def test_an_unconfirmed_removal_is_reported_as_such(runner, proxy, jobs, engine):
    proxy.next(REMOVE, Act.FAIL, times=10**6)
    runner._launcher._patience = replace(PATIENCE, remove=0.5)
    gone = []

    result = runner.run(jobs.spec(), abort=Abort(), on_gone=gone.append)

    assert (result.exit_code, result.gone, gone) == (0, False, [])
    assert left(engine, jobs) == ["exited"]


def test_a_removal_that_got_lost_once_is_repeated(runner, proxy, jobs, engine):
    proxy.next(REMOVE, Act.LOSE_ANSWER)
    gone = []

    result = runner.run(jobs.spec(), abort=Abort(), on_gone=gone.append)

    assert result.gone
    assert gone == [result.container]
    assert left(engine, jobs) == []


def test_the_end_of_the_output_is_asked_for_again(runner, proxy, jobs):
    proxy.next("/logs", Act.CUT)

    result = runner.run(jobs.spec(), abort=Abort())

    assert result.exit_code == 0
    assert b'"event":"exit"' in result.tail


def test_nothing_is_ever_pulled_nor_attached_to(runner, proxy, jobs):
    runner.run(jobs.spec(), abort=Abort(), raw_log=jobs.folder / "raw.log")

    assert proxy.seen("/images/create") == 0
    assert proxy.seen("/attach") == 0
    assert proxy.seen("/wait") == 0


def _times_begun(jobs: Jobs) -> int:
    journal = (jobs.workspace("one") / ".fake" / "journal").read_text()
    return journal.count("begin")
