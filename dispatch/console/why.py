"""Why is a job not running? One answer for every state, the same for commands, programs and the admin.

`explain` is a rule: `dispatch.console.lookup` reads the facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dispatch.console.counts import last_times, number_of, times
from dispatch.console.instants import span, stamp
from dispatch.console.obstacles import NO_WORKER, TIMINGS, obstacle
from dispatch.console.remedies import next_step
from dispatch.console.standing import NOT_IN_LINE, Facts, ended_as, is_due, reason_of
from dispatch.console.waiting import Sleep, sentence, sleep_of, wakes_ms
from dispatch.queue.entries import Entry
from dispatch.queue.states import State
from dispatch.queue.waiters import WaitReason
from runs import wording

_MOST_HOLDERS = 3
_BUSY = ("runs or is in hand", "run or are in hand")
_START_A_WORKER = "start one with `manage.py runworker`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job stands as it does: `reason` is the token, `sentence` says it, `remedy` what ends it.

    `until_ms` is when it wakes, the pause ends, or its container ends itself; None where nobody knows.
    `host` has it, or had it last. `notes` are sentences on what else stands in its way.
    """

    facts: Facts
    reason: str
    sentence: str
    remedy: str
    since_ms: int | None
    until_ms: int | None
    host: str | None
    notes: tuple[str, ...]


def explain(facts: Facts) -> Explanation:
    """Say why the job is not running, or how it stands."""
    entry = facts.entry
    known = Explanation(
        facts=facts,
        reason=reason_of(entry, facts.queue, boot=facts.boot),
        sentence="Something other than pi-dispatch gave it a state that is none of ours.",
        remedy="Nobody will run it; enqueue its task again.",
        since_ms=entry.since_ms,
        until_ms=wakes_ms(entry, facts.queue.now_ms),
        host=entry.host,
        notes=_notes(facts),
    )
    match entry.state:
        case State.QUEUED:
            return _queued(known)
        case State.IN_HAND:
            return _in_hand(known)
        case State.SCHEDULED:
            return _due(known) if is_due(entry, facts.queue.now_ms) else _asleep(known)
        case State.STARTED:
            return _started(known)
        case State.FINISHED | State.FAILED:
            return _ended(known)
        case _:
            return known


def _queued(known: Explanation) -> Explanation:
    facts = known.facts
    before = (facts.entry.position or 1) - 1
    place = f"behind {number_of(before, 'other', 'others')}" if before else "next"
    waiting = number_of(facts.line, "job waits", "jobs wait")
    in_line = f"It is {place} in line (of this queue {waiting}, {number_of(facts.busy, *_BUSY)})."
    blocked = obstacle(facts.queue)
    if blocked is None:
        return replace(
            known,
            sentence=in_line,
            remedy="A worker takes it when its turn has come and a slot is free (PI_CONCURRENCY).",
        )
    return replace(
        known,
        sentence=sentence(blocked.brief),
        remedy=sentence(blocked.remedy),
        until_ms=blocked.until_ms,
        notes=(in_line, *known.notes),
    )


def _in_hand(known: Explanation) -> Explanation:
    facts, worker = known.facts, _worker(known.facts.entry)
    if facts.boot is None:
        return replace(
            known,
            reason=NOT_IN_LINE,
            sentence="It is queued and stands in no list: something other than pi-dispatch took it out.",
        )
    silent = facts.queue.silence_ms(facts.boot)
    if silent:
        return replace(
            known,
            sentence=f"It is in the hand of {worker}, which has been silent for {span(silent)}.",
            remedy=f"Any live worker puts it back to the front of its queue; {_START_A_WORKER}.",
        )
    return replace(
        known,
        sentence=f"It is in the hand of {worker}, at the checks before its container.",
        remedy="In a moment it starts, is put off or is refused.",
    )


def _due(known: Explanation) -> Explanation:
    facts = known.facts
    slept = f"It slept ({_sleep(facts).brief}), and its time has come"
    if facts.queue.has_worker:
        remedy = "A worker brings it back to the front of its queue within seconds."
        return replace(known, sentence=f"{slept}.", remedy=remedy)
    return replace(
        known,
        sentence=f"{slept}; no worker is there to bring it back.",
        remedy=sentence(_START_A_WORKER),
    )


