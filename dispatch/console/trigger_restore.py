"""A schedule that the stall guard took down, put back on every queue where it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from dispatch.console.queues import read_queues
from dispatch.console.server import Server
from dispatch.schedules import keys
from dispatch.schedules.table import Table
from dispatch.triggers.on_fields import is_id
from hosts.faults import token_of
from pidispatch_site.errors import ConfigurationError

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The queues where it came back; `unread` says, as tokens, where it cannot be told.

    `is_known`: some queue has a schedule of this id.
    """

    schedule_id: str
    is_known: bool
    queues: tuple[str, ...]
    unread: tuple[str, ...]

    def said(self, *, on: str = "") -> str:
        """Say it in a sentence; `on` is what it says of the server, such as ` on URL`."""
        if not self.queues and not self.is_known:
            return f"No queue{on} has a schedule {self.schedule_id}. `manage.py triggers` lists them."
        if not self.queues:
            return f"Schedule {self.schedule_id} is not taken down on any queue{on}. Nothing changed."
        queues = ", ".join(self.queues)
        return f"Schedule {self.schedule_id} starts again at its next instant: {queues}{on and f',{on}'}."

    def as_json(self) -> dict[str, Any]:
        """Make what `--json` prints."""
        return {"id": self.schedule_id, "restored": self.queues, "unread": self.unread}


def restore(server: Server, schedule_id: str) -> Restored:
    """Put it back wherever it was taken down; raises what redis-py raises, and may be repeated."""
    if not is_id(schedule_id):
        raise ConfigurationError("an id of a schedule has letters, digits, '.', '_' and '-' only")
    found = read_queues(server.client)
    queues, unread = [], [found.gap] if found.gap else []
    for queue in found.names:
        try:
            if Table(server.client, queue).restore(schedule_id):
                queues.append(queue)
        except ResponseError as fault:
            unread.append(f"{queue}: {token_of(fault)}")
    return Restored(
        schedule_id=schedule_id,
        is_known=bool(queues) or is_installed(server.client, schedule_id),
        queues=tuple(queues),
        unread=tuple(unread),
    )


def is_installed(client: redis.Redis, schedule_id: str) -> bool:
    """Tell whether a queue has a schedule of this id; raises what redis-py raises."""
    names = read_queues(client).names if is_id(schedule_id) else ()
    with client.pipeline(transaction=False) as pipeline:
        for queue in names:
            pipeline.hexists(keys.definitions(queue), schedule_id)
        return any(found is True or found == 1 for found in pipeline.execute(raise_on_error=False))
