from __future__ import annotations

import threading
import time

import pytest

from dispatch.worker.slots import Slots


def test_no_more_are_taken_than_the_limit_allows():
    slots = Slots(2)

    taken = [slots.try_take() for _ in range(3)]

    assert taken == [True, True, False]


def test_a_lower_limit_lets_the_next_wait_and_stops_nobody():
    slots = Slots(2)
    slots.try_take()
    slots.try_take()

    slots.resize(1)
    slots.give_back()

    assert slots.try_take() is False
    assert slots.used == 1


def test_a_higher_limit_counts_at_once():
    slots = Slots(1)
    slots.try_take()

    slots.resize(2)

    assert slots.try_take() is True


def test_a_slot_given_back_twice_is_refused():
    slots = Slots(1)
    slots.try_take()
    slots.give_back()

    with pytest.raises(RuntimeError, match="twice"):
        slots.give_back()


def test_who_waits_is_woken_when_a_slot_is_given_back():
    slots = Slots(1)
    slots.try_take()
    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(slots.take(stop=lambda: False)))
    waiter.start()

    slots.give_back()
    waiter.join(timeout=10)

    assert woken == [True]
    assert slots.used == 1


def test_waiting_for_a_slot_ends_when_a_stop_is_asked_and_leaves_the_line():
    slots = Slots(1)
    slots.try_take()

    assert slots.take(stop=lambda: True) is False
    assert slots.wait_idle(0.01) is False
    slots.give_back()
    assert slots.try_take() is True


@pytest.mark.parametrize("shares", [(1, 1), (1, 3)], ids=["two", "one and three"])
def test_who_waits_longest_has_the_next_slot(shares):
    """Each line member has every other slot, also one that gives its own back the sooner."""
    slots, order, stopped = Slots(1), [], threading.Event()
    slots.try_take()

    def loop(name: str) -> None:
        while slots.take(stop=stopped.is_set, ask_every=0.01):
            order.append(name)
            if len(order) >= 40:
                stopped.set()
            until_others_wait(slots, len(names) - 1, unless=stopped)
            slots.give_back()

    names = [f"{side}{number}" for side, count in zip("ab", shares, strict=True) for number in range(count)]
    threads = [threading.Thread(target=loop, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    until_others_wait(slots, len(names))
    slots.give_back()
    for thread in threads:
        thread.join(timeout=10)

    rounds = [order[at : at + len(names)] for at in range(0, 40 - len(names), len(names))]
    assert {tuple(one) for one in rounds} == {tuple(rounds[0])}
    assert sorted(rounds[0]) == sorted(names)


def until_others_wait(slots: Slots, count: int, *, unless: threading.Event | None = None) -> None:
    deadline = time.monotonic() + 5
    while len(slots._line) < count and time.monotonic() < deadline and not (unless and unless.is_set()):
        time.sleep(0.0005)


def test_nobody_jumps_the_line():
    slots, got = Slots(1), []
    slots.try_take()
    waiter = threading.Thread(target=lambda: got.append(slots.take(stop=lambda: False)))
    waiter.start()
    until_others_wait(slots, 1)

    assert slots.try_take() is False
    slots.give_back()
    waiter.join(timeout=10)

    assert got == [True]


def test_many_threads_never_hold_more_than_the_limit():
    slots = Slots(3)
    most = 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal most
        for _ in range(200):
            if slots.try_take():
                with guard:
                    most = max(most, slots.used)
                slots.give_back()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most <= 3
    assert slots.used == 0
