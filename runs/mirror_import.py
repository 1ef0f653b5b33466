"""Brings the runs of the fleet's other hosts into this host's run table, so that pages read only the table.

One thread of a web process does it, begun by the first page that shows runs: no page waits for it. It looks
soon after each page view, else once a minute, and reads only what has changed since its last look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from django.db import connections
from redis.exceptions import RedisError

from pidispatch_site import clients
from pidispatch_site.conf import Config
from pidispatch_site.log import event
from runs import merging, mirror, rows
from runs.merging import Degraded, Standing
from runs.record import Record, position_ms
from runs.rows import RowFault
from runs.wording import moment

if TYPE_CHECKING:
    import redis

LEAST_PAUSE_SECONDS = 5.0
IDLE_SECONDS = 60.0
ROUND_SECONDS = 2.0
_AT_ONCE = 64
_making = threading.Lock()


class MirrorImport:
    """Imports the mirror into the run table, a round at a time; `standing` is what came of the last one.

    `keep_days` is how long the table keeps rows (0: for ever): what retention removed must not come back.
    Each round ends within about `round_seconds` and one command's timeout; the rest comes with the next.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        keep_days: int,
        round_seconds: float = ROUND_SECONDS,
        least_pause_seconds: float = LEAST_PAUSE_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._client = client
        self._keep_days = keep_days
        self._round_seconds = round_seconds
        self._least_pause_seconds = least_pause_seconds
        self._idle_seconds = idle_seconds
        # Members that the table knows of, as the index had them: a run that is news has another end.
        self._known: dict[bytes, float] = {}
        self._viewed = threading.Event()
        self._closing = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.standing: Standing | None = None
        self.complete_at: datetime | None = None

    def page_viewed(self) -> None:
        """Look soon; called by each page view, and never waits. The first in a process begins the thread."""
        self._viewed.set()
        with self._starting:
            # Not alive either in a process that was forked from the one that began it.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="mirror import", daemon=True)
                self._thread.start()

    def notice(self) -> str:
        """Say to a person what the table lacks of the fleet's history; blank when nothing."""
        if self.standing is None:
            return "The runs of other hosts are being fetched; reload in a moment."
        if self.standing.degraded is Degraded.OK:
            return ""
        told = merging.sentence(self.standing)
        if self.standing.degraded is Degraded.UNREACHABLE and self.complete_at:
            return f"{told} They are as of {moment(self.complete_at)} UTC."
        return told

    def round(self, now: datetime) -> None:
        """Bring in what is new; `now` (aware) judges what is too old for the table."""
        try:
            self.standing = self._imported(now)
        except RedisError as fault:
            self.standing = merging.unreachable(mirror.why(fault))
        if self.standing == merging.OK:
            self.complete_at = now

    def close(self) -> None:
        """End the thread, after the round that it may be in."""
        self._closing.set()
        self._viewed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._viewed.clear()
            try:
                self.round(datetime.now(UTC))
            except Exception as error:  # noqa: BLE001 - the loop of a daemon: it reports and goes on
                event("run_import_error", error=type(error).__name__)
                self.standing = merging.unreachable("import-error")
            finally:
                connections.close_all()
            self._closing.wait(self._least_pause_seconds)
            if self.standing != merging.TRUNCATED and not self._closing.is_set():
                self._viewed.wait(self._idle_seconds)

    def _imported(self, now: datetime) -> Standing:
        ends = time.monotonic() + self._round_seconds
        index = mirror.index(self._client)
        self._known = {member: end for member, end in self._known.items() if member in index}
        news = [member for member, end in index.items() if self._known.get(member) != end]
        for members in _slices(news):
            found = mirror.fetch(self._client, members).records
            kept = [record for record in found if self._keeps(record, now)]
            # A row that the database refuses for what it is would be refused again.
            if kept and RowFault.UNAVAILABLE in rows.write(kept):
                return merging.unreachable(RowFault.UNAVAILABLE.value)
            self._known.update((member, index[member]) for member in members)
            if time.monotonic() >= ends and members[-1] != news[-1]:
                return merging.TRUNCATED
        return merging.OK if index else merging.OFF

    def _keeps(self, record: Record, now: datetime) -> bool:
        oldest = now - timedelta(days=self._keep_days)
        return not self._keep_days or position_ms(record) >= oldest.timestamp() * 1000


def _slices(members: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(members), _AT_ONCE):
        yield members[start : start + _AT_ONCE]


@cache
def _made(url: str, keep_days: int) -> MirrorImport:
    return MirrorImport(clients.state_client(url), keep_days=keep_days)


def of_process(config: Config) -> MirrorImport | None:
    """Give this process's import, the same at each call; None where the host is not one of a fleet."""
    if not config.worker_name_declared:
        return None
    with _making:
        return _made(config.valkey_url, config.run_retention_days)
