"""Who it is that turns a switch, as it is kept with the switch and shown with it."""

from __future__ import annotations

import getpass
import socket


def who() -> str:
    """Name the person at this machine: `user@host`."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):
        return "unknown"
