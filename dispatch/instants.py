"""Milliseconds since 1970, as Valkey keeps them, and instants: each way, without the rounding of a float."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def instant_of(epoch_ms: int) -> datetime:
    """Read milliseconds since 1970 as an instant in UTC."""
    return _EPOCH + epoch_ms * _MS


def epoch_ms(instant: datetime) -> int:
    """Write an instant as whole milliseconds since 1970; what is less than one is cut off."""
    return (instant - _EPOCH) // _MS


def instant_or_none(epoch_ms: int | None) -> datetime | None:
    """Read what stands in a job's hash; None for none, and for what no calendar has. Never raises."""
    try:
        return instant_of(epoch_ms) if epoch_ms else None
    except OverflowError:
        return None
