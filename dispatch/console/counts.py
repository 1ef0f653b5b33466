"""Counts in good English, for one and for many."""

from __future__ import annotations

from collections.abc import Sequence


def times(count: int) -> str:
    """Say how often: `once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"


def last_times(count: int) -> str:
    """Say for how many times in a row, up to now: `the last time`, `the last 3 times`."""
    return "the last time" if count == 1 else f"the last {count} times"


def number_of(count: int, one: str, many: str) -> str:
    """Count things: `1 job waits`, `3 jobs wait`."""
    return f"{count} {one if count == 1 else many}"


def total_of(counts: Sequence[int | None]) -> str:
    """Add up: `1,234`; where one could not be read, at least that many: `1,234 + ?`."""
    total = f"{sum(count or 0 for count in counts):,}"
    return f"{total} + ?" if None in counts else total
