"""What RQ keeps of an ending: the reason token and nothing else, in the form that RQ's `Result` reads."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from dispatch.ids import rq_id
from dispatch.queue import keys

if TYPE_CHECKING:
    import redis

# RQ's lifetimes of a job that says nothing usable about its own: Q 2.4, a local job.
FINISHED_SECONDS = 24 * 3600
FAILED_SECONDS = 7 * 24 * 3600


@cache
def returned(reason: str) -> tuple[str, str]:
    """Name and value of the result's field for a job that finished."""
    return "return_value", b64encode(json.dumps(reason).encode()).decode()


@cache
def raised(reason: str) -> tuple[str, str]:
    """Name and value of the result's field for a job that failed."""
    return "exc_string", b64encode(zlib.compress(reason.encode())).decode()


def ending(client: redis.Redis, job_id: str) -> str | None:
    """Read the token that the job of this natural id ended with; None when RQ keeps none."""
    entries = client.xrevrange(keys.results(rq_id(job_id).encode()), count=1)
    return read(cast("Any", entries)[0][1] if entries else {})


def read(values: Mapping[bytes, bytes]) -> str | None:
    """Read the token out of the fields of a result; None where there is none."""
    try:
        if b"return_value" in values:
            return str(json.loads(b64decode(values[b"return_value"])))
        return zlib.decompress(b64decode(values[b"exc_string"])).decode() if b"exc_string" in values else None
    except (ValueError, zlib.error):
        return None
