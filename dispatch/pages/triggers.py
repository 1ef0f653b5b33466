"""The triggers file in the browser: entries are added, edited and removed, with before and after first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console.trigger_changes import Kind
from dispatch.console.trigger_edit import Edited
from dispatch.console.trigger_form import FormField, entry_of, has_form, of_entry, of_texts, with_problems
from dispatch.console.trigger_privilege import privileged_of
from dispatch.console.trigger_rearm import NOT_FORGOTTEN, forget_spent, is_armed
from dispatch.pages import audit, audit_digest, change
from dispatch.pages.access import Access, action
from dispatch.pages.acting import acting
from dispatch.pages.change import ChangedMeanwhileError, Preview, lock_of
from dispatch.pages.frame import render
from dispatch.pages.trigger_editing import (
    Editor,
    Locked,
    difference_of,
    editor_of,
    entry_of_json,
    said_before,
)
from dispatch.triggers.parse import place_of
from pidispatch_site.errors import ConfigurationError, PidispatchError

LIST = "admin:dispatch_schedule_changelist"
_ENTRY, _CREATE, _WAY, _JSON = "entry", "create", "way", "json"
_TITLES: Mapping[Kind, str] = {
    Kind.ADDED: "Add an entry",
    Kind.CHANGED: "Edit an entry",
    Kind.REMOVED: "Remove an entry",
}
_EXAMPLE = {
    "on": {"type": "cron", "id": "nightly", "pattern": "30 2 * * *"},
    "run": {"kind": "local", "folder": "/srv/repository", "flow": "audit", "task": "Look for …"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """What the form shows: fields (None: only JSON says all of the entry), the entry as JSON, the lock."""

    fields: tuple[FormField, ...] | None
    text: str
    lock: str
    create: bool = False
    is_json: bool = False


@action(Access.CONFIGURE)
def add(request: HttpRequest) -> HttpResponseBase:
    """Add an entry behind the others."""
    return _edited(request, None)


@action(Access.CONFIGURE)
def edit(request: HttpRequest, index: int) -> HttpResponseBase:
    """Put an entry in the place of the one at this index."""
    return _edited(request, index)


@action(Access.CONFIGURE)
def remove(request: HttpRequest, index: int) -> HttpResponseBase:
    """Take out the entry at this index."""
    lock = request.POST.get(change.LOCK, "") if request.method == "POST" else None
    problems: tuple[str, ...] = ()
    try:
        editor = _editor(request)
        asked = editor.change(Kind.REMOVED, index, None, lock=lock)
        if lock is not None and change.step_of(request) == change.WRITE:
            try:
                return _write(request, editor, asked, create=False)
            except ChangedMeanwhileError as error:
                problems = error.problems
        asked = editor.change(Kind.REMOVED, index, None, lock=None)
        return _confirm(request, editor, asked, editor.shown(asked), problems=problems)
    except PidispatchError as error:
        return _unable(request, _TITLES[Kind.REMOVED], error)


def _edited(request: HttpRequest, index: int | None) -> HttpResponseBase:
    title = _TITLES[Kind.ADDED if index is None else Kind.CHANGED]
    try:
        editor = _editor(request)
        before, lock = (None, lock_of(editor.document())) if index is None else editor.entry(index)
    except PidispatchError as error:
        return _unable(request, title, error)
    if request.method != "POST":
        return _form(request, editor, before, _sheet(before, lock=lock), index=index)
    return _asked(request, editor, before, index=index, lock=lock)


def _asked(
    request: HttpRequest, editor: Editor, before: Any, *, index: int | None, lock: str
) -> HttpResponseBase:
    """Show what was typed as a change, write it, or go back to the form; `lock` is the file's now."""
    create, held = _CREATE in request.POST, request.POST.get(change.LOCK, "")
    try:
        entry = _typed(request, editor, before)
        if change.step_of(request) == change.BACK:
            return _form(request, editor, before, _sheet(entry, lock=held, create=create), index=index)
        kind = Kind.ADDED if index is None else Kind.CHANGED
        asked = editor.change(kind, index, entry, lock=held)
        if change.step_of(request) == change.WRITE:
            return _write(request, editor, asked, create=create)
        return _confirm(request, editor, asked, editor.shown(asked, create=create), create=create)
    except PidispatchError as error:
        # Whoever sees that the file has changed may go on from what it is now.
        held = lock if isinstance(error, ChangedMeanwhileError) else held
        sheet = _sheet_as_typed(request, editor, before, lock=held, create=create)
        return _form(request, editor, before, sheet, index=index, problems=_problems(error))


