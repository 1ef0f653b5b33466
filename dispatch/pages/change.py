"""A change of an operator's file in two steps: a page with before and after, and the writing of just that.

What was shown is what is written: the second step names the file as it was (`lock_of`), and a file that has
become another one meanwhile is shown anew instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse

from dispatch.console.arguments import one_line
from dispatch.pages.frame import render
from hosts.switches import LONGEST_TEXT
from pidispatch_site.errors import ConfigurationError

#: The form's field with the step that a button asks for: to show the change, to write it, to go back.
STEP, SHOW, WRITE, BACK = "step", "show", "write", "back"
LOCK, REASON = "lock", "reason"

_KINDS: Mapping[str, str] = {"+": "added", "-": "removed", "@": "place", " ": "same"}


class ChangedMeanwhileError(ConfigurationError):
    """The file means something else than when the change was shown; nothing was written."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The {what} was changed meanwhile, by somebody else or by a worker. Nothing was written: look at"
            " the change again, as it would be now."
        )


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a difference; `kind` is a token for its colour, `sign` says the same without one."""

    sign: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A change before it is written.

    `said` are sentences on what happens and whom it affects, `notes` what may not be meant. `difference` is a
    unified diff, blank where nothing changes: then nothing can be written. `fields` are sent back as they
    are, beside `lock`; with `can_go_back` a button asks for the form again, else `back` is linked.
    """

    title: str
    said: tuple[str, ...]
    difference: str
    lock: str
    back: str
    submit: str
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    is_dangerous: bool = False
    can_go_back: bool = False

    @property
    def lines(self) -> tuple[DiffLine, ...]:
        """The difference for the template."""
        return tuple(lines_of(self.difference))


def lock_of(document: Any) -> str:
    """Digest what a file's JSON holds (None: there is no file); another layout of the same is the same."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def require_same(document: Any, lock: str, *, what: str) -> None:
    """Raise ChangedMeanwhileError where the document is not the one that was shown."""
    if lock_of(document) != lock:
        raise ChangedMeanwhileError(what)


def confirm(request: HttpRequest, preview: Preview) -> TemplateResponse:
    """Show before and after, with a form that writes it: a POST to the same address with STEP=WRITE."""
    return render(request, "change.html", preview.title, {"preview": preview})


def step_of(request: HttpRequest) -> str:
    """Tell which step was asked for; what names none shows the change."""
    asked = request.POST.get(STEP, "")
    return asked if asked in {WRITE, BACK} else SHOW


def reason_of(request: HttpRequest) -> str:
    """Read why somebody does it, as one line; blank where nothing was said."""
    return one_line(request.POST.get(REASON, ""))[:LONGEST_TEXT]


def lines_of(difference: str) -> Iterator[DiffLine]:
    """Take a unified diff apart, without the lines that name the two files."""
    for number, line in enumerate(difference.splitlines()):
        is_head = number < 2 and line.startswith(("--- ", "+++ "))
        if is_head:
            continue
        kind = _KINDS.get(line[:1], "same")
        yield DiffLine("" if kind == "place" else line[:1], line if kind == "place" else line[1:], kind)
