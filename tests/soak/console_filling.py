"""What the console's soak shows beside the history: hosts that beat, jobs in every section, schedules."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import redis

from dispatch.instants import instant_of
from dispatch.jobs import JobData, local_job
from dispatch.money.ledger import valkey_now
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.owner import Owner
from dispatch.queue.popper import Claimed, Popper
from dispatch.queue.producer import Producer
from dispatch.queue.transitions import Step, Transitions
from dispatch.queue.waiters import WaitReason
from dispatch.schedules import keys as schedule_keys
from dispatch.schedules.table import Table
from dispatch.waits.holds import Holds, Waiter
from hosts import keys, switches
from hosts.names import SHARED_QUEUE, host_queue
from tests.harness.long_history import HOSTS, schedule_id
from tests.soak.console_files import Files

#: The host of the web process, one that takes nothing, one whose queue is paused, one that has gone.
HERE, DRAINED, PAUSED, GONE = HOSTS[7], HOSTS[13], HOSTS[31], "build-99"
#: A schedule that the stall guard has taken down.
TORN = schedule_id(17)
_DOOMED = "doomed"
_RUNNING_EACH = 4
_SCOPES = 40
_HOUR_MS = 3_600_000
_REASONS = (WaitReason.CAP, WaitReason.SCOPE_BUSY, WaitReason.PAUSE_WINDOW, WaitReason.RETRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How many jobs stand how, and how many one action cancels."""

    waiting: int
    asleep: int
    cancelled: int


def _owners() -> tuple[Owner, ...]:
    return tuple(
        Owner(boot=f"{number:016x}-00000001", host_id=f"{number:016x}", host=host)
        for number, host in enumerate(HOSTS)
    )


