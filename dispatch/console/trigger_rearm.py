"""What the fleet remembers of a one-shot that an edit armed: forgotten, so that it may start again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatch.console.trigger_changes import Asked
from dispatch.triggers.claims import forget, forget_recorded

if TYPE_CHECKING:
    import redis

FORGOTTEN = "A job had spent this one-shot already; that is forgotten, so that another may start."
NOT_FORGOTTEN = (
    "If the fleet remembers an earlier job of this one-shot, the next one may be refused once"
    " (once-already-spent)."
)


def is_armed(asked: Asked) -> bool:
    """Whether a change that was written leaves a one-shot armed of which the fleet may remember a job."""
    return bool(asked.armed or asked.still_armed)


def forget_spent(client: redis.Redis, asked: Asked) -> str:
    """Have the fleet forget that it was spent; answers what a person should know of that, or blank.

    Other hosts go by that whose own file never said so, and so do we where its disarm failed. One whose job
    may be on its way stays that job's. Raises what redis-py raises.
    """
    if asked.armed:
        forget(client, asked.armed)
    elif asked.still_armed and forget_recorded(client, asked.still_armed):
        return FORGOTTEN
    return ""
