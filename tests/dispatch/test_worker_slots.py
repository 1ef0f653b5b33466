from __future__ import annotations

import threading

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
    waiter = threading.Thread(target=lambda: woken.append(slots.wait_free(10)))
    waiter.start()

    slots.give_back()
    waiter.join(timeout=10)

    assert woken == [True]


def test_waiting_for_a_free_slot_ends_with_the_time_given():
    slots = Slots(1)
    slots.try_take()

    assert slots.wait_free(0.01) is False
    assert slots.wait_idle(0.01) is False


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
