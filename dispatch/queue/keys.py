"""The names of the queue's keys in Valkey: RQ's, and ours of contracts 2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from rq.defaults import RQ_KEY_PREFIX

from hosts import keys as hosts_keys
from hosts.keys import containers as containers
from hosts.keys import pending_records as pending_records

JOB = f"{RQ_KEY_PREFIX}:job:"
QUEUES = f"{RQ_KEY_PREFIX}:queues"
#: Hash of reason to how often a job was put off for it; no TTL, some thirty fields.
PUT_OFFS = "stats:put-offs"


def waiters(queue: str, reason: str, scope_hash: str | None = None) -> str:
    """Name the sorted set of sleeping jobs by `firstQueued`; no TTL, members leave with their state."""
    return f"waiters:{queue}:{reason}" + (f":{scope_hash}" if scope_hash else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueKeys:
    """The keys of one queue. All but `takers` and `pause` are RQ's, without TTL."""

    name: str
    jobs: str
    scheduled: str
    started: str
    finished: str
    failed: str
    takers: str
    pause: str

    def taken(self, boot: str) -> str:
        """Name the list of ids that a boot has in hand; gone when empty."""
        return f"{self.name}:taken:{boot}"


@cache
def queue_keys(queue: str) -> QueueKeys:
    """Answer the keys of the queue of this name."""
    return QueueKeys(
        name=queue,
        jobs=f"{RQ_KEY_PREFIX}:queue:{queue}",
        scheduled=f"{RQ_KEY_PREFIX}:scheduled:{queue}",
        started=f"{RQ_KEY_PREFIX}:wip:{queue}",
        finished=f"{RQ_KEY_PREFIX}:finished:{queue}",
        failed=f"{RQ_KEY_PREFIX}:failed:{queue}",
        takers=f"takers:{queue}",
        pause=hosts_keys.pause(queue),
    )


def job(raw_id: bytes) -> bytes:
    """Name the hash of a job; it lives as long as its id is known."""
    return b"%s:job:%s" % (_PREFIX, raw_id)


def results(raw_id: bytes) -> bytes:
    """Name the stream of a job's results; it lives as long as the hash."""
    return b"%s:results:%s" % (_PREFIX, raw_id)


def executions(raw_id: bytes) -> bytes:
    """Name the sorted set of a job's executions; expires with them."""
    return b"%s:executions:%s" % (_PREFIX, raw_id)


def execution(raw_id: bytes, execution_id: str) -> bytes:
    """Name the hash of one execution; expires unless beaten."""
    return b"%s:execution:%s:%s" % (_PREFIX, raw_id, execution_id.encode())


def worker(worker_name: str) -> str:
    """Name RQ's hash of a worker; expires unless beaten."""
    return f"{RQ_KEY_PREFIX}:worker:{worker_name}"


def worker_executions(worker_name: str) -> str:
    """Name the set of a worker's executions; expires unless beaten."""
    return f"{RQ_KEY_PREFIX}:worker:{worker_name}:executions"


_PREFIX = RQ_KEY_PREFIX.encode()
