"""Figures of runs as the rollups tell them, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.rollup_figures import COLUMNS, MICROS, TOOK, WAITED, quantile

OUTCOMES = ("completed", "policy", "failed")

_PLAIN = (
    *(*OUTCOMES, "cost", "tokens_input", "tokens_output", "tokens_total"),
    *("took_seconds", "waited_seconds"),
)
_NO_BUCKETS = (0,) * len(TOOK)


@dataclass(frozen=True, slots=True)
class Hour:
    """How many runs ended in the hour from `start` on, by outcome."""

    start: datetime
    completed: int
    policy: int
    failed: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures of runs. `cost` in dollars; `took` and `waited` count runs by `BOUNDS_SECONDS` and beyond."""

    completed: int
    policy: int
    failed: int
    cost: float
    tokens_input: int
    tokens_output: int
    tokens_total: int
    took_seconds: float
    waited_seconds: float
    took: tuple[int, ...]
    waited: tuple[int, ...]

    @property
    def runs(self) -> int:
        """Count them all."""
        return self.completed + self.policy + self.failed

    @property
    def tokens_cached(self) -> int:
        """Count what was read from and written to caches: the total's rest beside input and output."""
        return max(0, self.tokens_total - self.tokens_input - self.tokens_output)

    @property
    def success(self) -> float | None:
        """Tell the share of the completed among those that could run, 0 to 1; None without any."""
        tried = self.completed + self.failed
        return self.completed / tried if tried else None

    def took_at(self, share: float) -> float | None:
        """Estimate the seconds that `share` of the runs did not exceed."""
        return quantile(self.took, share)

    def waited_at(self, share: float) -> float | None:
        """Estimate the seconds that `share` of the runs did not wait longer than."""
        return quantile(self.waited, share)


@dataclass(frozen=True, slots=True)
class Part:
    """The runs that have one value in a dimension; "" is none, None all that have no part of their own."""

    value: str | None
    totals: Totals


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Every run that ended, since the table began; nothing here ever gets less.

    `jobs` is by outcome and reason (None: without one).
    """

    jobs: Mapping[tuple[str, str | None], int]
    totals: Totals


def totals_of(sums: Sequence[Any]) -> Totals:
    """Read sums of the columns, None for nothing."""
    found = {column: int(amount or 0) for column, amount in zip(COLUMNS, sums, strict=True)}
    return Totals(
        completed=found["completed"],
        policy=found["policy"],
        failed=found["failed"],
        cost=found["cost_micros"] / MICROS,
        tokens_input=found["tokens_input"],
        tokens_output=found["tokens_output"],
        tokens_total=found["tokens_total"],
        took_seconds=found["took_ms"] / 1000,
        waited_seconds=found["waited_ms"] / 1000,
        took=tuple(found[column] for column in TOOK),
        waited=tuple(found[column] for column in WAITED),
    )


def together(several: Iterable[Totals]) -> Totals:
    """Add up."""
    found = list(several)
    plain = {name: sum(getattr(one, name) for one in found) for name in _PLAIN}
    return Totals(
        **plain,
        took=tuple(map(sum, zip(*(one.took for one in found), strict=True))) or _NO_BUCKETS,
        waited=tuple(map(sum, zip(*(one.waited for one in found), strict=True))) or _NO_BUCKETS,
    )
