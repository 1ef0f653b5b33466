"""A job that a person asks `run` for, ready to be put where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.console.destination import Destination
from dispatch.jobs import JobData

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The job and its id; `notes` are what the person should know of it before it is enqueued.

    `destination` asks the fleet where it goes: OperationalError when it can go nowhere.
    """

    job: JobData
    job_id: str
    destination: Callable[[redis.Redis], Destination]
    notes: tuple[str, ...] = ()