def _asleep(known: Explanation) -> Explanation:
    facts, words = known.facts, _sleep(known.facts)
    said = sentence(words.brief)
    match facts.entry.reason:
        case WaitReason.WAIT:
            return _waiting(known)
        case WaitReason.SCOPE_BUSY | WaitReason.SCOPE_BUSY_FLEET if facts.holders:
            said = sentence(f"{words.brief}: {_busy_with(facts.holders)}")
        case WaitReason.RETRY:
            why = f" ({facts.last_reason})" if facts.last_reason else ""
            tries = f"attempt {facts.entry.attempt} of {facts.entry.attempts}"
            said = sentence(f"{tries} could not run{why}; it is tried again")
        case _:
            pass
    return replace(known, sentence=said, remedy=words.ends)


def _waiting(known: Explanation) -> Explanation:
    facts = known.facts
    after = facts.conditions.after if facts.conditions else None
    if after is None or after.timestamp() * 1000 <= facts.queue.now_ms:
        return replace(known, sentence=_held(facts), remedy=sleep_of(WaitReason.WAIT).ends)
    profiles = facts.conditions.profiles if facts.conditions else ()
    return replace(
        known,
        sentence=f"It is held and not to start before {stamp(int(after.timestamp() * 1000))}.",
        remedy="Then it is brought back to the front of its queue by itself"
        + (f", and held until {', '.join(profiles)} {_say(profiles)} go." if profiles else "."),
    )


def _held(facts: Facts) -> str:
    conditions, hold, now_ms = facts.conditions, facts.hold, facts.queue.now_ms
    profiles = conditions.profiles if conditions else ()
    said = [f"It is held until {', '.join(profiles) or 'its conditions'} {_say(profiles)} go"]
    held_ms = hold.held_ms(now_ms) if hold else None
    if hold and hold.checks:
        within = "" if held_ms is None else f" in {span(held_ms)}"
        said.append(f"asked {times(hold.checks)}{within}")
    if hold and hold.faults:
        said.append(f"a check could not tell {last_times(hold.faults)}")
    if hold and hold.throttles:
        said.append(f"no slot for a check was free {last_times(hold.throttles)}")
    return sentence("; ".join(said))


def _say(profiles: Sequence[str]) -> str:
    return "says" if len(profiles) == 1 else "say"


def _busy_with(holders: Sequence[Entry]) -> str:
    named = [
        f"job {one.job_id} {'runs on' if one.state is State.STARTED else 'is in the hand of'} {_worker(one)}"
        for one in holders[:_MOST_HOLDERS]
    ]
    more = len(holders) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _started(known: Explanation) -> Explanation:
    facts, worker = known.facts, _worker(known.facts.entry)
    container = f" in container {facts.container}" if facts.container else ""
    known = replace(known, until_ms=facts.deadline_ms)
    silent = facts.queue.silence_ms(facts.boot)
    if silent:
        return replace(
            known,
            sentence=f"It was started on {worker}{container}, which has been silent for {span(silent)}.",
            remedy=f"After {span(int(TIMINGS.gone * 1000))} of silence any live worker records it as stalled;"
            " it is never run again by itself.",
        )
    return replace(
        known,
        sentence=f"It runs on {worker}{container}.",
        remedy=f"`manage.py logs {facts.entry.job_id} --follow` on that host shows what it prints, when"
        " PI_CAPTURE_JOB_LOGS=1 keeps that.",
    )


def _ended(known: Explanation) -> Explanation:
    facts = known.facts
    outcome, reason = ended_as(facts.entry.state, facts.ended_with)
    said = (wording.outcome_sentence(outcome), wording.reason_sentence(reason))
    logs = f"`manage.py logs {facts.entry.job_id}` on {facts.ran_on} may have what it printed."
    record = "Its record stands in the console's list of runs."
    return replace(
        known,
        reason=reason or outcome.value,
        sentence=" ".join(filter(None, said)),
        remedy=" ".join(filter(None, (next_step(reason), record, logs if facts.ran_on else ""))),
        host=facts.ran_on,
    )


def _notes(facts: Facts) -> tuple[str, ...]:
    entry, notes = facts.entry, []
    blocked = obstacle(facts.queue) if entry.state in {State.SCHEDULED, State.IN_HAND} else None
    if blocked and (entry.state is State.SCHEDULED or blocked.reason != NO_WORKER):
        notes.append(sentence(f"besides, {blocked}"))
    if entry.put_backs and entry.state.is_waiting:
        notes.append(f"A worker was lost with it in hand {times(entry.put_backs)}.")
    return tuple(notes)


def _worker(entry: Entry) -> str:
    return f"the worker {entry.host}" if entry.host else "a worker"


def _sleep(facts: Facts) -> Sleep:
    return sleep_of(facts.entry.reason, facts.entry.cause)
