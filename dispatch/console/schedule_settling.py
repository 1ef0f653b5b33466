"""Schedules right after the file of this host was changed: what comes from that alone is no alarm yet."""

from __future__ import annotations

from dataclasses import replace

from dispatch.console.schedule_facts import Line, Overview
from dispatch.schedules.missed import MissedReason

# What a schedule is until every worker has read the file.
_OF_A_CHANGE = {MissedReason.NOT_INSTALLED, MissedReason.REFUSED}
_WORDS = "workers are taking the change of the file over"


def settling(overview: Overview) -> Overview:
    """Tell calmly what may only come from a change that workers are still to take over."""
    return replace(overview, lines=tuple(map(_calm, overview.lines)), disagreed_with=())


def _calm(line: Line) -> Line:
    return replace(line, words=_WORDS, remedy="") if line.state in _OF_A_CHANGE else line
