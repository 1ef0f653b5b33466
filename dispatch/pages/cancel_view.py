"""What a cancel is about to do and has done, as the texts of a page and the values of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dispatch.console.about import NOTHING, About
from dispatch.console.arguments import one_line
from dispatch.console.cancelling import Cancelled, Fate
from dispatch.console.cancelling_many import Targets, runs
from dispatch.console.counts import number_of
from dispatch.pages.operation_state import Result
from dispatch.pages.queue_asked import token_of
from dispatch.queue.states import Standing, State

#: How many are shown one by one.
SHOWN = 20
_LONGEST = 120
_RUNNING = "Running"
_STANDS: Mapping[State | None, str] = {
    State.QUEUED: "Waiting",
    State.IN_HAND: "Waiting",
    State.SCHEDULED: "Deferred or held",
    State.STARTED: _RUNNING,
    State.FINISHED: "Ended already",
    State.FAILED: "Ended already",
    State.OTHER: "In a state that is none of ours",
    None: "Not known any more",
}
_FATES: Mapping[Fate, tuple[str, str]] = {
    Fate.DROPPED: ("was taken out of its queue", "were taken out of their queues"),
    Fate.STOPPING: ("is being stopped by its worker", "are being stopped by their workers"),
    Fate.CANCELLED: ("has been stopped", "have been stopped"),
    Fate.ENDED: ("had ended before", "had ended before"),
    Fate.UNANSWERED: ("is not stopped: its worker did not answer", "are not stopped: no worker answered"),
    Fate.UNKNOWN: ("was not known any more", "were not known any more"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A job that is to be cancelled, as a row; `host` runs it."""

    job_id: str
    about: str
    queue: str
    stands: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What is to be cancelled. `tokens` are all the jobs, for the form.

    `counts` and `queues` are of the first `looked` of the `total`.
    """

    total: int
    looked: int
    counts: tuple[tuple[str, int], ...]
    queues: tuple[tuple[str, int], ...]
    shown: tuple[Shown, ...]
    tokens: str
    runs: bool

    @property
    def more(self) -> int:
        """How many are not shown one by one."""
        return self.total - len(self.shown)


def preview(job_ids: Sequence[str], targets: Targets, known: Mapping[str, About]) -> Preview:
    """Lay out what is to be cancelled, the first jobs one by one; `targets` are as many as were looked at.

    `known` tells of the first what they are about.
    """
    stands = Counter(_STANDS[one.state if one else None] for one in targets.values())
    queues = Counter(one.queue for one in targets.values() if one)
    return Preview(
        total=len(job_ids),
        looked=len(targets),
        counts=tuple(stands.most_common()),
        queues=tuple(sorted(queues.items())),
        shown=tuple(
            _shown(job_id, one, known.get(job_id, NOTHING)) for job_id, one in islice(targets.items(), SHOWN)
        ),
        tokens=" ".join(filter(None, map(token_of, job_ids))),
        runs=_RUNNING in stands,
    )


def target(job_ids: Sequence[str]) -> str:
    """Name what is cancelled in the log: the one job, or how many."""
    return job_ids[0] if len(job_ids) == 1 else f"{len(job_ids)} jobs"


def before(job_ids: Sequence[str], targets: Targets) -> dict[str, Any]:
    """Tell how many of those that were looked at stood how, with the first ones by name."""
    stands = Counter(one.state.value if one else "unknown" for one in targets.values())
    told = {"stood": dict(stands), "first": list(islice(targets, SHOWN))}
    return told if len(targets) == len(job_ids) else {**told, "lookedAt": len(targets)}


def counted(found: Sequence[Cancelled]) -> dict[str, int]:
    """Count what became of them, for the log."""
    return dict(Counter(one.fate.value for one in found))


def result(found: Sequence[Cancelled]) -> Result:
    """Sum up what became of them."""
    fates = Counter(one.fate for one in found)
    done = sum(one.is_done for one in found)
    said = (f"{number_of(count, *_FATES[fate])}." for fate, count in fates.most_common())
    return Result(
        f"{done} of {number_of(len(found), 'job', 'jobs')} cancelled.",
        is_good=done == len(found),
        notes=tuple(said),
    )


def _shown(job_id: str, one: Standing | None, about: About) -> Shown:
    return Shown(
        job_id=one_line(job_id)[:_LONGEST],
        about=one_line(about.in_short)[:_LONGEST],
        queue=one_line(one.queue)[:_LONGEST] if one else "",
        stands=_STANDS[one.state if one else None],
        host=one_line(one.host or "")[:_LONGEST] if runs(one) and one else "",
    )
