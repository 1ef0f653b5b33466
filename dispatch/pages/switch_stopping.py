"""Stopping what runs as a background action: the same procedure and the same words as `manage.py stop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from dispatch.console import stop_shown
from dispatch.console.arguments import one_line
from dispatch.console.server import Server, confirming
from dispatch.console.stopped import Stopped
from dispatch.console.stopping import Patience, stop
from dispatch.pages import audit, operations
from dispatch.pages.acting import by
from dispatch.pages.operations import Entries, Operation, Progress, Result, Row
from hosts.stops import Confirmed

COLUMNS = ("Host", "Container", "Job", "Stopped")
FLEET = "the whole fleet"


def begin_stop(
    request: HttpRequest, *, only: str | None, reason: str, seconds: int, before: Any = None
) -> str:
    """Pause the fleet (or drain the host `only`) and stop what runs there; answers the action's id.

    `seconds`: for how long it watches for containers to go. `before`: JSON for the log. Its end gets an entry
    of its own. Raises PidispatchError where the configuration names no server.
    """
    who, target = by(request), only or FLEET
    figures: dict[str, Any] = {}

    def begun(operation_id: str) -> None:
        after = {"operation": operation_id}
        audit.record(request, "stop", target, reason=reason, before=before, after=after)

    return operations.begin(
        settings.PIDISPATCH_ENVIRONMENT,
        kind="stop" if only is None else "stop-host",
        by=who,
        reason=reason,
        columns=COLUMNS,
        work=_work(only=only, who=who, reason=reason, seconds=seconds, figures=figures),
        entries=Entries(begun, lambda progress: _record_end(request, target, reason, progress, figures)),
    )


def _work(
    *, only: str | None, who: str, reason: str, seconds: int, figures: dict[str, Any]
) -> Callable[[Operation], Result]:
    def work(operation: Operation) -> Result:
        server = Server(client=operation.client, shown=operation.shown)
        with confirming(server, "stopped", [only] if only else []):
            found = stop(
                operation.client,
                only=only,
                by=one_line(who),
                reason=one_line(reason),
                tell=_teller(operation),
                retrying=lambda token, may_be_asked: operation.tell(
                    stop_shown.retrying(token, may_be_asked=may_be_asked)
                ),
                patience=Patience(whole=seconds),
            )
        _show(operation, found)
        figures.update(stop_shown.as_data(found))
        return _result(found)

    return work


def _result(found: Stopped) -> Result:
    remedy = stop_shown.remedy(found)
    notes = [stop_shown.switched(found), *stop_shown.asked(found), *([remedy] if remedy else [])]
    return Result(stop_shown.total(found), is_good=found.is_proven, notes=tuple(notes))


def _teller(operation: Operation) -> Callable[[Stopped], None]:
    """Tell who was asked, once, and from then on how far it has come."""
    known: list[str] = []

    def tell(found: Stopped) -> None:
        fresh = [line for line in stop_shown.asked(found) if line not in known]
        known.extend(fresh)
        operation.tell(*fresh, stop_shown.progress(found))
        _show(operation, found)

    return tell


def _show(operation: Operation, found: Stopped) -> None:
    operation.advance(len(found.fates) - len(found.unconfirmed), len(found.fates))
    operation.show(
        [
            Row(cells, one.state is Confirmed.GONE)
            for cells, one in zip(stop_shown.rows(found), found.fates, strict=True)
        ]
    )


def _record_end(
    request: HttpRequest, target: str, reason: str, progress: Progress, figures: dict[str, Any]
) -> bool:
    """Keep what came of it: the figures of `stop --json` without its list of containers."""
    containers = figures.pop("containers", [])
    gone = sum(one["state"] == Confirmed.GONE for one in containers)
    after = {"operation": progress.id, "state": progress.state, **figures}
    after |= {"containers": len(containers), "gone": gone}
    before = {"containers": len(containers)}
    return audit.record(request, "stop-ended", target, reason=reason, before=before, after=after)
