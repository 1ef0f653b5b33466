"""Rerouting as a background action, with an entry of the log when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from dispatch.console.reroute import Wish, reroute
from dispatch.console.server import Server, confirming
from dispatch.pages import audit, fleet_rerouting, operations
from dispatch.pages.acting import by
from dispatch.pages.operation_state import Progress, Result
from dispatch.pages.operations import Operation
from hosts import names


def begin_reroute(request: HttpRequest, wish: Wish, reason: str) -> str:
    """Start it and answer the action's id. Raises PidispatchError where no server is configured."""
    is_logged = not wish.is_tried
    return operations.begin(
        settings.PIDISPATCH_ENVIRONMENT,
        kind="reroute",
        by=by(request),
        reason=reason,
        work=_work(wish),
        columns=fleet_rerouting.COLUMNS,
        begun=_logging_begin(request, wish, reason) if is_logged else _nothing,
        ended=_logging_end(request, wish, reason) if is_logged else _nothing,
    )


def _work(wish: Wish) -> Callable[[Operation], Result]:
    def work(operation: Operation) -> Result:
        server = Server(client=operation.client, shown=operation.shown)
        with confirming(server, "rerouted", (names.host_queue(wish.host),), told_by="queue"):
            found = reroute(operation.client, wish)
        operation.show(tuple(fleet_rerouting.rows(found)))
        return fleet_rerouting.result(found)

    return work


def _nothing(_of: object) -> None:
    """Leave the log alone: nothing was changed."""


def _logging_begin(request: HttpRequest, wish: Wish, reason: str) -> Callable[[str], object]:
    def begun(operation_id: str) -> object:
        after = {"operation": operation_id}
        return audit.record(
            request, "host-reroute", wish.host, reason=reason, before=_before(wish), after=after
        )

    return begun


def _logging_end(request: HttpRequest, wish: Wish, reason: str) -> Callable[[Progress], object]:
    def ended(progress: Progress) -> object:
        said = progress.result.summary if progress.result else None
        return audit.record(
            request,
            "host-reroute-ended",
            wish.host,
            reason=reason,
            before=_before(wish),
            after={"state": progress.state.value, "said": said, "operation": progress.id},
        )

    return ended


def _before(wish: Wish) -> dict[str, Any]:
    return {"queue": names.host_queue(wish.host), "to": wish.to, "sameFolders": wish.same_folders}
