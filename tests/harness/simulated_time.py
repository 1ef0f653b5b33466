"""What time it is for schedules, told by a file that the test moves: simulated hours in seconds.

Only schedules look at it; queues, money and records go by the real time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dispatch.instants import epoch_ms


class SimulatedTime:
    """The instant that stands in `path`; it stands still unless it is moved."""

    def __init__(self, path: Path, now: datetime) -> None:
        self.path = path
        self._numbers = itertools.count()
        self.now = now
        self.set(now)

    def __str__(self) -> str:
        """Give what `Knobs.schedule_clock` wants."""
        return str(self.path)

    def set(self, now: datetime) -> None:
        """Jump there, as for a machine that slept."""
        temporary = self.path.with_name(f".{self.path.name}.{next(self._numbers)}")
        temporary.write_text(str(epoch_ms(now)))
        temporary.replace(self.path)
        self.now = now

    def run(self, until: datetime, *, step: timedelta, pause: float) -> None:
        """Go there in steps, with a pause of real seconds after each."""
        while self.now < until:
            self.set(min(self.now + step, until))
            time.sleep(pause)


def reading(path: Path) -> Callable[[Any], int]:
    """Make the clock of a worker, in ms; which server is asked makes no difference."""
    return lambda _: int(path.read_text())
