"""Checks of the scripts that jobs may wait for: each a file that the worker could run now."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from dispatch.console.findings import Area, Finding
from dispatch.doctor.configuration import Known, not_looked_at

AREA = Area("waits")


def look(known: Known) -> Iterator[Finding]:
    """Judge every profile of PI_WAIT_PROFILES, also where no job waits for it."""
    if "PI_WAIT_PROFILES" in known.wrong:
        yield not_looked_at(AREA, "profiles", "PI_WAIT_PROFILES")
        return
    profiles = known.config.wait_profiles
    wrong = [(name, path, why) for name, path in profiles.items() if (why := _obstacle(path))]
    for name, path, why in wrong:
        yield AREA.failed(
            "profile",
            f"the check {name} of PI_WAIT_PROFILES cannot run: {path} {why}",
            f"Put an executable file there (chmod +x {path}), or take {name} out.",
        )
    if not profiles:
        yield AREA.ok("profiles", "no checks are declared (PI_WAIT_PROFILES)")
    elif not wrong:
        count = "1 check is" if len(profiles) == 1 else f"{len(profiles)} checks are"
        yield AREA.ok("profiles", f"{count} declared, each an executable file")


def _obstacle(path: Path) -> str | None:
    """Say why the file cannot be executed, as the end of a sentence about it; None when it can."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror or type(error).__name__})"
    if not stat.S_ISREG(mode):
        return "is no file"
    if not os.access(path, os.X_OK):
        return "is not executable for this user"
    return None
