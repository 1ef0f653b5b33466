"""Which numbered keys a lease has, and in which order a job tries them (Q 7.5)."""

from __future__ import annotations

#: The keys of the checks that run in the whole fleet.
CHECKS = "wait:check"
#: More than so many are not told from so many: each is a key that may have to be looked at.
MOST_SLOTS = 1024
#: Of so many numbers beyond the limit it is known who has them: from before the limit was lowered.
BEYOND = 32


def scope(scope_hash: str) -> str:
    """Name the keys of one scope, by its hash."""
    return f"slot:s:{scope_hash}"


def order(job_id: str, slots: int | None) -> tuple[int, ...]:
    """Give the numbers of the slots, from 0, in the order in which this job tries them.

    Each job begins at another one, so that not all of them queue up at the first. Empty where nothing is
    limited: without a number (None), or with one below 1.
    """
    if slots is None or slots < 1:
        return ()
    count = min(slots, MOST_SLOTS)
    start = abs(_hash(job_id)) % count
    return (*range(start, count), *range(start))


def beyond(slots: int | None) -> tuple[int, ...]:
    """Give the numbers that nobody takes any more but somebody may have; empty where nothing is limited."""
    count = len(order("", slots))
    return tuple(range(count, count + BEYOND)) if count else ()


def keys(prefix: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
    """Name the keys of these slots."""
    return tuple(f"{prefix}:{number}" for number in numbers)


def _hash(text: str) -> int:
    """Hash it as the reference does: units of UTF-16, in signed arithmetic of 32 bits."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + low + (high << 8)) & 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value
