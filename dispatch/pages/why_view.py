"""Why a job does not run, as the texts of a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse

from dispatch.console import why_shown
from dispatch.console.about import NOTHING, About
from dispatch.console.arguments import one_line
from dispatch.console.counts import times
from dispatch.console.waiting import sentence
from dispatch.console.why import Explanation
from dispatch.pages.queue_asked import token_of
from dispatch.queue.states import State
from dispatch.waits.holds import Hold

_LONGEST = 500
_MOST_HOLDERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A job that has the same folder or repository; `url` leads to why it stands as it does."""

    job_id: str
    url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a job stands: in two words and the token, why, what ends that, what else, and its figures.

    `is_stuck`: it does not run and is not over.
    """

    stands: str
    tone: str
    reason: str
    sentence: str
    remedy: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    holders: tuple[Holder, ...]
    is_stuck: bool
    can_be_cancelled: bool
    is_over: bool


_TONES = {
    State.STARTED: "good",
    State.IN_HAND: "good",
    State.QUEUED: "",
    State.SCHEDULED: "warn",
    State.FINISHED: "",
    State.FAILED: "bad",
    State.OTHER: "bad",
}


def answer(found: Explanation, about: About = NOTHING, slots: str = "") -> Answer:
    """Lay an explanation out; whatever a peer wrote is bounded and one line.

    `slots` says, as half a sentence, how many of them the hosts of its queue have.
    """
    entry = found.facts.entry
    return Answer(
        stands=one_line(why_shown.stands(found)),
        tone=_TONES[entry.state],
        reason=_cut(found.reason),
        sentence=_cut(found.sentence),
        remedy=_cut(found.remedy),
        notes=tuple(map(_cut, (*found.notes, *([sentence(slots)] if slots else [])))),
        facts=tuple((name, _cut(text)) for name, text in (*_facts(found), *_about(about))),
        holders=tuple(map(_holder, [one.job_id for one in found.facts.holders[:_MOST_HOLDERS]])),
        is_stuck=entry.state.is_waiting,
        can_be_cancelled=entry.state.is_waiting or entry.state is State.STARTED,
        is_over=entry.state.is_over,
    )


def _facts(found: Explanation) -> Iterator[tuple[str, str]]:
    facts, entry = found.facts, found.facts.entry
    yield "Queue", entry.queue
    if entry.position:
        yield "Place in line", f"{entry.position} of {facts.line}"
    yield from ((name.capitalize(), text) for name, text in why_shown.figures(found))
    known = {
        "Host": found.host,
        "Container": facts.container,
        "Cause": entry.cause,
        "Checks": _checks(facts.hold) if facts.hold else None,
        "Last attempt": facts.last_reason,
        "Lost in hand": times(entry.put_backs) if entry.put_backs else None,
        "Scope": entry.scope_hash,
    }
    yield from ((name, text) for name, text in known.items() if text)


def _about(about: About) -> Iterator[tuple[str, str]]:
    known = {"Kind": about.kind, "Target": about.target, "Flow": about.flow, "Model": about.model}
    yield from ((name, text) for name, text in known.items() if text)


def _checks(hold: Hold) -> str:
    return (
        f"asked {times(hold.checks)}, {hold.faults} in a row without an answer,"
        f" {hold.throttles} in a row without a free slot"
    )


def _holder(job_id: str) -> Holder:
    token = token_of(job_id)
    return Holder(job_id=_cut(job_id), url=reverse("admin:console_why", args=[token]) if token else None)


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
