"""Somebody who deletes, again and again, what the fleet may lose at any time: registry, mirror, leases."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import redis

from tests.harness.evidence import DELETABLE


class Deletion:
    """Deletes while the block lasts, for at most so many seconds; `deleted` says how many keys that were."""

    def __init__(self, client: redis.Redis, *, every: float, seconds: float = 3600) -> None:
        self.deleted = 0
        self._client = client
        self._every = every
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._delete, name="deletion", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _delete(self) -> None:
        ends = time.monotonic() + self._seconds
        while not self._over.wait(self._every) and time.monotonic() < ends:
            try:
                keys = [key for pattern in DELETABLE for key in self._client.scan_iter(pattern, count=1000)]
                self.deleted += self._client.delete(*keys) if keys else 0
            except redis.exceptions.ConnectionError:
                # A server that is being restarted has lost nothing: it is tried again.
                continue
