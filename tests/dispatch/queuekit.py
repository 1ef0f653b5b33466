"""What the tests of the queue share: one host's worker without its threads, and looks into Valkey."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from dispatch import jobs
from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import Owner, execution_id
from dispatch.queue.popper import Claimed, Popper
from dispatch.queue.producer import Producer
from dispatch.queue.promote import Promoter
from dispatch.queue.sweep import Sweeper
from dispatch.queue.takers import Beats
from dispatch.queue.timings import Timings
from dispatch.queue.transitions import Step, Transitions
from dispatch.queue.verdicts import Lost
from runs.outcome import Outcome

QUEUE = "pi-jobs"
JOB = jobs.local_job("/srv/site", task="tidy up")
# Nothing waits in the tests, so silence is judged at once where a test wants it judged.
QUICK = Timings(late=0, gone=0, grace=0)


def record_of(lost: Lost) -> bytes:
    return json.dumps({"job": lost.job_id, "cause": lost.cause, "host": lost.host}).encode()


@dataclass
class Clock:
    """A monotonic clock that only the test moves."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Host:
    """One worker process of one host, its threads being the test's own lines."""

    client: redis.Redis
    name: str = "alpha"
    host_id: str = "aaaa"
    boot_number: int = 1
    queue: str = QUEUE
    timings: Timings = QUICK
    delays: Delays = no_delay
    held: set[str] = field(default_factory=set)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.owner = Owner(
            boot=f"{self.host_id}-{self.boot_number:08x}", host_id=self.host_id, host=self.name
        )
        self.producer = Producer(self.client)
        self.popper = Popper(self.client, self.owner, self.queue, delays=self.delays)
        self.steps = Transitions(
            client=self.client, owner=self.owner, timings=self.timings, delays=self.delays
        )
        self.sweeper = Sweeper(
            self.client,
            self.owner,
            in_hand=lambda _: self.held,
            record=record_of,
            timings=self.timings,
            clock=self.clock,
            delays=self.delays,
        )
        self.beats = Beats(self.client, self.owner, [self.queue], timings=self.timings)
        self.promoter = Promoter(self.client, timings=self.timings)

    def enqueue(self, *job_ids: str) -> None:
        for job_id in job_ids:
            self.producer.enqueue(self.queue, job_id, JOB)

    def claim(self) -> Claimed:
        popped = self.popper.pop()
        assert isinstance(popped, Claimed), popped
        self.held.add(popped.token)
        return popped

    def start(self) -> Claimed:
        claimed = self.claim()
        assert self.begin(claimed) is Step.DONE
        return claimed

    def begin(self, claimed: Claimed) -> Step:
        return self.steps.begin(claimed, container=f"pi-job-{claimed.job_id}", deadline_ms=1)

    def end(self, claimed: Claimed, outcome: Outcome = Outcome.COMPLETED) -> Step:
        return self.steps.end(claimed, outcome=outcome, reason=None, record=record("end", claimed))

    def refuse(self, claimed: Claimed) -> Step:
        return self.steps.refuse(claimed, reason="over-budget", record=record("refuse", claimed))

    def put_off(self, claimed: Claimed, until_ms: int | None = None) -> Step:
        until = claimed.now_ms + 5000 if until_ms is None else until_ms
        return self.steps.put_off(claimed, until_ms=until, reason="scope-busy", scope_hash="abcd")

    def again(self, claimed: Claimed, delay_ms: int = 60_000) -> Step:
        return self.steps.again(
            claimed,
            delay_ms=delay_ms,
            record=record("again", claimed),
            log_entry={"outcome": "failed", "reason": None, "attempt": claimed.attempt},
        )


# The transitions of who has a job, by name.
MOVES = {
    "give back": lambda host, claimed: host.steps.give_back(claimed),
    "put off": lambda host, claimed: host.put_off(claimed),
    "refuse": lambda host, claimed: host.refuse(claimed),
    "begin": lambda host, claimed: host.begin(claimed),
    "end": lambda host, claimed: host.end(claimed),
    "end failed": lambda host, claimed: host.end(claimed, Outcome.FAILED),
    "again": lambda host, claimed: host.again(claimed),
}


def record(what: str, claimed: Claimed) -> bytes:
    return json.dumps({"job": claimed.job_id, "what": what, "final": what != "again"}).encode()


