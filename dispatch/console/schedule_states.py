"""How a schedule stands, in a token and in words, and what keeps it from being acted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from dispatch.console.fleet_words import named
from dispatch.console.instants import span, stamp
from dispatch.console.obstacles import (
    DRAINED,
    ENGINE_SILENT,
    FLEET_PAUSED,
    NO_WORKER,
    QUEUE_PAUSED,
    QueueFacts,
    obstacle,
)
from dispatch.console.schedule_facts import Installed, TableLook
from dispatch.console.standing import BEING_CHECKED, DUE, IN_LINE, WORKER_SILENT, is_due, reason_of
from dispatch.console.waiting import sentence, sleep_of
from dispatch.queue.entries import Entry
from dispatch.queue.owner import boot_of
from dispatch.queue.states import State
from dispatch.queue.waiters import WaitReason
from dispatch.schedules.missed import GRACE, MissedReason, Standing, Verdict
from hosts.names import host_of_queue

OK = "ok"
NOT_ASKED = "not-asked"

# What a job waits for, as the reason why its record is missing; what its schedule asks for is none.
_HELD: Mapping[str, MissedReason] = {
    FLEET_PAUSED: MissedReason.PAUSED,
    QUEUE_PAUSED: MissedReason.PAUSED,
    NO_WORKER: MissedReason.HOST_GONE,
    WORKER_SILENT: MissedReason.HOST_GONE,
    DRAINED: MissedReason.DRAINING,
    ENGINE_SILENT: MissedReason.ENGINE_SILENT,
    WaitReason.PAUSE_WINDOW: MissedReason.PAUSE_WINDOW,
    WaitReason.CAP: MissedReason.CAP,
    WaitReason.SCOPE_BUSY: MissedReason.SCOPE_BUSY,
    WaitReason.SCOPE_BUSY_FLEET: MissedReason.SCOPE_BUSY_FLEET,
    WaitReason.RETRY: MissedReason.RETRY,
    IN_LINE: MissedReason.IN_LINE,
    DUE: MissedReason.IN_LINE,
    BEING_CHECKED: MissedReason.BEING_CHECKED,
}
_LATE_MS = GRACE // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindrance:
    """What keeps a schedule from being acted on: its token, half a sentence, and what ends it.

    `passes`: it ends by itself or is somebody's wish, and is no alarm as long as nothing is missed.
    """

    reason: MissedReason
    brief: str
    remedy: str
    passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a job of a schedule has not begun: the token, half a sentence, what ends it.

    `held` is the reason for which its occurrence is missed in time; None: its schedule asks for the wait.
    """

    why: str
    brief: str
    ends: str
    held: MissedReason | None = None


def hindrance(installed: Sequence[Installed], tables: Mapping[str, TableLook]) -> Hindrance | None:
    """Say what keeps it from being acted on where it is installed; None when one table is in order."""
    found = [_of_table(one, tables[one.queue]) for one in installed]
    known = [one for one in found if one]
    if len(known) < len(found) or not known:
        return None
    gone = [one for one in installed if not tables[one.queue].has_worker and one.torn is None]
    return _nobody(gone) if len(gone) == len(found) > 1 else known[0]


def wait_of(entry: Entry, queue: QueueFacts) -> Wait:
    """Say why a job that is waiting does; its words are those of `why`."""
    why = reason_of(entry, queue, boot=boot_of(entry.token or ""))
    blocked = obstacle(queue) if entry.state in {State.QUEUED, State.SCHEDULED} else None
    if blocked and blocked.reason == why:
        brief, ends = blocked.brief, sentence(blocked.remedy)
    elif entry.state is State.SCHEDULED and not is_due(entry, queue.now_ms):
        asleep = sleep_of(entry.reason, entry.cause)
        brief, ends = asleep.brief, asleep.ends
    elif why == WORKER_SILENT:
        brief = f"the worker that has it has been silent for {span(queue.silence_ms(_boot(entry)) or 0)}"
        ends = "Any live worker puts it back to the front of its queue."
    else:
        brief, ends = "its turn has not come yet", "A worker takes it when a slot is free (PI_CONCURRENCY)."
    held = None if why == WaitReason.WAIT else _HELD.get(why, MissedReason.UNKNOWN)
    return Wait(why=why, brief=brief, ends=ends, held=held)


