"""One JSON object a line: ours and a peer's figure from the same run, their ratio, and the target."""

from __future__ import annotations

import json


def report(
    name: str, *, ours: float, peer: float | None, target: float, at_most: bool, note: str | None = None
) -> bool:
    """Print a line. The ratio is ours to the peer's; without a peer it is ours to the target."""
    ratio = ours / (target if peer is None else peer)
    value = ours if peer is None else ratio
    holds = value <= target if at_most else value >= target
    line = {
        "name": name,
        "ours": round(ours, 4),
        "peer": None if peer is None else round(peer, 4),
        "ratio": round(ratio, 3),
        "target": target,
        "holds": holds,
    }
    print(json.dumps(line if note is None else {**line, "note": note}), flush=True)
    return holds
