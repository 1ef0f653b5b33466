"""How long the queue waits before it judges: production's values are the defaults, tests pass others."""

from __future__ import annotations

from dataclasses import dataclass

# A host silent for this long runs nothing any more, whatever its clock says: no container may take that long.
VANISHED_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds, unless the name says otherwise.

    `beat_every`: how often a worker says that it lives. `late`: a taker silent for longer loses what it had
    in hand. `gone`: an owner silent for longer loses what it had started. `grace`: how long an entry of our
    own may be held by no run of this process before it is put back or stalled; longer than any client waits
    for an answer. `execution_ttl`: what RQ's tools see of an execution lives this long after a beat.
    `forgotten`: an empty-handed boot silent for longer leaves the set of takers. `most_put_backs`: a job put
    back more often fails as `worker-lost`. `promote_most`, `sweep_most`: jobs per queue and step.
    """

    beat_every: float = 10
    late: float = 45
    gone: float = 90
    grace: float = 15
    execution_ttl: int = 90
    forgotten: float = 3600
    most_put_backs: int = 5
    promote_most: int = 1000
    sweep_most: int = 500
