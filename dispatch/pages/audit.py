"""Who did what through the console: an entry of Django's log for each action, and an event without names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError
from django.http import HttpRequest

from dispatch.console.arguments import one_line
from dispatch.models import Fleet
from hosts.switches import LONGEST_TEXT
from pidispatch_site import log

_LONGEST_TARGET = 200
_UNLOGGED = "The database did not take this action's entry of the log: it is away, or may not be written to."


@dataclass(slots=True)
class Doing:
    """An action while it is done, with JSON values for the log; `is_idle`: it changes nothing after all."""

    before: Any = None
    after: Any = None
    is_idle: bool = False


@contextmanager
def recorded(
    request: HttpRequest, action: str, target: str, *, reason: str, doing: Doing | None = None
) -> Iterator[Doing]:
    """Record what is done inside, also where it fails on the way: nobody knows then what was done."""
    doing = doing or Doing()
    try:
        yield doing
    except Exception:
        doing.after = {"confirmed": False, "known": doing.after}
        raise
    finally:
        if not doing.is_idle:
            record(request, action, target, reason=reason, before=doing.before, after=doing.after)


def record(
    request: HttpRequest,
    action: str,
    target: str,
    *,
    reason: str = "",
    before: Any = None,
    after: Any = None,
) -> bool:
    """Keep that the user did `action` (a token) to `target`; False when the database does not take it.

    `before` and `after` are JSON values; of what stands in an operator's file: as `audit_digest` has it. Call
    it once the action has been done: what stops work must not wait for a database.
    """
    message = {"action": action, "reason": one_line(reason)[:LONGEST_TEXT], "before": before, "after": after}
    log.event("operator_action", action=action, user=request.user.pk)
    try:
        _keep(int(request.user.pk or 0), target, message)
    except DatabaseError:
        log.event("operator_action_unlogged", action=action, user=request.user.pk)
        messages.warning(request, _UNLOGGED, fail_silently=True)
        return False
    return True


def record_command(user: User, action: str, target: str, *, command: str, after: Any = None) -> None:
    """Keep what a command did for `user`: it has none of its own who asks. Raises Django's DatabaseError."""
    _keep(user.pk, target, {"action": action, "command": command, "after": after})


def _keep(user_id: int, target: str, message: dict[str, Any]) -> None:
    LogEntry.objects.create(
        user_id=user_id,
        content_type=ContentType.objects.get_for_model(Fleet),
        object_id=one_line(target)[:_LONGEST_TARGET],
        object_repr=one_line(target)[:_LONGEST_TARGET],
        action_flag=CHANGE,
        change_message=json.dumps(message, sort_keys=True),
    )
