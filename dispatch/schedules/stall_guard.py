"""Taking a schedule out whose occurrences end with their workers again and again (Q 10.7)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from redis.exceptions import RedisError

from dispatch.ids import OCCURRENCE, occurrence_of
from dispatch.money.ledger import valkey_now
from dispatch.schedules import keys
from dispatch.schedules.scripts import text_of
from dispatch.schedules.table import Table, read_tables
from hosts import keys as hosts_keys
from hosts.faults import token_of
from hosts.names import found_queues
from pidispatch_site import log
from pidispatch_site.errors import OperationalError

if TYPE_CHECKING:
    import redis


class StallGuard:
    """Counts the stalls of each schedule in the fleet, and takes out what has more than `most` within a day.

    `clock_ms` tells when, for who reads the note of it; None: Valkey's time.
    """

    def __init__(self, client: redis.Redis, *, most: int, clock_ms: Callable[[], int] | None = None) -> None:
        self._client = client
        self._most = most
        self._clock_ms = clock_ms or partial(valkey_now, client)
        self._count = client.register_script(text_of("count_stall"))

    def stalled(self, job_id: str, queue: str) -> None:
        """Hear that a job of this queue was lost with its worker; call it once for each. Never raises."""
        if not job_id.startswith(OCCURRENCE):
            return
        occurrence = occurrence_of(job_id)
        if occurrence is None:
            log.event("scheduler_stall_unparsed", jobId=job_id)
            return
        try:
            self._judge(occurrence[0], job_id, queue)
        except Exception as error:  # noqa: BLE001 - a sweep has more to do than this
            log.event("scheduler_stall_guard_error", jobId=job_id, error=_token(error))

    def _judge(self, schedule_id: str, job_id: str, queue: str) -> None:
        counter = keys.stalls(schedule_id)
        stalls = cast("int", self._count(keys=[counter], args=[round(keys.STALLS_TTL.total_seconds())]))
        if stalls <= self._most:
            return
        try:
            is_out = self._tear_down(schedule_id, job_id, queue, stalls)
            error = None if is_out else "not-installed"
        except (RedisError, OperationalError) as fault:
            error = _token(fault)
        if error:
            log.event("scheduler_teardown_remove_failed", schedulerId=schedule_id, error=error)
        self._client.delete(counter)
        log.event("scheduler_torn_down", schedulerId=schedule_id, stalls=stalls)

    def _tear_down(self, schedule_id: str, job_id: str, queue: str, stalls: int) -> bool:
        at_ms = self._clock_ms()
        return any(
            Table(self._client, one).tear_down(schedule_id, stalls=stalls, at_ms=at_ms)
            for one in self._installed_on(schedule_id, job_id, queue)
        )

    def _installed_on(self, schedule_id: str, job_id: str, queue: str) -> list[str]:
        """Find the queues by whose tables the job came: its own, or, after a reroute, one that says so."""
        if self._client.hexists(keys.definitions(queue), schedule_id):
            return [queue]
        known = found_queues(cast("set[bytes]", self._client.smembers(hosts_keys.QUEUES_KNOWN)))
        found = {
            name: table[schedule_id]
            for name, table in read_tables(self._client, known).items()
            if not isinstance(table, str) and schedule_id in table and table[schedule_id].definition
        }
        its = [name for name, one in found.items() if one.fired and one.fired.job_id == job_id]
        return its or (list(found) if len(found) == 1 else [])


def _token(error: Exception) -> str:
    return token_of(error) if isinstance(error, RedisError) else type(error).__name__
