"""Instants and distances in time as a person reads them; all values are milliseconds of Valkey's clock."""

from __future__ import annotations

from datetime import UTC, datetime

from dispatch.instants import instant_of

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_LAST_MS = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1000)


def span(milliseconds: int) -> str:
    """Write a distance in its two largest units: `45 s`, `4 min 5 s`, `2 h`, `3 d 4 h`."""
    left = max(milliseconds, 0) // 1000
    first = next((place for place, (_, size) in enumerate(_UNITS) if left >= size), len(_UNITS) - 1)
    parts = []
    for name, size in _UNITS[first : first + 2]:
        count, left = divmod(left, size)
        parts.append(f"{count} {name}")
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"


def ahead(instant_ms: int, now_ms: int) -> str:
    """Write how far an instant lies ahead, never too near: `in 4 min`; `now` when it has come."""
    # Up to the next whole second, as every wake-up is.
    left = -((now_ms - instant_ms) // 1000) * 1000
    return f"in {span(left)}" if left > 0 else "now"


def stamp(instant_ms: int) -> str:
    """Write an instant to the second, in UTC."""
    moment = instant_of(min(instant_ms, _LAST_MS))
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
