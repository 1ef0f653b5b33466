from __future__ import annotations

import threading

import pytest
import redis

from dispatch.worker.loop import PopLoop
from dispatch.worker.outage import LONG_SECONDS, RECENT_SECONDS, Outage
from dispatch.worker.sight import Sight
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench
from tests.harness.worker_process import until

FAULT = redis.exceptions.TimeoutError("lost")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def outage(clock):
    return Outage(lambda: None, clock=clock)


@pytest.fixture
def sight(outage):
    return Sight(outage, look_again=lambda: None)


def test_a_silent_engine_is_told_once_and_once_when_it_is_back(outage, events):
    changes: list[str] = []
    sight = Sight(outage, look_again=lambda: None, changed=lambda: changes.append(sight.blind()))
    for answered in (True, False, False, True, True):
        sight.engine_answered(answered)

    assert changes == ["engine", ""]
    assert [(one["event"], one["what"]) for one in events()] == [
        ("host_blind", "engine"),
        ("host_sees_again", "engine"),
    ]


@pytest.mark.parametrize(
    ("lasted", "since", "blind"),
    [
        pytest.param(LONG_SECONDS - 1, 0, "", id="shorter than a beat"),
        pytest.param(LONG_SECONDS + 1, 0, "valkey", id="long, just over"),
        pytest.param(LONG_SECONDS + 1, RECENT_SECONDS - 1, "valkey", id="long, recent"),
        pytest.param(LONG_SECONDS + 1, RECENT_SECONDS + 1, "", id="long, and long ago"),
    ],
)
def test_who_was_cut_off_from_valkey_says_so_for_a_while(clock, outage, sight, lasted, since, blind):
    outage.faulted(FAULT)
    clock.now += lasted / 2
    outage.faulted(FAULT)
    clock.now += lasted / 2
    outage.answered()
    clock.now += since

    assert sight.blind() == blind


def test_an_outage_that_is_on_counts_once_it_is_long(clock, outage, sight):
    outage.faulted(FAULT)
    assert sight.blind() == ""
    clock.now += LONG_SECONDS + 1
    assert sight.blind() == "valkey"
    sight.engine_answered(False)

    assert sight.blind() == "engine,valkey"


def test_a_job_that_meets_a_silent_engine_has_it_asked_at_once(valkey):
    rung: list[str] = []
    bench = Bench(valkey, engine_was_silent=lambda: rung.append("again"))
    bench.engine.silent = True

    bench.attempt()

    assert rung == ["again"]


def test_who_may_not_take_a_job_takes_none(valkey):
    may = [False, False]
    bench = Bench(valkey, may_take=lambda: not may or may.pop(0))
    bench.enqueue()
    loop = PopLoop(bench.host, bench.popper)

    loop.step()
    loop.step()
    assert queuekit.listed(valkey) == ["local-1"]
    loop.step()

    assert bench.host.slots.wait_idle(10)
    assert bench.standing() == "finished"


def test_a_slot_that_comes_free_as_the_engine_goes_is_not_used(valkey):
    """What freed it may be a job that died with its engine: the answer before the wait is an old one."""
    bench = Bench(valkey, slots=1)
    bench.enqueue()
    bench.host.slots.try_take()
    sees = threading.Event()
    sees.set()
    object.__setattr__(bench.host, "may_take", sees.is_set)
    step = threading.Thread(target=PopLoop(bench.host, bench.popper).step)
    step.start()
    until(lambda: bench.host.slots._line, seconds=5, what="the loop waits for a slot")

    sees.clear()
    bench.host.slots.give_back()
    step.join(timeout=10)

    assert queuekit.listed(valkey) == ["local-1"]
    assert bench.host.slots.used == 0
