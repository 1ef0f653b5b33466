"""How long a waiting job sleeps between two checks, and when it has waited enough (Q 9.4, 9.5).

All times are whole milliseconds; `random` is a number from 0 up to, not including, 1.
"""

from __future__ import annotations

from enum import StrEnum

# An instant this near counts as reached.
NEAR_ENOUGH_MS = 1000
# Not the delay of a busy folder: the two must be tellable apart by when they wake.
SHORTEST_THROTTLE_MS = 11_000
AFTER_ABORT_MS = 11_000
UNVERIFIED_MS = 15_000
# As many denied slots in a row are said aloud.
DENIALS_TO_SAY = 5

_LONGEST_BACKOFF_MS = 900_000
_SHORTEST_HOLD_MS = 1000
_CHECKS_PER_STEP = 10
# Beyond it every distance is cut anyway; the shift stays small for any elapsed time.
_MOST_DOUBLINGS = 40


class Bound(StrEnum):
    """Why a job does not wait any longer; all but the first are expiries, and these are their details."""

    MAX_FAULTS = "max-faults"
    MAX_CHECKS = "max-checks"
    MAX_WAIT = "max-wait"
    MAX_WAIT_UNCHECKED = "max-wait-unchecked"


def backoff(base_ms: int, elapsed_ms: int) -> int:
    """Give the distance to the next check: doubled every ten bases, up to 15 minutes or a longer base.

    It follows from the time held alone, so that a restart does not start it again.
    """
    doublings = min(max(elapsed_ms, 0) // (_CHECKS_PER_STEP * base_ms), _MOST_DOUBLINGS)
    return min(base_ms << doublings, max(_LONGEST_BACKOFF_MS, base_ms))


def jittered(delay_ms: int, random: float) -> int:
    """Add up to a tenth, so that jobs held together do not wake together."""
    return delay_ms + int(0.1 * delay_ms * random)


def hold_delay(base_ms: int, held_ms: int, max_ms: int, random: float) -> int:
    """Give the sleep after a check that said "not yet": not past the longest hold, and at least a second."""
    return max(_SHORTEST_HOLD_MS, min(jittered(backoff(base_ms, held_ms), random), max_ms - held_ms))


def throttle_delay(base_ms: int, held_ms: int, random: float) -> int:
    """Give the sleep of a job for whose check no slot was free."""
    return jittered(max(SHORTEST_THROTTLE_MS, backoff(base_ms, held_ms) // 4), random)


def bound_after_check(
    *, faults: int, checks: int, held_ms: int | None, max_faults: int, max_checks: int, max_ms: int
) -> Bound | None:
    """Name the bound that ends the waiting after a check that was not "go"; None: it goes on.

    `faults` (in a row) and `checks` include this check; `held_ms` is None for a job that was never held,
    which is not the same as one held for no time.
    """
    if faults >= max_faults:
        return Bound.MAX_FAULTS
    if checks >= max_checks:
        return Bound.MAX_CHECKS
    return Bound.MAX_WAIT if held_ms is not None and held_ms >= max_ms else None


def bound_when_throttled(*, held_ms: int | None, max_ms: int) -> Bound | None:
    """Name the bound that ends the waiting of a job that got no slot; None: it goes on."""
    return Bound.MAX_WAIT_UNCHECKED if held_ms is not None and held_ms >= max_ms else None
