"""What is said of all schedules together: how many there are, what is not known, where hosts disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dispatch.console.counts import number_of
from dispatch.console.fleet_words import named
from dispatch.console.instants import stamp
from dispatch.console.schedule_facts import Overview
from dispatch.console.schedule_states import NOT_ASKED
from dispatch.console.triggers_file import VARIABLE
from dispatch.schedules.missed import MissedReason


def notes(overview: Overview) -> Iterator[str]:
    """Say what of it could not be read, and where file and workers differ."""
    yield from _behind(overview)
    yield from besides_adoption(overview)


def _behind(overview: Overview) -> Iterator[str]:
    behind = [one for one in overview.differs_on if one not in overview.disagreed_with]
    if behind and not overview.file.trouble:
        yield (
            f"Another triggers file than stands here is loaded on {named(behind)}:"
            " on this host wait a moment, on others bring it to the same state."
        )


def besides_adoption(overview: Overview) -> Iterator[str]:
    """Say what `notes` says, but for who has another version of the file: a page tells that of each host."""
    if overview.disagreed_with:
        yield _disagreement(overview)
    if overview.file.path is None and overview.lines:
        yield f"{VARIABLE} is not set here: shown is what stands in Valkey."
    if not overview.has_runs:
        yield "The run table of this host cannot be read: last runs may be missing."
    for look in overview.tables:
        if look.unreadable:
            yield f"The schedules of {look.queue.queue} cannot be read ({look.unreadable})."


def _disagreement(overview: Overview) -> str:
    hosts = named(overview.disagreed_with)
    told = f"Hosts disagree: {hosts} has other schedules than the file of this host"
    if len(overview.disagreed_with) > 1:
        told = f"Hosts disagree: {hosts} have other schedules than the file of this host"
    ends = f"nothing is put in or taken out anywhere until their files ({VARIABLE}) and zones are alike"
    if any(line.state == MissedReason.REFUSED for line in overview.lines):
        return f"{told}; {ends}."
    return f"{told}; {ends}. No table shows where: compare it with `manage.py triggers` there."


def headline(overview: Overview) -> str:
    """Say in a sentence how many there are, and how many to look after."""
    at, file = f"As of {stamp(overview.now_ms)}", overview.file
    counts = Counter(line.state for line in overview.lines)
    alarms = sum(line.is_alarm for line in overview.lines)
    schedules = number_of(len(overview.lines), "schedule", "schedules")
    after = f", {alarms or 'none'} to look after" if counts[NOT_ASKED] < len(overview.lines) else ""
    if file.triggers is None and file.problems:
        told = f"{at}: the file of this host does not load: look after that"
        return f"{told}. Hosts keep {schedules}{after if alarms else ''}." if overview.lines else f"{told}."
    rules = f"; {number_of(len(overview.rules), 'rule', 'rules')} for forges" if overview.rules else ""
    trouble = "; no worker takes the file: look after that" if file.trouble else ""
    return f"{at}: {schedules}{after}{rules}{trouble}."
