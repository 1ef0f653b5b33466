"""How one job stands: the facts about it, and the token that names what it waits for or does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dispatch.console.obstacles import NO_WORKER, QueueFacts, obstacle
from dispatch.queue.entries import Entry
from dispatch.queue.states import State
from dispatch.waits.conditions import Conditions
from dispatch.waits.holds import Hold
from runs.outcome import Outcome

# Beside the reasons of a sleep (`WaitReason`), the obstacles of a queue, and the words a job ended with.
IN_LINE = "in-line"
BEING_CHECKED = "being-checked"
NOT_IN_LINE = "not-in-line"
DUE = "due"
ASLEEP = "asleep"
RUNNING = "running"
WORKER_SILENT = "worker-silent"
FOREIGN_STATE = "foreign-state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one job; instants in ms of Valkey's clock.

    `queue` holds for all jobs of its queue, `line` of which wait there and `busy` run or are in hand. `boot`
    has the job. `holders` are the jobs of its folder or repository that run or are in hand. `hold` and
    `conditions`: of a job that waits for conditions. `container` and `deadline_ms`: of one that runs.
    `ended_with` is the token it ended with, `last_reason` that of its attempt before, `ran_on` the host of
    the last attempt that began.
    """

    entry: Entry
    queue: QueueFacts
    line: int = 0
    busy: int = 0
    boot: str | None = None
    holders: Sequence[Entry] = ()
    hold: Hold | None = None
    conditions: Conditions | None = None
    container: str | None = None
    deadline_ms: int | None = None
    ended_with: str | None = None
    last_reason: str | None = None
    ran_on: str | None = None


def reason_of(entry: Entry, queue: QueueFacts, *, boot: str | None) -> str:
    """Name what the job waits for or does; of an ended one its state. `boot` is of the worker that has it."""
    match entry.state:
        case State.QUEUED:
            blocked = obstacle(queue)
            reason = blocked.reason if blocked else IN_LINE
        case State.IN_HAND | State.STARTED if queue.silence_ms(boot):
            reason = WORKER_SILENT
        case State.IN_HAND:
            reason = BEING_CHECKED
        case State.STARTED:
            reason = RUNNING
        case State.SCHEDULED if is_due(entry, queue.now_ms):
            reason = DUE if queue.has_worker else NO_WORKER
        case State.SCHEDULED:
            reason = entry.reason or ASLEEP
        case State.OTHER:
            reason = FOREIGN_STATE
        case _:
            reason = entry.state.value
    return reason


def is_due(entry: Entry, now_ms: int) -> bool:
    """Whether a sleeping job should be back in line: its whole second, rounded up, has come."""
    return entry.until_ms is None or -(-entry.until_ms // 1000) * 1000 <= now_ms


def ended_as(state: State, token: str | None) -> tuple[Outcome, str | None]:
    """Read outcome and reason out of how an ended job stands and the token that the queue keeps of it."""
    if state is State.FAILED:
        outcome = Outcome.FAILED
    else:
        outcome = Outcome.COMPLETED if token == Outcome.COMPLETED else Outcome.POLICY
    # An end without a reason has the outcome for its token.
    return outcome, None if token == outcome else token
