"""Links in the place of folders: a deployment switches them, and what comes next starts where they lead."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dispatch.schedules.placement import Placed
from dispatch.triggers.entries import CronOn, Triggers

# So many are looked at each second; the others as seldom as the rest.
_MOST = 500


@dataclass(frozen=True, slots=True)
class Links:
    """Folders as authored that are no real paths, and where they led."""

    led_to: tuple[tuple[str, str], ...] = ()

    @classmethod
    def among(cls, triggers: Triggers, placed: Placed) -> Links:
        """Take those that are served."""
        real = {one.id: str(one.run["folder"]) for one in placed.served}
        found = {
            (one.run.folder or "", real[one.on.id])
            for one in triggers.cron
            if isinstance(one.on, CronOn) and real.get(one.on.id, one.run.folder) != one.run.folder
        }
        return cls(tuple(sorted(found)[:_MOST]))

    def have_moved(self) -> bool:
        """Whether one leads to another folder now; one that leads nowhere is about to be switched."""
        return any(
            os.path.realpath(authored) != real and Path(authored).is_dir() for authored, real in self.led_to
        )
