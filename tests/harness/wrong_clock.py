"""A host whose clock is wrong: libfaketime before its processes. Time goes by as it does; the date is off."""

from __future__ import annotations

from pathlib import Path

_LIBRARY = "faketime/libfaketimeMT.so.1"
_CLOCK = Path(__file__).parent / "clock"


def library() -> Path | None:
    """Where this machine has libfaketime (Debian: the package `libfaketime`)."""
    found = [*Path("/usr/lib").glob(f"*/{_LIBRARY}"), *Path("/usr").glob(f"lib*/{_LIBRARY}")]
    return found[0] if found else None


def off_by(seconds: int) -> dict[str, str]:
    """Give the environment of a process whose clock is ahead by so much (behind: negative)."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME": f"{seconds:+d}s",
        # Durations are right, as on a real host.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": str(_CLOCK),
    }
