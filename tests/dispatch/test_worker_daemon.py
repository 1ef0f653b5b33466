from __future__ import annotations

import threading

import pytest
import redis

from dispatch.worker.daemon import Daemon
from dispatch.worker.outage import Outage

FAULT = redis.exceptions.ConnectionError("/srv/secret")


class Steps:
    """A step that raises what it is told to, one after another, and counts its calls."""

    def __init__(self, *errors: Exception | None) -> None:
        self._errors = list(errors)
        self.calls = 0
        self.called = threading.Condition()

    def __call__(self) -> None:
        with self.called:
            self.calls += 1
            self.called.notify_all()
            error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error

    def until(self, calls: int) -> bool:
        with self.called:
            return self.called.wait_for(lambda: self.calls >= calls, timeout=10)


def silent() -> Outage:
    return Outage(lambda: None)


def test_the_first_step_comes_at_once_and_a_bell_brings_the_next():
    steps = Steps()
    daemon = Daemon("d", steps, every=3600, outage=silent())

    daemon.start()
    assert steps.until(1)
    daemon.wake()
    assert steps.until(2)

    daemon.stop()
    daemon.thread.join(10)
    assert not daemon.thread.is_alive()


def test_a_stop_ends_the_thread_between_two_steps():
    steps = Steps()
    daemon = Daemon("d", steps, every=3600, outage=silent())
    daemon.start()
    steps.until(1)

    daemon.stop()
    daemon.thread.join(10)

    assert not daemon.thread.is_alive()
    assert steps.calls == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(FAULT, [], id="a fault of Valkey, told as an outage"),
        pytest.param(ValueError("/srv/secret"), ["worker_thread_error"], id="a bug, told once"),
    ],
)
def test_a_step_that_raises_is_tried_again_and_told_by_its_type(events, error, told):
    steps = Steps(error, error)
    faults: list[None] = []
    daemon = Daemon("d", steps, every=0.01, outage=Outage(lambda: faults.append(None)))

    daemon.start()
    assert steps.until(3)
    daemon.stop()
    daemon.thread.join(10)

    names = [one["event"] for one in events() if one["event"] == "worker_thread_error"]
    assert names == told
    assert len(faults) == (0 if told else 2)
    assert "/srv/secret" not in str(events())


def test_a_pause_grows_with_each_fault_and_never_beyond_the_ordinary_one():
    steps = Steps(*[FAULT] * 12)
    daemon = Daemon("d", steps, every=10, outage=silent())

    pauses = [daemon._once() for _ in range(13)]

    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert max(pauses) == 10
    assert pauses == sorted(pauses)


def test_an_outage_is_told_once_when_it_begins_and_once_when_it_ends(events):
    interrupted: list[None] = []
    outage = Outage(lambda: interrupted.append(None))

    outage.answered()
    assert not outage.is_on
    outage.faulted(FAULT)
    outage.faulted(FAULT)
    assert outage.is_on
    outage.answered()
    outage.answered()

    assert events() == [
        {"event": "valkey_unreachable", "error": "ConnectionError"},
        {"event": "valkey_restored"},
    ]
    assert len(interrupted) == 2
