"""What an entry of Django's log says of an action in the console, as a line of a page.

The entry is `audit.record`'s; whatever else stands there costs no more than its own line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.instants import stamp
from hosts import keys
from runs.wording import ABSENT, moment

# What these change are switches, jobs and accounts; of others before and after are parts of the operator's
# files.
_OPEN_TO_ALL = (
    *("host-", "pause", "resume", "stop", "cancel", "rerun", "schedule-"),
    *("user-", "group-", "token-"),
)
# Keys of instants, which are in ms; of numbers of another size their names mean something else.
_INSTANT = re.compile(r"(?:[a-z]At(?:Ms)?|_at(?:_ms)?|(?:^|\.)(?:since|until|Since|Until)(?:Ms|_ms)?)$")
_FLEET = "the whole fleet"
_EARLIEST, _LATEST = 946_684_800_000, 253_402_300_799_999
_MOST_LINES = 60
_LONGEST_LINE = 300
_FEW_LINES = 5
_KEPT_BACK = "(shown to those who may configure)"


@dataclass(frozen=True, slots=True)
class State:
    """How something was before or after: its lines, and whether they are many."""

    lines: tuple[str, ...]

    @property
    def is_long(self) -> bool:
        """Whether it is folded at first."""
        return len(self.lines) > _FEW_LINES


@dataclass(frozen=True, slots=True)
class Line:
    """One action: when (UTC), who, what to which target, why, and how that was before and after."""

    id: int
    when: str
    who: str
    action: str
    target: str
    reason: str
    before: State
    after: State


def line(
    entry_id: int,
    when: datetime,
    who: str,
    target: str,
    message: str,
    *,
    may_configure: bool,
    veil: Callable[[str], str],
) -> Line:
    """Put an entry into words; `veil` takes paths out for those who may not read the files with them."""
    told = _object(message)
    action = _text(told.get("action"))
    is_open = may_configure or action.startswith(_OPEN_TO_ALL)
    hide = (lambda text: text) if may_configure else veil
    states = [
        State(tuple(hide(one) for one in _lines(told.get(name))) if is_open else (_KEPT_BACK,))
        for name in ("before", "after")
    ]
    return Line(
        id=entry_id,
        when=f"{moment(when)} UTC",
        who=f"manage.py {command}, for {who}" if (command := _text(told.get("command"))) else who,
        action=action or ABSENT,
        target=hide(_of_all(one_line(target))),
        reason=hide(_text(told.get("reason"))),
        before=states[0],
        after=states[1],
    )


def _object(message: str) -> Mapping[str, Any]:
    try:
        told = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _text(value: object) -> str:
    return one_line(value)[:_LONGEST_LINE] if isinstance(value, str) else ""


def _lines(value: object) -> list[str]:
    found = [one_line(text) for text in _told(value, "")]
    cut = [text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…" for text in found]
    return cut if len(cut) <= _MOST_LINES else [*cut[:_MOST_LINES], f"… and {len(cut) - _MOST_LINES} more"]


def _told(value: object, name: str) -> Iterator[str]:
    """Lay a JSON value out, a line for each that is no object or list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            part = _of_all(str(key))
            yield from _told(inner, f"{name}.{part}" if name else part)
    elif isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        for place, inner in enumerate(value):
            yield from _told(inner, f"{name}[{place}]")
    elif isinstance(value, list):
        yield _named(name, ", ".join(map(_plain, value)) or "none")
    elif value is not None or name:
        yield _named(name, _instant(name, value) or _plain(value))


def _instant(name: str, value: object) -> str:
    """Write what is an instant, by the name of its key and its size (ms), as one; blank for anything else."""
    if isinstance(value, int) and _EARLIEST <= value <= _LATEST and _INSTANT.search(name):
        return stamp(value)
    return ""


def _named(name: str, text: str) -> str:
    return f"{name}: {text}" if name else text


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else _of_all(str(value))


def _of_all(text: str) -> str:
    """Name the fleet, as which all queues together are kept."""
    return _FLEET if text == keys.FLEET else text
