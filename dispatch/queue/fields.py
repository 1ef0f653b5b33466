"""A job's hash read into values. Whatever stands there is read; nothing in it is trusted or evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dispatch.ids import natural_id
from dispatch.jobs import JobData, Malformed, decode

# What a claim and a sweep ask of the hash, in this order.
NAMES = (
    *("data", "attempt", "attempts", "attemptLog", "putBacks", "firstQueued"),
    *("enqueued_at", "created_at", "scope", "reason", "since"),
)
# Longer than any log of attempts that we write.
_MAX_LOG_BYTES = 256 * 1024
_COUNT = re.compile(rb"[0-9]{1,16}")
_RQ_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One job as its hash describes it.

    `raw_id` is the id as it stands in Valkey, `rq_id` the same as text for logs, `job_id` the natural id (of
    a foreign id the text itself). `attempt` counts from 0, `attempts` is the maximum. `enqueued_at` and
    `created_at` are RQ's texts; `raw` is RQ's `data` field and `job` what it means. `reason` and `since_ms`:
    what it last waited for, and since when; both are gone once it has begun.
    """

    queue: str
    raw_id: bytes
    rq_id: str
    job_id: str
    attempt: int
    attempts: int
    put_backs: int
    first_queued_ms: int
    attempt_log: tuple[Mapping[str, Any], ...]
    enqueued_at: str
    created_at: str
    scope: str | None
    reason: str | None
    since_ms: int | None
    raw: bytes = field(repr=False)
    job: JobData | Malformed = field(repr=False)

    @property
    def queued_at_ms(self) -> int | None:
        """When it last entered its queue, by the clock of who put it there; None when it does not say."""
        return milliseconds(self.enqueued_at)

    @property
    def created_ms(self) -> int | None:
        """When it was created, by its producer's clock; None when the hash does not say."""
        return milliseconds(self.created_at)


def read(queue: str, raw_id: bytes, values: Sequence[bytes | None]) -> dict[str, Any]:
    """Read the values of NAMES into the arguments of a `QueuedJob`."""
    raw, attempt, attempts, log, put_backs, first, enqueued_at, created_at, scope, reason, since = values
    rq_id = raw_id.decode("utf-8", "backslashreplace")
    raw = raw or b""
    created = _text(created_at) or ""
    return {
        "queue": queue,
        "raw_id": raw_id,
        "rq_id": rq_id,
        "job_id": natural_id(rq_id) or rq_id,
        "attempt": _count(attempt) or 0,
        "attempts": max(_count(attempts) or 1, 1),
        "put_backs": _count(put_backs) or 0,
        "first_queued_ms": _count(first) or milliseconds(created) or 0,
        "attempt_log": _log(log),
        "enqueued_at": _text(enqueued_at) or "",
        "created_at": created,
        "scope": _text(scope),
        "reason": _text(reason),
        "since_ms": _count(since),
        "raw": raw,
        "job": decode(raw),
    }


def rq_text(moment: datetime) -> str:
    """Write an aware instant as RQ's hashes do."""
    return moment.astimezone(UTC).strftime(_RQ_TIME)


def milliseconds(text: str) -> int | None:
    """Read RQ's text of an instant as epoch milliseconds; None when it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round(moment.timestamp() * 1000) if moment.tzinfo else None


def _text(value: bytes | None) -> str | None:
    return value.decode("utf-8", "replace") if value else None


def _count(value: bytes | None) -> int | None:
    return int(value) if value and _COUNT.fullmatch(value) else None


def _log(value: bytes | None) -> tuple[Mapping[str, Any], ...]:
    if not value or len(value) > _MAX_LOG_BYTES:
        return ()
    try:
        entries = json.loads(value)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(entries, list):
        return ()
    return tuple(entry for entry in entries if isinstance(entry, dict))
