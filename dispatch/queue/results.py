"""What RQ keeps of an ending: the reason token and nothing else, in the form that RQ's `Result` reads."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from functools import cache

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
