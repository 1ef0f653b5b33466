"""The pop loop: a slot, then a job, then a thread for it; and never a slot or a job more than that."""

from __future__ import annotations

import threading

import pytest
import redis

from dispatch.queue.popper import Popped
from dispatch.worker import loop as loops
from dispatch.worker.loop import PopLoop, pop_until_stopped
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench

FAULT = redis.exceptions.TimeoutError("lost")


class Work:
    """What an attempt's thread does: it waits for `go_on`, and says whom it had."""

    def __init__(self) -> None:
        self.had: list[str] = []
        self.go_on = threading.Event()
        self.error: Exception | None = None
        self._begun = threading.Condition()

    def __call__(self, host, claimed) -> None:
        with self._begun:
            self.had.append(claimed.job_id)
            self._begun.notify_all()
        self.go_on.wait(10)
        if self.error is not None:
            raise self.error

    def until(self, count: int) -> bool:
        with self._begun:
            return self._begun.wait_for(lambda: len(self.had) >= count, timeout=10)


class Popper:
    """The popper of a bench, whose calls may be told what to answer or raise."""

    def __init__(self, bench: Bench) -> None:
        self._popper = bench.popper
        self.queue = bench.popper.queue
        self.pops: list[Exception] = []
        self.before_wait = lambda: None

    def pop(self) -> Popped:
        if self.pops:
            raise self.pops.pop(0)
        return self._popper.pop()

    def wait(self, seconds: float) -> Popped:
        self.before_wait()
        return self._popper.wait(seconds)


def loop_of(bench: Bench, work: Work) -> tuple[PopLoop, Popper]:
    popper = Popper(bench)
    return PopLoop(bench.host, popper, work=work), popper


def test_a_job_gets_a_slot_and_a_thread_and_the_slot_comes_back(valkey):
    bench, work = Bench(valkey), Work()
    bench.enqueue()
    loop, _ = loop_of(bench, work)

    loop.step()
    assert work.until(1)
    assert bench.host.slots.used == 1
    work.go_on.set()

    assert bench.host.slots.wait_idle(10)
    assert work.had == ["local-1"]


def test_a_slot_comes_back_from_an_attempt_that_broke(valkey, monkeypatch):
    bench, work = Bench(valkey), Work()
    broke = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: broke.set())
    bench.enqueue()
    work.error = RuntimeError("a bug")
    work.go_on.set()

    loop_of(bench, work)[0].step()

    assert broke.wait(10)
    assert bench.host.slots.used == 0


def test_without_a_slot_nothing_is_taken(valkey, monkeypatch):
    bench = Bench(valkey, slots=1)
    bench.enqueue()
    bench.host.slots.try_take()
    bench.host.stopping.set()

    loop_of(bench, Work())[0].step()

    assert queuekit.listed(valkey) == ["local-1"]
    assert bench.host.slots.used == 1


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda bench: bench.host.slots.resize(0), id="the last slot went"),
        pytest.param(lambda bench: bench.host.stopping.set(), id="a stop was asked"),
    ],
)
def test_a_job_that_came_out_of_a_wait_without_a_slot_goes_back_to_the_front(valkey, meanwhile):
    bench, work = Bench(valkey), Work()
    loop, popper = loop_of(bench, work)

    def come() -> None:
        bench.enqueue("local-1")
        bench.enqueue("local-2")
        meanwhile(bench)

    popper.before_wait = come

    loop.step()

    assert queuekit.listed(valkey) == ["local-1", "local-2"]
    assert bench.standing() == "queued"
    assert (work.had, bench.host.slots.used) == ([], 0)


def test_a_job_that_came_out_of_a_wait_is_started_when_a_slot_is_free(valkey):
    bench, work = Bench(valkey), Work()
    loop, popper = loop_of(bench, work)
    popper.before_wait = bench.enqueue

    loop.step()
    assert work.until(1)
    work.go_on.set()

    assert bench.host.slots.wait_idle(10)


@pytest.mark.parametrize("when", ["at once", "after a wait"])
def test_a_machine_without_threads_gets_its_job_back_into_the_queue(valkey, monkeypatch, events, when):
    bench, work = Bench(valkey), Work()
    loop, popper = loop_of(bench, work)
    if when == "at once":
        bench.enqueue()
    else:
        popper.before_wait = bench.enqueue
    monkeypatch.setattr("dispatch.worker.loop._NO_THREAD_SECONDS", 0.01)

    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    loop.step()

    assert queuekit.listed(valkey) == ["local-1"]
    assert queuekit.hash_of(valkey, "local-1")["putBacks"] == "0"
    assert bench.host.slots.used == 0
    assert [one["event"] for one in events()] == ["attempt_thread_refused"]


