"""The settings file in the browser: one form for all keys, what will be in force, and the writing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from dispatch.console import settings_form
from dispatch.console.adoption import SETTINGS
from dispatch.console.settings import TAKEN_OVER
from dispatch.console.settings_form import UNKNOWN, UNSET, VALUE
from dispatch.operator_files.overlay import BY_NAME
from dispatch.operator_files.overlay_file import REWRITER
from dispatch.operator_files.problems import OperatorFileError
from dispatch.pages import audit, audit_digest, change, followed
from dispatch.pages.access import Access, action
from dispatch.pages.change import ChangedMeanwhileError, Preview, lock_of
from dispatch.pages.configured import configured
from dispatch.pages.frame import render
from dispatch.pages.settings_overlay_change import OverlayChange, in_force_with, object_of, states
from dispatch.pages.sight import sight
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError, PidispatchError
from pidispatch_site.places import StateDirectory

TITLE = "Settings file"
_LOCK_SECONDS = 2.0
_MEND = "While the file is like this, every job of this host is refused. Mend it by hand, or delete it."
_SAME = "Nothing to change: the file is like that already."


@action(Access.CONFIGURE)
def edit(request: HttpRequest) -> HttpResponseBase:
    """Set and unset keys of the file, all of them or none."""
    try:
        config = configured()
        document = REWRITER.document(config.settings_file)
        object_of(document, str(config.settings_file))
    except PidispatchError as error:
        return _unable(request, error)
    if request.method != "POST":
        return _form(request, config, document, lock_of(document))
    return _asked(request, config, document)


def _asked(request: HttpRequest, config: Config, document: Mapping[str, Any]) -> HttpResponseBase:
    texts = {
        name: text for name, text in request.POST.dict().items() if name.startswith((VALUE, UNSET, UNKNOWN))
    }
    held = request.POST.get(change.LOCK, "")
    form = partial(_form, request, config, document, texts=texts)
    typed = settings_form.fields_of(document, in_force_with(config, document), texts)
    is_wrong = any(one.problem for one in typed)
    if is_wrong or change.step_of(request) == change.BACK:
        return form(held)
    asked = OverlayChange(texts, held, str(config.settings_file))
    try:
        if change.step_of(request) == change.WRITE:
            return _write(request, config, asked)
        REWRITER.preview(config.settings_file, asked.change)
        return _confirm(request, config, asked)
    except ChangedMeanwhileError as error:
        return form(lock_of(document), problems=error.problems)
    except PidispatchError as error:
        return form(held, problems=_problems(error))


def _form(
    request: HttpRequest,
    config: Config,
    document: Mapping[str, Any],
    lock: str,
    *,
    texts: Mapping[str, str] | None = None,
    problems: Sequence[str] = (),
) -> HttpResponseBase:
    with sight(settings.PIDISPATCH_ENVIRONMENT) as seen:
        adoption = followed.adoption(seen, config.settings_file, SETTINGS, settings.PIDISPATCH_ENVIRONMENT)
    context = {
        "fields": settings_form.fields_of(document, in_force_with(config, document), texts),
        "unknown": settings_form.unknown_of(document, texts),
        "lock": lock,
        "problems": problems,
        "path": config.settings_file,
        "is_there": REWRITER.content(config.settings_file) is not None,
        "adoption": adoption,
        "live": reverse("admin:console_settings_taken", args=["overlay"]),
    }
    return render(request, "settings_overlay.html", TITLE, context)


def _confirm(request: HttpRequest, config: Config, asked: OverlayChange) -> HttpResponseBase:
    before, after = states(config, asked)
    is_new = REWRITER.content(config.settings_file) is None
    made = (f"There is no file yet; it will be made: {config.settings_file}",) if is_new else ()
    preview = Preview(
        title=f"{TITLE}: before and after",
        said=(TAKEN_OVER, *made) if asked.names else (_SAME,),
        difference=settings_form.difference(before, after),
        notes=tuple(settings_form.notes(in_force_with(config, asked.after or {}), asked.names)),
        lock=asked.lock,
        fields=asked.texts,
        reason=change.reason_of(request),
        back=reverse("admin:console_overlay"),
        submit="Write it",
        can_go_back=True,
    )
    return change.confirm(request, preview)


def _write(request: HttpRequest, config: Config, asked: OverlayChange) -> HttpResponseBase:
    if config.settings_file.parent == config.state_dir:
        StateDirectory(config.state_dir).made()
    REWRITER.rewrite(config.settings_file, asked.change, lock_seconds=_LOCK_SECONDS)
    if asked.names:
        before, after = states(config, asked)
        kept = [audit_digest.of_keys(state, BY_NAME) for state in (before, after)]
        reason = change.reason_of(request)
        audit.record(request, "settings-changed", SETTINGS.what, reason=reason, before=kept[0], after=kept[1])
        for name in before:
            messages.success(request, f"Now {name} is {after[name] or 'no longer in the file'}.")
        messages.success(request, TAKEN_OVER)
    else:
        messages.info(request, _SAME)
    return HttpResponseRedirect(reverse("admin:console_overlay"))


def _unable(request: HttpRequest, error: PidispatchError) -> HttpResponseBase:
    told = (_MEND,) if isinstance(error, OperatorFileError) else ()
    context = {
        "problems": (*_problems(error), *told),
        "back": reverse("admin:console_settings"),
    }
    return render(request, "settings_unable.html", TITLE, context)


def _problems(error: PidispatchError) -> tuple[str, ...]:
    return error.problems if isinstance(error, ConfigurationError) else (str(error),)
