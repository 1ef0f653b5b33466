"""A thread that repeats one step until the worker stops."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dispatch.worker.outage import Outage
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS

_LONGEST_PAUSE_SECONDS = 5.0


class Daemon:
    """Calls `step` every `every` seconds, at once when `wake` is called, until `stop` is called.

    A callable `every` is asked after each step.

    A fault of Valkey is no error here: `outage` hears of it and the step is tried again, less and less often.
    Anything else is our own bug: it is logged by its type and the thread goes on, because a dead thread would
    leave jobs without beats or promotion.
    """

    def __init__(
        self, name: str, step: Callable[[], object], *, every: float | Callable[[], float], outage: Outage
    ) -> None:
        self._name = name
        self._step = step
        self._every = every
        self._outage = outage
        self._bell = threading.Event()
        self._stopping = threading.Event()
        self._faults = 0
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first step comes at once."""
        self.thread.start()

    def wake(self) -> None:
        """Have the next step come now."""
        self._bell.set()

    def stop(self) -> None:
        """Ask the thread to end after the step it is in."""
        self._stopping.set()
        self._bell.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = self._once()
            self._bell.wait(pause)
            self._bell.clear()

    def _once(self) -> float:
        try:
            self._step()
        except VALKEY_FAULTS as fault:
            self._outage.faulted(fault)
        except Exception as error:  # noqa: BLE001 - the frame of a daemon loop
            if self._faults == 0:
                log.event("worker_thread_error", thread=self._name, error=type(error).__name__)
        else:
            self._faults = 0
            return self._pause()
        self._faults += 1
        return float(min(max(self._pause(), _LONGEST_PAUSE_SECONDS), 0.1 * 2 ** min(self._faults, 10)))

    def _pause(self) -> float:
        return self._every if isinstance(self._every, float | int) else self._every()
