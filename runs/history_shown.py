"""Runs as lines for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from runs import wording
from runs.record import Record

_HEADINGS = ("ENDED (UTC)", "OUTCOME", "REASON", "HOST", "TOOK", "COST", "JOB")
_GAP = "  "
_NOTHING = "No run yet, or none that is asked for."


def lines(records: Sequence[Record]) -> list[str]:
    """Lay runs out in columns, the job's id last and whole; one line when there is none."""
    if not records:
        return [_NOTHING]
    cells = [_HEADINGS, *map(_row, records)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _row(record: Record) -> tuple[str, ...]:
    outcome = record.outcome.value if record.final else f"{record.outcome.value}, again"
    return (
        wording.moment(record.ended_at),
        outcome,
        record.reason or wording.ABSENT,
        _printable(record.host or wording.ABSENT)[:64],
        wording.span(record.started_at, record.ended_at),
        wording.dollars((record.tokens or {}).get("cost")),
        _printable(record.job_id) or "(no id)",
    )


def _printable(text: str) -> str:
    # What a peer wrote steers no terminal.
    return "".join(letter if letter.isprintable() else "?" for letter in text)
