"""The time zone of this machine, by its IANA name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from zoneinfo import available_timezones

_LOCALTIME = Path("/etc/localtime")
_NAMED = Path("/etc/timezone")
_LONGEST_NAME = 255
# In some copies of the zone database; the one means another thing on each machine, the other nothing.
_NO_ZONES = frozenset({"localtime", "Factory"})


def zone_name(environment: Mapping[str, str], *, localtime: Path = _LOCALTIME, named: Path = _NAMED) -> str:
    """Name it as TZ says, else as the system is set up; blank where nobody says or it is no zone's name.

    A machine without a setting of its own shows UTC.
    """
    told = environment.get("TZ", "").removeprefix(":")
    if told:
        return _checked(told)
    for name in (_of_link(localtime), _of_file(named)):
        if name:
            return name
    return "" if localtime.exists() else "UTC"


def _of_link(link: Path) -> str:
    """Read the name out of where the link leads: `…/zoneinfo/Europe/Paris`."""
    return _checked(os.path.realpath(link).partition("/zoneinfo/")[2].removeprefix("posix/"))


def _of_file(path: Path) -> str:
    try:
        with path.open(encoding="ascii") as file:
            return _checked(file.read(_LONGEST_NAME).strip())
    except (OSError, ValueError):
        return ""


def _checked(name: str) -> str:
    return name if name in _names() else ""


@cache
def _names() -> frozenset[str]:
    """Every known name; the disk is looked at once in a process, as that takes as long as a page."""
    return frozenset(available_timezones() - _NO_ZONES)