def _typed(request: HttpRequest, editor: Editor, before: Any) -> dict[str, Any]:
    if request.POST.get(_WAY) == _JSON:
        return entry_of_json(request.POST.get(_ENTRY, ""))
    entry = entry_of(of_texts(request.POST.dict()), before if has_form(before) else None)
    # A browser does not send what cannot be changed.
    return {**entry, "run": before["run"]} if editor.keeps_run(before) else entry


def _sheet(entry: Any, *, lock: str, create: bool = False) -> _Sheet:
    fields = of_entry(entry) if entry is None or has_form(entry) else None
    return _Sheet(
        fields=fields, text=_as_json(entry or _EXAMPLE), lock=lock, create=create, is_json=not fields
    )


def _sheet_as_typed(request: HttpRequest, editor: Editor, before: Any, *, lock: str, create: bool) -> _Sheet:
    if request.POST.get(_WAY) == _JSON:
        text = request.POST.get(_ENTRY, "")
        return _Sheet(fields=None, text=text, lock=lock, create=create, is_json=True)
    entry = _typed(request, editor, before)
    fields = of_entry(entry) if editor.keeps_run(before) else of_texts(request.POST.dict())
    return _Sheet(fields=fields, text=_as_json(entry), lock=lock, create=create)


def _form(
    request: HttpRequest,
    editor: Editor,
    before: Any,
    sheet: _Sheet,
    *,
    index: int | None,
    problems: tuple[str, ...] = (),
) -> HttpResponseBase:
    fields, rest = with_problems(sheet.fields, problems) if sheet.fields else (None, problems)
    context = {
        "sheet": sheet,
        "fields": fields,
        "problems": rest,
        "index": index,
        "place": None if index is None else place_of(index, before),
        "privileged": {key: _as_json(value) for key, value in privileged_of(before).items()},
        "keeps_run": editor.keeps_run(before),
        "is_there": editor.is_there,
        "path": editor.path,
    }
    return render(request, "trigger.html", _TITLES[Kind.ADDED if index is None else Kind.CHANGED], context)


def _confirm(
    request: HttpRequest,
    editor: Editor,
    asked: Locked,
    edited: Edited,
    *,
    create: bool = False,
    problems: tuple[str, ...] = (),
) -> HttpResponseBase:
    is_removal = asked.kind is Kind.REMOVED
    fields = {} if is_removal else {_WAY: _JSON, _ENTRY: _as_json(asked.entry)}
    made = (f"There is no file yet; it will be made: {editor.path}",) if edited.written.before is None else ()
    lines, layout = difference_of(asked, edited, editor.path)
    preview = Preview(
        title=f"{_TITLES[asked.kind]}: before and after",
        said=(*said_before(asked), *made),
        difference=lines,
        notes=(*edited.notes, *layout),
        problems=problems,
        lock=asked.seen,
        fields=fields | ({_CREATE: "on"} if create else {}),
        reason=change.reason_of(request),
        back=reverse(LIST),
        submit="Remove it" if is_removal else "Write it",
        is_dangerous=is_removal,
        can_go_back=not is_removal,
    )
    return change.confirm(request, preview)


def _write(request: HttpRequest, editor: Editor, asked: Locked, *, create: bool) -> HttpResponseBase:
    # Whatever fails here has changed nothing.
    edited = editor.written(asked, create=create)
    if asked.is_other:
        audit.record(
            request,
            f"trigger-{asked.kind.value}",
            place_of(asked.index, asked.before if asked.kind is Kind.REMOVED else asked.after),
            reason=change.reason_of(request),
            before=audit_digest.of_trigger(asked.before),
            after=audit_digest.of_trigger(asked.after),
        )
    # Which other hosts lack it stands on the page that this leads to, once they had the time.
    for line in asked.said(is_written=True, in_fleet=False).splitlines():
        messages.success(request, line)
    for note in (*edited.notes, *_forgotten(asked)):
        messages.warning(request, note)
    return HttpResponseRedirect(reverse(LIST))


def _forgotten(asked: Locked) -> tuple[str, ...]:
    if not is_armed(asked):
        return ()
    try:
        with acting(settings.PIDISPATCH_ENVIRONMENT) as server:
            told = forget_spent(server.client, asked)
    except PidispatchError as error:
        return (f"{error} {NOT_FORGOTTEN}",)
    return (told,) if told else ()


def _editor(request: HttpRequest) -> Editor:
    is_privileged = request.user.has_perm(Access.PRIVILEGED)
    return editor_of(settings.PIDISPATCH_ENVIRONMENT, is_privileged=is_privileged)


def _unable(request: HttpRequest, title: str, error: PidispatchError) -> HttpResponseBase:
    return render(request, "trigger_unable.html", title, {"problems": _problems(error)})


def _problems(error: PidispatchError) -> tuple[str, ...]:
    return error.problems if isinstance(error, ConfigurationError) else (str(error),)


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
