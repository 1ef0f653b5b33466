"""What becomes of Ctrl-C, a request to end and a closed terminal while the demo plays."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Turns the first of these signals into KeyboardInterrupt; for a process's main thread.

    Whatever comes after the first is disregarded, so that the clean-up, which is bounded, is done.
    """

    def __init__(self) -> None:
        self._is_held = False
        self._is_asked = False

    def listen(self) -> None:
        """Begin; a signal that is ignored already stays so: `nohup` and shells ask for it that way."""
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._hear)

    def disregard(self) -> None:
        """Heed none of them from here on."""
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do the block as a whole; what was asked meanwhile interrupts at its end.

        Else an interrupt could come between the start of a process and our knowing of it.
        """
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        if self._is_asked:
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.disregard()
        self._is_asked = True
        if not self._is_held:
            raise KeyboardInterrupt


interrupts = Interrupts()