@pytest.mark.parametrize("when", ["at once", "after a wait"])
def test_a_slot_is_not_lost_when_even_the_giving_back_breaks(valkey, monkeypatch, when):
    def broken(point: str) -> None:
        if point == "before give back":
            raise ValueError("a bug")

    bench = Bench(valkey, delays=broken)
    loop, popper = loop_of(bench, Work())
    if when == "at once":
        bench.enqueue()
    else:
        popper.before_wait = bench.enqueue

    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(ValueError, match="a bug"):
        loop.step()

    assert bench.host.slots.used == 0


def test_a_shutdown_without_valkey_leaves_a_job_without_a_slot_in_hand(valkey, events):
    def lost(point: str) -> None:
        if point == "before give back":
            raise FAULT

    bench = Bench(valkey, delays=lost)
    loop, popper = loop_of(bench, Work())

    def come() -> None:
        bench.enqueue()
        bench.give_up()

    popper.before_wait = come

    loop.step()

    assert bench.standing() == "in-hand"
    assert [one["event"] for one in events()] == ["job_left_behind"]


@pytest.mark.parametrize("key", ["pause:*", "pause:pi-jobs", "drain:alpha"])
def test_nothing_comes_out_under_a_switch_and_no_slot_is_held(valkey, key):
    bench, work = Bench(valkey), Work()
    bench.enqueue()
    valkey.hset(key, mapping={"by": "op", "until": ""})

    loop_of(bench, work)[0].step()

    assert queuekit.listed(valkey) == ["local-1"]
    assert (work.had, bench.host.slots.used) == ([], 0)


def test_an_id_that_stands_for_nothing_is_dropped_and_told(valkey, events):
    bench, work = Bench(valkey), Work()
    valkey.rpush("rq:queue:pi-jobs", "no_5fbody")

    loop_of(bench, work)[0].step()

    assert events() == [{"event": "job_dropped", "jobId": "no_body"}]
    assert (queuekit.listed(valkey), bench.host.slots.used) == ([], 0)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(FAULT, 0, id="a fault of Valkey"),
        pytest.param(ValueError("a bug"), 1, id="a bug"),
    ],
)
def test_the_loop_goes_on_after_whatever_a_step_raises(valkey, events, error, told):
    bench, work = Bench(valkey), Work()
    bench.enqueue()
    work.go_on.set()
    loop, popper = loop_of(bench, work)
    popper.pops = [error]
    thread = threading.Thread(target=pop_until_stopped, args=(bench.host, loop))

    thread.start()
    assert work.until(1)
    bench.host.stopping.set()
    thread.join(10)

    assert not thread.is_alive()
    assert len([one for one in events() if one["event"] == "worker_thread_error"]) == told
    assert len(bench.faults) == 1 - told
    assert bench.host.slots.wait_idle(10)


def test_two_loops_never_hold_more_slots_than_there_are(valkey):
    bench, work = Bench(valkey, slots=2), Work()
    for number in range(6):
        bench.enqueue(f"local-{number}")
    other = Bench(valkey, boot_number=2)
    loops = [loop_of(bench, work)[0], PopLoop(bench.host, other.popper, work=work)]
    threads = [threading.Thread(target=pop_until_stopped, args=(bench.host, one)) for one in loops]

    for thread in threads:
        thread.start()
    assert work.until(2)
    assert bench.host.slots.used == 2
    assert len(work.had) == 2
    work.go_on.set()
    assert work.until(6)
    bench.host.stopping.set()
    for thread in threads:
        thread.join(10)

    assert sorted(work.had) == [f"local-{number}" for number in range(6)]


def test_a_queue_that_cannot_be_read_is_told_once_and_taken_from_when_mended(valkey, events, monkeypatch):
    monkeypatch.setattr(loops, "_REFUSED_SECONDS", 0.01)
    bench, work = Bench(valkey), Work()
    bench.enqueue()
    work.go_on.set()
    loop, popper = loop_of(bench, work)
    popper.pops = [redis.exceptions.ResponseError("WRONGTYPE")] * 3
    thread = threading.Thread(target=pop_until_stopped, args=(bench.host, loop))

    thread.start()
    assert work.until(1)
    bench.host.stopping.set()
    thread.join(10)

    assert events() == [
        {"event": "queue_unreadable", "queue": "pi-jobs", "part": "pop", "reason": "wrong-type"},
        {"event": "queue_readable", "queue": "pi-jobs"},
    ]