def hash_of(client: redis.Redis, job_id: str) -> dict[str, str]:
    return hashes_of(client, [job_id])[0]


def hashes_of(client: redis.Redis, job_ids: Iterable[str]) -> list[dict[str, str]]:
    asked = client.pipeline(transaction=False)
    for job_id in job_ids:
        asked.hgetall(keys.job(rq_id(job_id).encode()))
    return [
        {name.decode(): value.decode("latin-1") for name, value in raw.items()} for raw in asked.execute()
    ]


def records(client: redis.Redis, host_id: str = "aaaa") -> list[dict[str, Any]]:
    return [json.loads(one) for one in client.lrange(keys.pending_records(host_id), 0, -1)]


def everything(client: redis.Redis) -> dict[str, object]:
    """The whole content of the server, for tests that say that nothing changed."""
    return {key.decode("latin-1"): _value(client, key) for key in client.scan_iter(count=1000)}


def _value(client: redis.Redis, key: bytes) -> object:
    match client.type(key):
        case b"hash":
            return client.hgetall(key)
        case b"list":
            return client.lrange(key, 0, -1)
        case b"set":
            return client.smembers(key)
        case b"zset":
            return client.zrange(key, 0, -1, withscores=True)
        case b"stream":
            return client.xrange(key)
        case _:
            return client.get(key)


def listed(client: redis.Redis, queue: str = QUEUE) -> list[str]:
    return [one.decode() for one in client.lrange(keys.queue_keys(queue).jobs, 0, -1)]


def taken(client: redis.Redis, host: Host) -> list[str]:
    return [one.decode() for one in client.lrange(keys.queue_keys(host.queue).taken(host.owner.boot), 0, -1)]


def now_ms(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return seconds * 1000 + micros // 1000


def age_beat(client: redis.Redis, host: Host, seconds: float) -> None:
    """Let the host's last beat be that long ago."""
    client.zadd(keys.queue_keys(host.queue).takers, {host.owner.boot: now_ms(client) - seconds * 1000})


def assert_sound(client: redis.Redis, job_ids: Iterable[str], queue: str = QUEUE) -> None:
    """Every job stands in exactly the places that its state says, and nowhere else."""
    names = keys.queue_keys(queue)
    ids = list(job_ids)
    found = places(client, names)
    for job_id, job in zip(ids, hashes_of(client, ids), strict=True):
        assert sorted(found[rq_id(job_id).encode()]) == expected_places(job, names), job_id


def places(client: redis.Redis, names: keys.QueueKeys) -> Mapping[bytes, list[str]]:
    """By job, all places of the queue where it stands; as often as it does."""
    found: defaultdict[bytes, list[str]] = defaultdict(list)
    taken = sorted(client.scan_iter(f"{queue_pattern(names)}:taken:*", count=1000))
    waiters = sorted(client.scan_iter(f"waiters:{queue_pattern(names)}:*", count=1000))
    lists = [names.jobs.encode(), *taken]
    sets = [*(name.encode() for name in (names.scheduled, names.finished, names.failed)), *waiters]
    asked = client.pipeline(transaction=False)
    for key in lists:
        asked.lrange(key, 0, -1)
    for key in sets:
        asked.zrange(key, 0, -1)
    *answers, started = asked.zrange(names.started, 0, -1).execute()
    for key, standing in zip([*lists, *sets], answers, strict=True):
        for raw in standing:
            found[raw].append(key.decode())
    for one in started:
        raw, _, execution = one.rpartition(b":")
        found[raw].append(f"{names.started} {execution.decode()}")
    return found


def queue_pattern(names: keys.QueueKeys) -> str:
    return names.name.replace("[", "\\[")


def expected_places(job: Mapping[str, str], names: keys.QueueKeys) -> list[str]:
    taker = job.get("taker")
    match job.get("status"):
        case "queued":
            return [names.taken(taker.rpartition("/")[0]) if taker else names.jobs]
        case "scheduled":
            scope = f":{job['scope']}" if job["reason"].startswith("scope-busy") else ""
            return sorted([names.scheduled, f"waiters:{names.name}:{job['reason']}{scope}"])
        case "started":
            assert taker
            return [f"{names.started} {execution_id(taker)}"]
        case "finished":
            return [names.finished]
        case "failed":
            return [names.failed]
        case _:
            return []
