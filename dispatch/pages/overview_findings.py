"""What somebody should look after: the fleet's warnings, the doctor's last look, missed schedules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dispatch.console.arguments import one_line
from dispatch.console.counts import number_of
from dispatch.console.findings import Finding, Mark
from dispatch.console.fleet_findings import CHECKS
from dispatch.console.fleet_words import AREA
from dispatch.console.instants import span
from dispatch.console.schedule_facts import Line, Overview
from dispatch.console.schedules_notes import headline
from dispatch.pages.doctor_rounds import Looked

_MOST_SCHEDULES = 8
_MOST_FINDINGS = 30
# What the doctor says of one schedule; each is told once, below.
_OF_A_SCHEDULE = re.compile(r"schedule \S+: ")
# What these say quotes from operators' files and variables, which may be anything: here stands what it is
# about, and the doctor's own output has the rest.
_QUOTING = {
    ("configuration", "variables", Mark.FAILED): "variables of this host cannot be used as they stand",
    ("files", "loads", Mark.FAILED): "an operator's file of this host does not load",
    ("files", "unknown-key", Mark.WARNING): "operators' files of this host have keys that mean nothing",
    (
        "triggers",
        "loads",
        Mark.FAILED,
    ): "the triggers file of this host does not load: no worker starts with it",
    ("triggers", "unknown-key", Mark.WARNING): "the triggers file of this host has keys that mean nothing",
}
_ASK = "`manage.py doctor` on this machine tells what stands there, and what is allowed."
_TONES = {Mark.FAILED: "bad", Mark.WARNING: "warn", Mark.OK: "good"}


@dataclass(frozen=True, slots=True)
class Concern:
    """Something to look after: how bad, what about, what it is, and what to do."""

    tone: str
    word: str
    area: str
    text: str
    fix: str


@dataclass(frozen=True, slots=True)
class Concerns:
    """The concerns, the worst first, with what is said of all of them; `more` were left out."""

    listed: list[Concern]
    more: int
    doctor: str


@dataclass(frozen=True, slots=True)
class Missed:
    """The schedules to look after: a sentence on all; each as tone, id, words, remedy; `more` left out."""

    head: str
    listed: list[tuple[str, str, str, str]]
    more: int


def concerns(
    now: Sequence[Finding] | None,
    looked: Looked,
    veil: Callable[[str], str],
    *,
    with_schedules: bool = True,
    sees_hosts: bool = True,
) -> Concerns:
    """Put together what the fleet shows now and what the doctor found; what both tell is shown once.

    `now` is None where the fleet could not be seen. What can be seen now is told only if it is so now: the
    doctor looked a while ago. Without `sees_hosts` that is not known. Without `with_schedules` the doctor's
    words on single schedules are left out.
    """
    fresh = {one.check for one in now or ()}
    gone = CHECKS - fresh if now is not None and sees_hosts else frozenset()
    doctor = [
        one
        for one in looked.findings or ()
        if (with_schedules or not _is_of_a_schedule(one))
        and not (one.area == AREA.name and one.check in gone)
    ]
    failed = {(one.area, one.check) for one in doctor if one.mark is Mark.FAILED}
    of_now = [one for one in now or () if (one.area, one.check) not in failed]
    of_doctor = [
        one
        for one in doctor
        if one.mark is Mark.FAILED
        or (one.mark is Mark.WARNING and not (one.area == AREA.name and one.check in fresh))
    ]
    every = dict.fromkeys(map(_unquoted, (*of_now, *of_doctor)))
    found = sorted(every, key=lambda one: one.mark is not Mark.FAILED)
    return Concerns(
        listed=[_concern(one, veil) for one in found[:_MOST_FINDINGS]],
        more=max(0, len(found) - _MOST_FINDINGS),
        doctor=_doctor(looked),
    )


def _is_of_a_schedule(one: Finding) -> bool:
    return one.area == "triggers" and _OF_A_SCHEDULE.match(one.text) is not None


def missed(overview: Overview, veil: Callable[[str], str]) -> Missed:
    """Pick the schedules that somebody should look after."""
    alarms = sorted((line for line in overview.lines if line.is_alarm), key=_is_less)
    return Missed(
        head=headline(overview),
        listed=[
            (_TONES[line.mark], one_line(line.id), veil(one_line(line.words)), veil(one_line(line.remedy)))
            for line in alarms[:_MOST_SCHEDULES]
        ],
        more=max(0, len(alarms) - _MOST_SCHEDULES),
    )


def _is_less(line: Line) -> bool:
    return line.mark is not Mark.FAILED


def _unquoted(one: Finding) -> Finding:
    text = _QUOTING.get((one.area, one.check, one.mark))
    return replace(one, text=text, fix=_ASK) if text else one


def _concern(one: Finding, veil: Callable[[str], str]) -> Concern:
    text, fix = (veil(one_line(said)) for said in (one.text, one.fix))
    return Concern(tone=_TONES[one.mark], word=one.mark.value, area=one.area, text=text, fix=fix)


def _doctor(looked: Looked) -> str:
    if looked.findings is None:
        return "The doctor looks at this host for the first time: what it finds stands here in a moment."
    ago = span(round(looked.age_s * 1000))
    if not looked.findings:
        return f"The doctor failed to look {ago} ago; `manage.py doctor` on this machine may say why."
    fine = sum(one.mark is Mark.OK for one in looked.findings)
    checks = number_of(len(looked.findings), "check", "checks")
    return f"The doctor looked {ago} ago: {fine} of {checks} ok."
