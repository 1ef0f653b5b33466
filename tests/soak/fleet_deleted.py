"""The same as `fleet`, while registry, mirror and leases are deleted each second for a minute."""

from __future__ import annotations

from tests.soak import fleet


def run(*, short: bool) -> dict[str, object]:
    """Nothing refuses and nothing is lost; the bounds of repositories are not judged."""
    return fleet.play(short=short, deletion_seconds=10 if short else 60)
