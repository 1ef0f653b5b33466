"""The way of a run through time, in words and as a bar: queued, each attempt, ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs import shape, wording
from runs.models import Run

BAR_WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `mark` names its look: queued, started, or an outcome."""

    at: str
    what: str
    note: str
    mark: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the bar, in thousandths of it."""

    start: int
    width: int
    mark: str
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in their order, and the bar; the bar is empty when nothing has a length."""

    events: Sequence[Event]
    bar: Sequence[Stretch]
    total: str


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    started: datetime | None
    ended: datetime | None
    outcome: str
    reason: str


def timeline(run: Run) -> Timeline:
    """Tell the run from what its record knows; what is absent is left out."""
    attempts = list(_attempts(run))
    return Timeline(
        events=[*_events(run, attempts)],
        bar=_bar(run.queued_at, attempts),
        total=wording.span(run.queued_at, run.ended_at),
    )


def _attempts(run: Run) -> Iterator[_Attempt]:
    earlier = run.attempts if isinstance(run.attempts, list) else []
    for number, value in enumerate(earlier, start=1):
        given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        started, ended = (shape.or_none(shape.instant, given.get(key)) for key in ("startedAt", "endedAt"))
        yield _Attempt(number, started, ended, str(given.get("outcome")), str(given.get("reason") or ""))
    yield _Attempt(run.attempt + 1, run.started_at, run.ended_at, run.outcome, run.reason or "")


def _events(run: Run, attempts: Sequence[_Attempt]) -> Iterator[Event]:
    if run.queued_at:
        yield Event(_at(run.queued_at), "Queued", "", "queued")
    free = run.queued_at
    several = len(attempts) > 1
    for attempt in attempts:
        which = f"Attempt {attempt.number} " if several else ""
        if attempt.started:
            waited = wording.span(free, attempt.started)
            note = "" if free is None else f"after waiting {waited}"
            yield Event(_at(attempt.started), f"{which}started".capitalize(), note, "started")
        if attempt.ended:
            words = [f"after {wording.span(attempt.started, attempt.ended)}" if attempt.started else ""]
            words.append(attempt.reason)
            name = wording.outcome_name(attempt.outcome).lower()
            yield Event(
                _at(attempt.ended),
                f"{which}ended: {name}".capitalize(),
                " · ".join(word for word in words if word),
                attempt.outcome,
            )
        free = attempt.ended or free


def _bar(queued: datetime | None, attempts: Sequence[_Attempt]) -> list[Stretch]:
    parts: list[tuple[datetime, datetime, str, str]] = []
    free = queued
    for attempt in attempts:
        if free and attempt.started and attempt.started > free:
            parts.append((free, attempt.started, "waiting", "waited"))
        if attempt.started and attempt.ended and attempt.ended > attempt.started:
            parts.append((attempt.started, attempt.ended, attempt.outcome, f"attempt {attempt.number} ran"))
        free = attempt.ended or free
    if not parts:
        return []
    # Clocks of two hosts may differ: nothing sticks out on either side.
    first, last = min(part[0] for part in parts), max(part[1] for part in parts)
    scale = BAR_WIDTH / (last - first).total_seconds()
    return [
        Stretch(
            start=int((start - first).total_seconds() * scale),
            width=max(2, int((end - start).total_seconds() * scale)),
            mark=mark,
            label=f"{label} {wording.span(start, end)}",
        )
        for start, end, mark, label in parts
    ]


def _at(moment: datetime) -> str:
    return f"{wording.moment(moment)} UTC"