@dataclass(slots=True)
class Filling:
    """Writes through the functions that workers use; jobs by how they stand, first of all those that run."""

    client: redis.Redis
    files: Files
    # One object a host: it makes no token twice.
    owners: tuple[Owner, ...] = field(default_factory=_owners)
    running: list[str] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)

    def fill(self, amounts: Amounts) -> None:
        """Fill queues and tables; hosts are there once they beat."""
        self._start()
        self._sleep(amounts.asleep)
        self.waiting += [self._put(number, "local") for number in range(amounts.waiting)]
        for number in range(amounts.cancelled):
            self._put(number, _DOOMED, queue=SHARED_QUEUE)
        self._schedules()
        switches.pause(self.client, [host_queue(PAUSED)], by="soak", reason="to be seen")
        switches.drain(self.client, DRAINED, by="soak", reason="to be seen")

    def some(self) -> list[str]:
        """Name a job of each section, far from its beginning."""
        sections = (self.running, self.waiting, self.deferred, self.held)
        return [jobs[len(jobs) * 9 // 10] for jobs in sections]

    def beat(self) -> None:
        """Write every host's row as its own beats would have; one was there last an hour ago."""
        now, told = valkey_now(self.client), self.files.told(HERE)
        pipeline = self.client.pipeline(transaction=False)
        for owner in self.owners:
            host = owner.host
            row: dict[Any, Any] = {"name": host, "hostId": owner.host_id, "boot": owner.boot, "beatAt": now}
            row |= {"clockAt": now, "tz": "UTC", "version": "0.1.0", "concurrency": 4, "slotsUsed": 4}
            row |= {"routes": "true", "image": "pi-job:latest", "caps": "w:ci,s:default", **told}
            pipeline.hset(keys.host_row(host), mapping=row)
            pipeline.sadd(keys.HOSTS_LIVE, host)
            pipeline.hset(keys.HOSTS_KNOWN, owner.host_id, json.dumps({"name": host, "beat": now}))
            pipeline.sadd(keys.QUEUES_KNOWN, SHARED_QUEUE, host_queue(host))
            for queue in (SHARED_QUEUE, host_queue(host)):
                pipeline.zadd(f"takers:{queue}", {owner.boot: now})
        gone = json.dumps({"name": GONE, "beat": now - _HOUR_MS})
        pipeline.hset(keys.HOSTS_KNOWN, f"{len(HOSTS):016x}", gone)
        pipeline.execute()

    def _start(self) -> None:
        """As many run on each host as it has slots."""
        for number, _ in itertools.product(range(len(HOSTS)), range(_RUNNING_EACH)):
            claimed = self._claimed(len(self.running), number, "running")
            deadline = claimed.now_ms + _HOUR_MS
            container = f"pi-job-{claimed.job_id}"
            begun = self._steps(number).begin(claimed, container=container, deadline_ms=deadline)
            assert begun is Step.DONE, begun
            self.running.append(claimed.job_id)

    def _sleep(self, count: int) -> None:
        """Put so many off, and have as many held by a condition."""
        holds, hosts = Holds(self.client), itertools.cycle(range(len(HOSTS)))
        for place in range(count):
            number = next(hosts)
            claimed = self._claimed(place, number, "deferred")
            reason, until = _REASONS[place % len(_REASONS)], claimed.now_ms + _HOUR_MS * (1 + place % 20)
            scope = _scope(place) if reason is WaitReason.SCOPE_BUSY else None
            self._steps(number).put_off(claimed, until_ms=until, reason=reason, scope_hash=scope)
            self.deferred.append(claimed.job_id)
        for place in range(count):
            number = next(hosts)
            claimed = self._claimed(place, number, "held", wait_for=({"profile": "tests-green"},))
            until = claimed.now_ms + _HOUR_MS
            self._steps(number).put_off(claimed, until_ms=until, reason=WaitReason.WAIT)
            waiter = Waiter(
                job_id=claimed.job_id, target="local:site", label="tests-green", identity=f"{place:032x}"
            )
            holds.record(waiter, now_ms=claimed.now_ms, until_ms=until)
            self.held.append(claimed.job_id)

    def _schedules(self) -> None:
        """Put the file's schedules into every host's table a day ago; none has acted since.

        On this host one has been taken down.
        """
        now = instant_of(valkey_now(self.client)) - timedelta(days=1)
        table = Table(self.client, host_queue(HERE))
        table.reconcile([*self.files.triggers(HERE).schedules.values()], now=now)
        for host in HOSTS:
            for key in (schedule_keys.definitions, schedule_keys.upcoming, schedule_keys.since):
                if host != HERE:
                    self.client.copy(key(table.queue), key(host_queue(host)))
        assert table.tear_down(TORN, stalls=4, at_ms=valkey_now(self.client))

    def _claimed(self, place: int, number: int, name: str, **wishes: Any) -> Claimed:
        """Bring a job into the queue of the host of this number or, every other time, into the shared one."""
        host = HOSTS[number]
        queue = host_queue(host) if name == "running" or place % 2 else SHARED_QUEUE
        self._put(place, name, queue=queue, **wishes)
        claimed = Popper(self.client, self.owners[number], queue).pop()
        assert isinstance(claimed, Claimed), claimed
        return claimed

    def _put(self, place: int, name: str, *, queue: str | None = None, **wishes: Any) -> str:
        host = HOSTS[place // 2 % len(HOSTS)]
        job_id, job = _job_id(name, place), _job(place, **wishes)
        goes = queue or (SHARED_QUEUE if place % 2 else host_queue(host))
        Producer(self.client).enqueue(goes, job_id, job, keeping=LOCAL, scope_hash=_scope(place))
        return job_id

    def _steps(self, number: int) -> Transitions:
        return Transitions(client=self.client, owner=self.owners[number])


def doomed(place: int) -> str:
    """Name a job that is there to be cancelled."""
    return _job_id(_DOOMED, place)


def _job_id(name: str, place: int) -> str:
    return f"{name}-{place:016x}"


def _job(place: int, **wishes: Any) -> JobData:
    return local_job(f"/srv/site-{place % _SCOPES}", task="Do it.", flow=f"flow-{place % 60}", **wishes)


def _scope(place: int) -> str:
    return f"{place % _SCOPES:016x}"
