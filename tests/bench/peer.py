"""What the peers' jobs do; in a module of its own so that a stock worker imports nothing else."""

from __future__ import annotations


def nothing() -> None:
    """Return at once."""
