"""A schedule that the stall guard took down, put back on every queue where it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from dispatch.console.queues import read_queues
from dispatch.console.server import Server
from dispatch.schedules.table import Table
from dispatch.triggers.on_fields import is_id
from hosts.faults import token_of
from pidispatch_site.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The queues where it came back; `unread` says, as tokens, where it cannot be told."""

    schedule_id: str
    queues: tuple[str, ...]
    unread: tuple[str, ...]

    def said(self, server: str) -> str:
        """Say it in a sentence."""
        if not self.queues:
            return f"Schedule {self.schedule_id} was taken down on no queue on {server}. Nothing was changed."
        queues = ", ".join(self.queues)
        return f"Schedule {self.schedule_id} starts again at its next instant: {queues}, on {server}."

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
    return Restored(schedule_id=schedule_id, queues=tuple(queues), unread=tuple(unread))
