"""Checks of what is kept: for how long, and not where the system throws it away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dispatch.console.findings import Area, Finding
from dispatch.doctor.configuration import Known, not_looked_at

AREA = Area("retention")


def look(known: Known) -> Iterator[Finding]:
    """Judge where this host keeps its things."""
    config = known.config
    places = {"PI_STATE_DIR": config.state_dir, "PI_LOGS_DIR": config.logs_dir}
    if on := known.wrong & places.keys():
        yield not_looked_at(AREA, "kept", *on)
        return
    if config.logs_dir.is_relative_to(config.state_dir):
        del places["PI_LOGS_DIR"]
    temporary = [(name, path) for name, path in places.items() if _is_temporary(path)]
    for name, path in temporary:
        yield AREA.warning(
            "temporary",
            f"{path} lies where the system removes files by itself, records and the host's identity too",
            f"Give {name} a directory that stays.",
        )
    if not temporary:
        records = _days(config.log_retention_days)
        yield AREA.ok("kept", f"records are kept {records}, rows of runs {_days(config.run_retention_days)}")


def _is_temporary(path: Path) -> bool:
    real = Path(os.path.realpath(path))
    folders = {os.path.realpath(one) for one in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")}  # noqa: S108
    return any(real.is_relative_to(one) for one in folders)


def _days(days: int) -> str:
    return f"{days} days" if days else "for ever"
