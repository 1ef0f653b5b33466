"""Findings as lines for a person and as data for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.findings import Finding, Mark

Marks = Mapping[Mark, str]

SIGNS: Marks = {Mark.OK: "\u2713", Mark.WARNING: "\u26a0", Mark.FAILED: "\u2717"}
WORDS: Marks = {mark: f"[{mark}]" for mark in Mark}
_FIX = "    fix: "


def marks_for(encoding: str) -> Marks:
    """Choose what an output of this encoding can print."""
    try:
        "".join(SIGNS.values()).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return WORDS
    return SIGNS


def lines(findings: Iterable[Finding], marks: Marks) -> list[str]:
    """Say each in one line, its area before it, and under what is not ok what to do."""
    return [
        line
        for one in findings
        for line in (
            f"{marks[one.mark]} {one.area}: {one_line(one.text)}",
            *([_FIX + one_line(one.fix)] if one.fix else []),
        )
    ]


def wrapped(findings: Iterable[Finding], marks: Marks, *, columns: int) -> list[str]:
    """Say them below a table of that width, without the area."""
    told: list[str] = []
    for one in findings:
        mark = f"{marks[one.mark]} "
        told += wrap(mark + one_line(one.text), columns, subsequent_indent=" " * len(mark))
        told += wrap(_FIX + one_line(one.fix), columns, subsequent_indent=" " * len(_FIX)) if one.fix else []
    return told


def as_data(one: Finding) -> dict[str, Any]:
    """Put it into the shape that `--json` has for a check."""
    return {
        "area": one.area,
        "check": one.check,
        "result": one.mark.value,
        "text": one_line(one.text),
        "fix": one_line(one.fix) or None,
        "hosts": list(one.hosts),
    }
