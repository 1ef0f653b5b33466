"""Rerouting as a background action, with entries of the log for its begin and its end."""

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
from dispatch.pages.operations import Entries, Operation
from hosts import names


def begin_reroute(request: HttpRequest, wish: Wish, reason: str) -> str:
    """Start it and answer the action's id. Raises PidispatchError where no server is configured."""
    return operations.begin(
        settings.PIDISPATCH_ENVIRONMENT,
        kind="reroute",
        by=by(request),
        reason=reason,
        work=_work(wish),
        columns=fleet_rerouting.COLUMNS,
        # What is only tried changes nothing.
        entries=None if wish.is_tried else _entries(request, wish, reason),
    )


def _work(wish: Wish) -> Callable[[Operation], Result]:
    def work(operation: Operation) -> Result:
        server = Server(client=operation.client, shown=operation.shown)
        with confirming(server, "rerouted", (names.host_queue(wish.host),), told_by="queue"):
            found = reroute(operation.client, wish)
        operation.show(tuple(fleet_rerouting.rows(found)))
        return fleet_rerouting.result(found)

    return work


def _entries(request: HttpRequest, wish: Wish, reason: str) -> Entries:
    before = {"queue": names.host_queue(wish.host), "to": wish.to, "sameFolders": wish.same_folders}

    def keep(action: str, after: dict[str, Any]) -> bool:
        return audit.record(request, action, wish.host, reason=reason, before=before, after=after)

    def ended(progress: Progress) -> bool:
        said = progress.result.summary if progress.result else None
        after = {"state": progress.state.value, "said": said, "operation": progress.id}
        return keep("host-reroute-ended", after)

    return Entries(lambda operation_id: keep("host-reroute", {"operation": operation_id}), ended)
