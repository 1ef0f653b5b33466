"""What the tests of one-shots share: entries, a file of them, and the jobs that match them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import redis

from dispatch.ids import Kind, TargetType, rq_id
from dispatch.jobs import ForgeTrigger, JobData, Matched, Target
from dispatch.queue import keys
from dispatch.triggers.claims import Claims
from runs.oneshot import OneShot, slot_hash

ONCE = OneShot(index=0, number=7, slot=slot_hash(flow="fix", command=None))
KEY = f"once:0:7:{ONCE.slot}"
SPENT_BY = {"at": "2026-01-05T12:00:00.000Z", "jobId": "gh-9"}


def entry(
    *, number: int = 7, flow: str = "fix", disarmed: Mapping[str, str] | None = None, **on: Any
) -> dict[str, Any]:
    """Make a rule that starts one job when issue `number` is closed."""
    spent = {"disarmed": dict(disarmed)} if disarmed else {}
    rule = {"type": "issue", "action": ["closed"], "number": number, "once": True, **spent, **on}
    return {"on": rule, "run": {"kind": "github", "flow": flow}}


def cron(id_: str, pattern: str = "0 3 * * *") -> dict[str, Any]:
    """Make a schedule."""
    return {
        "on": {"type": "cron", "id": id_, "pattern": pattern},
        "run": {"kind": "local", "folder": "/srv/site", "flow": "audit", "task": "Look."},
    }


def written(path: Path, *entries: Any) -> Path:
    """Write a file of these entries."""
    path.write_text(json.dumps({"triggers": list(entries)}, indent=2) + "\n")
    return path


def entries_of(path: Path) -> list[Any]:
    """Read the entries that the file holds."""
    found: list[Any] = json.loads(path.read_bytes())["triggers"]
    return found


def as_it_lies(path: Path) -> tuple[bytes, int, int]:
    """Tell what a write would change of the file: content, inode and time; not when it was read."""
    found = path.stat()
    return path.read_bytes(), found.st_ino, found.st_mtime_ns


def job(delivery: str = "1", *, once: bool | None = True, repo: str = "acme/web", **matched: Any) -> JobData:
    """Make the job of a delivery that matched `entry()` at the first place of the file."""
    rule = Matched(**{"index": 0, "type": "issue", "number": 7, "action": "closed", **matched, "once": once})
    target = Target(type=TargetType.ISSUE, number=7, title="A title", body="A body")
    trigger = ForgeTrigger(delivery_id=delivery, matched=rule)
    return JobData(kind=Kind.GITHUB, repo=repo, flow="fix", target=target, trigger=trigger)


def command_job(command: str) -> JobData:
    """Make the same of a rule that runs a command."""
    return replace(job(), flow=None, command=command)


def claimed(claims: Claims, job_id: str, *, is_armed: bool = True) -> str:
    """Claim it for a job, and say whose it is."""
    return claims.claim(ONCE, job_id, is_armed=lambda: is_armed)


def standing(client: redis.Redis, job_id: str, status: str) -> None:
    """Let a job stand so in the queue."""
    client.hset(keys.job(rq_id(job_id).encode()), "status", status)
