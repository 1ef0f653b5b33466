"""What the tests of the tables share: schedules, a clock that the test moves, looks into Valkey."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dispatch.ids import rq_id
from dispatch.instants import epoch_ms, instant_of
from dispatch.queue import keys as queue_keys
from dispatch.schedules.definition import Schedule
from dispatch.schedules.table import Table
from dispatch.schedules.ticker import Ticker
from tests.dispatch.queuekit import listed

QUEUE = "pi-jobs@alpha"
OTHER = "pi-jobs@beta"
# A Tuesday.
START = datetime(2026, 3, 3, 10, 2, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def schedule(schedule_id="tidy", pattern="*/5 * * * *", zone="UTC", **run):
    return Schedule(
        schedule_id, pattern, zone, {"kind": "local", "folder": "/srv/site", "task": "tidy up", **run}
    )


class Clock:
    """Valkey's time in ms, as the test says."""

    def __init__(self, now=START):
        self.now = now

    def __call__(self):
        return epoch_ms(self.now)

    def go(self, by):
        self.now += by


class Ground:
    """Tables of some queues, a ticker for each host, one clock."""

    def __init__(self, client, *schedules, queues=(QUEUE,)):
        self.client, self.clock = client, Clock()
        self.tables = {queue: Table(client, queue) for queue in queues}
        self.tickers = {queue: self.ticker(queue) for queue in queues}
        self.reconcile(*schedules)

    def ticker(self, *queues, **more):
        return Ticker(self.client, queues or [QUEUE], clock_ms=self.clock, **more)

    def reconcile(self, *schedules, queue=None):
        for name, table in self.tables.items():
            if queue in (None, name):
                table.reconcile(schedules, now=self.clock.now)

    def tick(self, queue=QUEUE, by=None):
        """Go on by so much, and tick; answer the instants (text) that became jobs."""
        if by is not None:
            self.clock.go(by)
        return [shown(one.instant_ms) for one in self.tickers[queue].tick()]

    def next_of(self, schedule_id="tidy", queue=QUEUE):
        return shown(self.tables[queue].resident()[schedule_id].next_ms)


def shown(ms):
    return None if ms is None else f"{instant_of(ms):%d. %H:%M}"


def instants(client, queue=QUEUE):
    """What waits in the queue, oldest first, as the instants of its ids."""
    return [shown(int(one.rpartition("_3a")[2])) for one in listed(client, queue)]


def end_all(client, queue=QUEUE):
    """Let all that waits have run, its id be forgotten."""
    for one in listed(client, queue):
        client.delete(queue_keys.job(one.encode()))
    client.delete(queue_keys.queue_keys(queue).jobs)


def set_status(client, job_id, status):
    client.hset(queue_keys.job(rq_id(job_id).encode()), "status", status)
