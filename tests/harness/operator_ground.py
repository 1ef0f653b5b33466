"""The operator's files of one host, written as operators and editors write them, and a check of its own.

A window ends on a whole minute of its zone's clock. So that tests need not wait for one, there are zones
whose clocks are some seconds ahead.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
import zoneinfo
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

Name = Literal["windows", "limits", "settings"]

#: What each file says when it is to say nothing.
EMPTY: Mapping[Name, Any] = {
    "windows": {"windows": []},
    "limits": {"version": 1, "limits": []},
    "settings": {},
}


class OperatorGround:
    """Three files and one check, `check`, in `folder`; `environment` is what the worker is told of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._numbers = itertools.count()
        self._zones = folder / "zones"
        self.check = folder / "check"
        self.paths: dict[Name, Path] = {name: folder / f"{name}.json" for name in EMPTY}
        for name, content in EMPTY.items():
            self.write(name, content)
        self.says(0)
        _make_zones(self._zones)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PI_PAUSE_WINDOWS_FILE": str(self.paths["windows"]),
            "PI_SCOPED_LIMITS_FILE": str(self.paths["limits"]),
            "PI_SETTINGS_FILE": str(self.paths["settings"]),
            "PI_WAIT_PROFILES": f"check:{self.check}",
            "PYTHONTZPATH": os.pathsep.join([str(self._zones), *zoneinfo.TZPATH]),
        }

    def write(self, name: Name, content: Any) -> None:
        """Replace a file as a careful editor does: a new one, renamed over it. Text is written as it is."""
        temporary = self.paths[name].with_name(f".{name}.{next(self._numbers)}")
        temporary.write_text(content if isinstance(content, str) else json.dumps(content))
        temporary.replace(self.paths[name])

    def pause(self, *folders: Path, to: datetime | None = None) -> None:
        """Pause these folders and no others: until `to` (a whole second within half a day), or all day."""
        self.write("windows", paused(folders, to=to))

    def cap(self, **of_day: int) -> None:
        """Say so in the settings: `dailyCap=5`."""
        self.write("settings", of_day)

    def says(self, code: int) -> None:
        """Have the check say so from now on."""
        temporary = self.check.with_name(f".check.{next(self._numbers)}")
        temporary.write_text(f"#!/bin/sh\nexit {code}\n")
        temporary.chmod(0o755)
        temporary.replace(self.check)


def paused(folders: Iterable[Path], *, to: datetime | None = None) -> dict[str, Any]:
    """Write the windows that pause these folders, as in `OperatorGround.pause`."""
    return {"windows": [{"scope": str(folder), **_hours(to)} for folder in folders]}


def limited(folders: Iterable[Path], *, day: int) -> dict[str, Any]:
    """Write scoped limits of a day."""
    return {"version": 1, "limits": [{"scope": str(folder), "day": day} for folder in folders]}


def in_seconds(seconds: float) -> datetime:
    """The first whole second (UTC) that is no sooner than in so many seconds."""
    soon = datetime.now(UTC) + timedelta(seconds=seconds)
    return soon.replace(microsecond=0) + timedelta(seconds=1 if soon.microsecond else 0)


def _hours(to: datetime | None) -> dict[str, Any]:
    if to is None:
        return {"allDay": True}
    ahead = -to.second % 60
    end = to + timedelta(seconds=ahead)
    begin = end - timedelta(hours=12)
    return {"from": f"{begin:%H:%M}", "to": f"{end:%H:%M}", "tz": f"Test/Ahead{ahead:02}"}


def _make_zones(folder: Path) -> None:
    (folder / "Test").mkdir(parents=True)
    for ahead in range(60):
        # TZif, version 1: one type of local time and no changes.
        header = b"TZif" + b"\0" * 16 + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
        (folder / "Test" / f"Ahead{ahead:02}").write_bytes(
            header + struct.pack(">lbb", ahead, 0, 0) + b"TST\0"
        )
