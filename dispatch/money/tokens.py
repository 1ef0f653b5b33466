"""The day's tokens: what containers said they used, which can only stop the next job (Q 8.4).

A fault of Valkey surfaces as its exception; of `record` it means that nothing is known to be counted, and the
same call may be repeated.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import cast

import redis

from dispatch.money.windows import (
    COUNTER_TTL,
    GLOBAL_PREFIX,
    GRANT_TTL,
    Window,
    count_of,
    grant_key,
    token_counter_key,
)

_RECORD = Path(__file__).with_name("lua") / "tokens.lua"
# A script counts in floating point: up to here exactly. The figure is a container's and may be anything.
_MOST = 2**53 - 1


class TokenCounter:
    """One counter a UTC day; days are those of Valkey's TIME, which the caller has read."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._record = client.register_script(_RECORD.read_text())

    def spent(self, now: datetime) -> int:
        """Read what was recorded on `now`'s day.

        ResponseError for a counter that holds no whole number: nobody knows whether the cap is reached, so
        nothing may start.
        """
        stored = cast("bytes | None", self._client.get(token_counter_key(GLOBAL_PREFIX, now)))
        try:
            return count_of(stored)
        except ValueError as error:
            raise redis.exceptions.ResponseError(str(error)) from error

    def record(self, job_id: str, attempt: int, tokens: int, *, now: datetime) -> bool:
        """Add what the attempt's container used to `now`'s day; True when this call did.

        False when an earlier call had, whatever day that was, or when `tokens` is not positive.
        """
        if tokens <= 0:
            return False
        return bool(
            self._record(
                keys=[grant_key(job_id, attempt), token_counter_key(GLOBAL_PREFIX, now)],
                args=[
                    tokens,
                    int(GRANT_TTL.total_seconds()),
                    int(COUNTER_TTL[Window.DAY].total_seconds()),
                    _MOST,
                ],
            )
        )
