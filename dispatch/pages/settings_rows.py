"""Pause windows and scoped limits in the browser: rows come, change and go, seen before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console.rule_fields import Fields, has_form, of_row, of_texts, row_of, with_problems
from dispatch.console.rule_listing import Problems
from dispatch.console.rules import Rules
from dispatch.console.trigger_changes import Kind
from dispatch.operator_files.problems import OperatorFileError
from dispatch.pages import audit, audit_digest, change
from dispatch.pages.change import ChangedMeanwhileError, Preview
from dispatch.pages.frame import render
from dispatch.pages.settings_row_change import RowChange, row_of_json
from dispatch.pages.settings_row_words import done, notes, said
from dispatch.pages.settings_rows_editing import RowsEditor, editor_of
from pidispatch_site.errors import ConfigurationError, PidispatchError

_ROW, _WAY, _JSON = "row", "way", "json"
_VERBS: Mapping[Kind, str] = {Kind.ADDED: "Add", Kind.CHANGED: "Edit", Kind.REMOVED: "Remove"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sheet:
    """What the form shows: fields (None: only JSON says all of the row), the row as JSON, the lock."""

    fields: Fields | None
    text: str
    lock: str
    is_json: bool = False
    of_row: Problems = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def edited(request: HttpRequest, rules: Rules, index: int | None) -> HttpResponseBase:
    """Add a row behind the others, or put one in the place of the one at this index."""
    kind = Kind.ADDED if index is None else Kind.CHANGED
    try:
        editor = editor_of(rules, settings.PIDISPATCH_ENVIRONMENT)
        before, lock = (None, editor.lock()) if index is None else editor.row(index)
    except PidispatchError as error:
        return unable(request, rules, _title(kind, rules), error)
    if request.method != "POST":
        return _form(request, editor, before, _sheet(rules, before, before, lock), index)
    return _asked(request, editor, before, index=index, lock=lock)


def removed(request: HttpRequest, rules: Rules, index: int) -> HttpResponseBase:
    """Take out the row at this index."""
    lock = request.POST.get(change.LOCK, "") if request.method == "POST" else None
    problems: tuple[str, ...] = ()
    try:
        editor = editor_of(rules, settings.PIDISPATCH_ENVIRONMENT)
        asked = RowChange(rules=rules, kind=Kind.REMOVED, index=index, row=None, lock=lock)
        if lock is not None and change.step_of(request) == change.WRITE:
            try:
                return _write(request, editor, asked)
            except ChangedMeanwhileError as error:
                problems = error.problems
        asked.lock = None
        return _confirm(request, editor, asked, problems=problems)
    except PidispatchError as error:
        return unable(request, rules, _title(Kind.REMOVED, rules), error)


def unable(request: HttpRequest, rules: Rules, title: str, error: PidispatchError) -> HttpResponseBase:
    """Say why nothing can be changed now."""
    context = {"problems": _problems(error), "rules": rules, "back": list_url(rules)}
    return render(request, "settings_unable.html", title, context)


def list_url(rules: Rules) -> str:
    """Tell where the rows are listed."""
    return reverse(f"admin:console_{rules.slug}s")


def _asked(
    request: HttpRequest, editor: RowsEditor, before: Any, *, index: int | None, lock: str
) -> HttpResponseBase:
    """Show what was typed as a change, write it, or go back to the form; `lock` is the file's now."""
    held, rules = request.POST.get(change.LOCK, ""), editor.rules
    asked: RowChange | None = None
    try:
        row = _typed(request, rules, before)
        if change.step_of(request) == change.BACK:
            return _form(request, editor, before, _sheet(rules, before, row, held), index)
        kind = Kind.ADDED if index is None else Kind.CHANGED
        asked = RowChange(rules=rules, kind=kind, index=index, row=row, lock=held)
        if change.step_of(request) == change.WRITE:
            return _write(request, editor, asked)
        return _confirm(request, editor, asked)
    except OperatorFileError as error:
        of_row, rest = editor.apart(error, asked.place if asked else None)
        sheet = _sheet_as_typed(request, rules, before, held, of_row=of_row, problems=rest)
    except PidispatchError as error:
        # Whoever sees that the file has changed may go on from what it is now.
        held = lock if isinstance(error, ChangedMeanwhileError) else held
        sheet = _sheet_as_typed(request, rules, before, held, problems=_problems(error))
    return _form(request, editor, before, sheet, index)


