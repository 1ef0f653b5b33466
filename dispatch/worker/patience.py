"""Repeating a job's step while Valkey is away: the job stays in hand until it answers or we stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dispatch.queue.patient import patient
from dispatch.worker.host import Host

Answer = TypeVar("Answer")


def patiently(host: Host, step: Callable[[], Answer]) -> Answer:
    """Do a step that may land twice, again and again through an outage.

    Raises `dispatch.queue.patient.GaveUpError` when the worker has waited long enough in its shutdown: the
    sweep of the next boot settles the job.
    """
    return patient(
        step,
        stop=host.out_of_patience.is_set,
        on_fault=host.valkey_faulted,
        longest_pause=host.timings.valkey_retry_max,
        sleep=host.out_of_patience.wait,
    )
