"""Python under libfaketime, imported by every interpreter that finds this folder on PYTHONPATH.

`time.sleep` asks the kernel to wake it at a monotonic instant; libfaketime 0.9.10 takes that for one of the
clock that it has changed, and the call fails. Waiting for an event that never comes is the same sleep.
"""

from __future__ import annotations

import threading
import time


def _sleep(seconds: float) -> None:
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    threading.Event().wait(seconds)


time.sleep = _sleep
