"""Repeating one whole step until Valkey answers. Only for steps that may land twice: compare-and-sets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pidispatch_site.clients import VALKEY_FAULTS

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.05


class GaveUpError(Exception):
    """Valkey did not answer before we were told to stop; its last fault is the cause.

    Whether the step has landed is unknown. The sweep of whoever lives settles it.
    """


def patient(
    step: Callable[[], T],
    *,
    stop: Callable[[], bool],
    on_fault: Callable[[Exception], None] = lambda _: None,
    longest_pause: float = 2.0,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Do the step again and again while Valkey is at fault, and answer what it answers.

    Raises GaveUpError when `stop` says so after a fault; anything that is no fault of Valkey goes through at
    once. `on_fault` hears of each fault (the sweep must: `Sweeper.interrupted`). Pauses double up to
    `longest_pause` seconds; pass `threading.Event().wait` as `sleep` to be woken early.
    """
    pause = min(_FIRST_PAUSE_SECONDS, longest_pause)
    while True:
        try:
            return step()
        except VALKEY_FAULTS as fault:
            on_fault(fault)
            if stop():
                raise GaveUpError("Valkey did not answer before the stop") from fault
        sleep(pause)
        pause = min(pause * 2, longest_pause)
