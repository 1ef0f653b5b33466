"""Check of the state directory: whether a worker could keep its things there, making nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dispatch.console.findings import Finding
from dispatch.doctor.configuration import Known, not_looked_at
from dispatch.doctor.host import AREA, OTHERS


def look(known: Known) -> Finding:
    """Judge whether a worker could keep its things where it would, making nothing."""
    if "PI_STATE_DIR" in known.wrong:
        return not_looked_at(AREA, "state-directory", "PI_STATE_DIR")
    path = known.config.state_dir
    try:
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            return _unusable(path, "it is no directory")
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            return _unusable(path, "this user may not read and write it")
        return _privacy(path, found.st_mode)
    except FileNotFoundError:
        return _to_be_made(path)
    except OSError as error:
        return _unusable(path, error.strerror or type(error).__name__)


def _privacy(path: Path, mode: int) -> Finding:
    """Judge who else may enter; an empty directory is tightened by whoever uses it first."""
    if mode & OTHERS and any(path.iterdir()):
        return AREA.failed(
            "state-directory",
            f"the state directory {path} is open to other users: no worker starts",
            f"If it is meant to be this product's own: chmod 700 {path}",
        )
    return AREA.ok("state-directory", f"the state directory {path} can be used")


def _to_be_made(path: Path) -> Finding:
    there = next((one for one in path.parents if one.exists()), Path("/"))
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return AREA.ok("state-directory", f"the state directory {path} will be made by the first start")
    return _unusable(path, f"it is not there, and this user cannot make it in {there}")


def _unusable(path: Path, why: str) -> Finding:
    return AREA.failed(
        "state-directory",
        f"the state directory {path} cannot be used: {why}",
        "Give PI_STATE_DIR a directory that this user owns.",
    )