def _typed(request: HttpRequest, rules: Rules, before: Any) -> dict[str, Any]:
    if request.POST.get(_WAY) == _JSON:
        return row_of_json(request.POST.get(_ROW, ""))
    fields = of_texts(rules.fields, request.POST.getlist)
    return row_of(fields, before if has_form(rules.fields, before) else {})


def _sheet(rules: Rules, before: Any, row: Any, lock: str) -> _Sheet:
    if row is None:
        return _Sheet(fields=rules.fields, text=_as_json(rules.example), lock=lock)
    fields = of_row(rules.fields, row) if has_form(rules.fields, row) else None
    return _Sheet(fields=fields, text=_as_json(row), lock=lock, is_json=not fields)


def _sheet_as_typed(
    request: HttpRequest,
    rules: Rules,
    before: Any,
    lock: str,
    *,
    of_row: Problems | None = None,
    problems: tuple[str, ...] = (),
) -> _Sheet:
    told, is_json = of_row or {}, request.POST.get(_WAY) == _JSON
    if not is_json:
        told = {key: [*map(rules.worded, texts)] for key, texts in told.items()}
    fields = None if is_json else of_texts(rules.fields, request.POST.getlist)
    text = request.POST.get(_ROW, "") if is_json else _as_json(_typed(request, rules, before))
    beside = {one.name for one in fields or ()}
    above = tuple(
        f"{key or 'It'} {text}." for key, texts in told.items() if key not in beside for text in texts
    )
    return _Sheet(
        fields=fields, text=text, lock=lock, is_json=is_json, of_row=told, problems=(*above, *problems)
    )


def _form(
    request: HttpRequest, editor: RowsEditor, before: Any, sheet: _Sheet, index: int | None
) -> HttpResponseBase:
    rules = editor.rules
    context = {
        "rules": rules,
        "sheet": sheet,
        "fields": with_problems(sheet.fields, sheet.of_row) if sheet.fields else None,
        "index": index,
        "path": editor.path,
        "back": list_url(rules),
        "remove": None if index is None else reverse(f"admin:console_{rules.slug}_remove", args=[index]),
    }
    kind = Kind.ADDED if index is None else Kind.CHANGED
    return render(request, "settings_row.html", _title(kind, rules), context)


def _confirm(
    request: HttpRequest, editor: RowsEditor, asked: RowChange, *, problems: tuple[str, ...] = ()
) -> HttpResponseBase:
    written = editor.shown(asked)
    lines, layout = editor.difference(asked, written)
    is_removal = asked.kind is Kind.REMOVED
    preview = Preview(
        title=f"{_title(asked.kind, editor.rules)}: before and after",
        said=tuple(said(asked, written, path=editor.path)),
        difference=lines,
        notes=(*notes(asked, written, datetime.now(UTC)), *layout),
        problems=problems,
        lock=asked.seen,
        fields={} if is_removal else {_WAY: _JSON, _ROW: _as_json(asked.row)},
        reason=change.reason_of(request),
        back=list_url(editor.rules),
        submit="Remove it" if is_removal else "Write it",
        is_dangerous=is_removal,
        can_go_back=not is_removal,
    )
    return change.confirm(request, preview)


def _write(request: HttpRequest, editor: RowsEditor, asked: RowChange) -> HttpResponseBase:
    editor.written(asked)
    if asked.is_other:
        for line in done(asked):
            messages.success(request, line)
        audit.record(
            request,
            f"{editor.rules.slug}-{asked.kind.value}",
            asked.name,
            reason=change.reason_of(request),
            before=audit_digest.of_row(asked.before, editor.rules.keys),
            after=audit_digest.of_row(asked.row, editor.rules.keys),
        )
    else:
        messages.info(request, f"Nothing to change: {asked.name} is like that already.")
    return HttpResponseRedirect(list_url(editor.rules))


def _title(kind: Kind, rules: Rules) -> str:
    return f"{_VERBS[kind]} a {rules.noun}"


def _problems(error: PidispatchError) -> tuple[str, ...]:
    return error.problems if isinstance(error, ConfigurationError) else (str(error),)


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
