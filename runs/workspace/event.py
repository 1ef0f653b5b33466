"""What started a local job, told to the agent: `/job/event.json` (E 3.6)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum


class Source(StrEnum):
    """Who asked for a local job."""

    MANUAL = "manual"
    CHAIN = "chain"
    CRON = "cron"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronTrigger:
    """The schedule that fired."""

    id: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """When a schedule meant to fire, and when it last ran; either may be unknown."""

    scheduled_for: datetime | None
    previous_run_at: datetime | None


def local_event(
    *,
    source: Source,
    folder_name: str,
    sha: str | None,
    trigger: CronTrigger | None = None,
    occurrence: Occurrence | None = None,
) -> bytes:
    """Build the file: `folder_name` is the basename only; `sha` is null when the folder has no commit yet.

    `scheduledFor` and `previousRunAt` are there for cron only, null when unknown. One ASCII JSON line.
    """
    event: dict[str, object] = {"source": source.value}
    if trigger is not None:
        event["trigger"] = {"id": trigger.id, "pattern": trigger.pattern}
    event |= {"folder": folder_name, "sha": sha}
    if source is Source.CRON:
        event["scheduledFor"] = _iso(occurrence.scheduled_for if occurrence else None)
        event["previousRunAt"] = _iso(occurrence.previous_run_at if occurrence else None)
    return (json.dumps(event, separators=(",", ":")) + "\n").encode("ascii")


def _iso(instant: datetime | None) -> str | None:
    """Write an instant as existing jobs know it: UTC, milliseconds, `Z`."""
    if instant is None:
        return None
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
