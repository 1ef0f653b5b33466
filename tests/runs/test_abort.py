from __future__ import annotations

import threading

from runs.abort import Abort, AbortReason


def test_the_first_reason_stays():
    abort = Abort()
    assert (abort.reason, abort.is_set(), abort.wait(0)) == (None, False, False)

    abort.set(AbortReason.OPERATOR_CANCEL)
    abort.set(AbortReason.SHUTDOWN)

    assert (abort.reason, abort.is_set(), abort.wait(0)) == ("operator-cancel", True, True)


def test_every_bell_rings_once_whether_it_came_before_or_after():
    abort, rung = Abort(), []
    abort.attach(lambda: rung.append("early"))

    abort.set(AbortReason.SHUTDOWN)
    abort.set(AbortReason.SHUTDOWN)
    abort.attach(lambda: rung.append("late"))

    assert rung == ["early", "late"]


def test_a_waiting_thread_wakes():
    abort, woke = Abort(), []
    thread = threading.Thread(target=lambda: woke.append(abort.wait(10)))
    thread.start()

    abort.set(AbortReason.SWITCH)
    thread.join(5)

    assert woke == [True]