def told(verdict: Verdict, hindered: Hindrance | None, waits: Wait | None) -> tuple[str, str, str]:
    """Tell token, words and remedy (blank: nothing is to be done) of how a schedule stands."""
    match verdict.standing:
        case Standing.MISSED:
            brief, remedy = _missed(verdict, hindered, waits)
            return Standing.MISSED.value, f"missed {stamp(verdict.instant_ms or 0)}: {brief}", remedy
        case Standing.RUNNING:
            return Standing.RUNNING.value, f"the occurrence of {stamp(verdict.instant_ms or 0)} runs", ""
        case Standing.WAITING if waits:
            return Standing.WAITING.value, f"waiting: {waits.brief}", ""
        case _:
            pass
    is_done = verdict.standing is Standing.DONE
    if hindered is None or (is_done and hindered.reason is MissedReason.UNKNOWN):
        return OK, "ok" if is_done else "ok, nothing was due yet", ""
    if hindered.passes:
        return OK, f"ok so far, but {hindered.brief}", ""
    return hindered.reason.value, hindered.brief, hindered.remedy


def besides(words: str) -> str:
    """Say how it stands after something else that was said of it; blank for what is in order."""
    return words.removeprefix(f"{OK} so far, but ").removeprefix(OK).removeprefix(", ")


def _missed(verdict: Verdict, hindered: Hindrance | None, waits: Wait | None) -> tuple[str, str]:
    if waits and verdict.reason == MissedReason.PREVIOUS_WAITS:
        return f"the occurrence before it still waits ({waits.brief})", waits.ends
    if waits and verdict.reason == waits.held:
        return waits.brief, waits.ends
    if hindered and verdict.reason == hindered.reason:
        return hindered.brief, hindered.remedy
    if verdict.reason == MissedReason.PREVIOUS_WAITS:
        remedy = "Give its jobs more slots, or its pattern more time."
        return "the occurrence before it still waited", remedy
    return "nobody knows why", "Look for its id in the workers' logs around that time."


def _nobody(installed: Sequence[Installed]) -> Hindrance:
    places = sorted(host_of_queue(one.queue) or f"the queue {one.queue}" for one in installed)
    return Hindrance(
        reason=MissedReason.HOST_GONE,
        brief=f"no worker of {named(places[:-1])} or {places[-1]} is there",
        remedy="Start one of them with `manage.py runworker`.",
    )


def _of_table(one: Installed, look: TableLook) -> Hindrance | None:
    if one.torn:
        return Hindrance(
            reason=MissedReason.TORN_DOWN,
            brief=f"torn down on {one.queue}: its jobs lost their worker {one.torn.stalls} times"
            " within a day",
            remedy=f"Find out why, then `manage.py triggers --restore {_shown_id(one)}`; or change it.",
        )
    blocked = look.obstacle
    if blocked:
        return Hindrance(
            reason=_HELD[blocked.reason],
            brief=blocked.brief,
            remedy=sentence(blocked.remedy),
            passes=blocked.reason != NO_WORKER,
        )
    if look.host and not look.host.fp_triggers:
        return Hindrance(
            reason=MissedReason.NO_FILE,
            brief=f"the worker {look.host.name} has no triggers file any more, so that nobody acts on it",
            remedy="Set PI_TRIGGERS_FILE there and restart the worker.",
        )
    if one.next_ms is not None and one.next_ms + _LATE_MS < look.queue.now_ms:
        return Hindrance(
            reason=MissedReason.UNKNOWN,
            brief=f"a worker takes from {one.queue}, and has not acted on it",
            remedy="Look for its id in that worker's log; a restart of the worker may help.",
        )
    if one.schedule is None:
        return Hindrance(
            reason=MissedReason.UNKNOWN,
            brief=f"what stands of it in {one.queue} cannot be read",
            remedy="Restart its worker, which writes it anew; else find out who writes to this Valkey.",
        )
    return None


def _shown_id(one: Installed) -> str:
    return one.schedule.id if one.schedule else "ID"


def _boot(entry: Entry) -> str:
    return boot_of(entry.token or "")
