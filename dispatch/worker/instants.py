"""Milliseconds as they stand in a job's hash, read as instants for its record."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(epoch_ms: int | None) -> datetime | None:
    """Read epoch milliseconds; None for none, and for what no calendar has. Never raises."""
    if not epoch_ms:
        return None
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
