"""Checks of this machine: Python, and the file of variables."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path

from dispatch.console.findings import Area, Finding

AREA = Area("host")
_LEAST, _TESTED = (3, 11), (3, 13)
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def python(version: tuple[int, ...]) -> Finding:
    """Judge the version of Python that this runs on."""
    text = f"Python {'.'.join(map(str, version[:3]))}"
    allowed = f"Use Python {_LEAST[0]}.{_LEAST[1]} to {_TESTED[0]}.{_TESTED[1]}."
    if version[:2] < _LEAST:
        return AREA.failed("python", f"{text} is too old", allowed)
    if version[:2] > _TESTED:
        return AREA.warning("python", f"{text} is newer than any that was tested", allowed)
    return AREA.ok("python", text)


def env_file(environment: Mapping[str, str], folder: Path | None) -> Finding:
    """Look for the file of variables, as commands that are started here do."""
    named = environment.get("PI_ENV_FILE")
    if folder is None and not named:
        return AREA.warning("env-file", "the current folder is gone, and with it any .env", "Change folder.")
    path = (folder or Path("/")) / (named or ".env")
    try:
        mode = path.stat().st_mode
    except OSError:
        return AREA.warning(
            "env-file",
            f"{path} is not there: only the variables of this process count",
            "Go to the folder where it lies or name it by PI_ENV_FILE; nothing is to be done where a service"
            " manager sets the variables.",
        )
    if mode & OTHERS:
        return AREA.warning(
            "env-file", f"{path} is open to other users, and such files hold keys", f"chmod 600 {path}"
        )
    return AREA.ok("env-file", f"variables are read from {path}")
