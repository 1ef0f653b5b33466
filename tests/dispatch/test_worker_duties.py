"""What a worker does for others: it sweeps their queues, and clears away what vanished hosts left."""

from __future__ import annotations

import json

import pytest

from dispatch.queue import keys
from dispatch.worker.duties import Duties
from dispatch.worker.live import LiveAttempt
from dispatch.worker.orders import Orders
from hosts import keys as hosts_keys
from hosts.registry import Registry
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench

GONE, THERE = "b" * 16, "c" * 16
HOUR_MS = 3_600_000


@pytest.fixture
def duties(valkey):
    bench = Bench(valkey)
    owner = bench.host.owner
    registry = Registry(
        valkey,
        name=owner.host,
        host_id="a" * 16,
        boot=owner.boot,
        queues=bench.host.queues,
        facts={"slotsUsed": lambda: len(bench.host.live)},
    )
    orders = Orders(valkey, host=owner.host, host_id="a" * 16, live=bench.host.live)
    return Duties(host=bench.host, registry=registry, orders=orders, inherited=lambda: None)


def known(valkey, host_id, *, ago_ms):
    seconds, micros = valkey.time()
    beat = seconds * 1000 + micros // 1000 - ago_ms
    valkey.hset(hosts_keys.HOSTS_KNOWN, host_id, json.dumps({"name": f"host-{host_id[0]}", "beat": beat}))


def began(valkey, host_id, name, *, ended_ago_ms):
    seconds, micros = valkey.time()
    deadline = seconds * 1000 + micros // 1000 - ended_ago_ms
    entry = {"job": "local-1", "attempt": 0, "token": "t/1", "deadline": deadline}
    valkey.hset(keys.containers(host_id), name, json.dumps(entry))


def test_containers_of_a_vanished_host_are_forgotten_once_they_must_have_ended(valkey, duties):
    known(valkey, GONE, ago_ms=2 * HOUR_MS)
    known(valkey, THERE, ago_ms=HOUR_MS // 2)
    for host_id in (GONE, THERE):
        began(valkey, host_id, "ended", ended_ago_ms=HOUR_MS)
        began(valkey, host_id, "may-run", ended_ago_ms=60_000)

    duties.look_after_others()

    assert valkey.hkeys(keys.containers(GONE)) == [b"may-run"]
    assert sorted(valkey.hkeys(keys.containers(THERE))) == [b"ended", b"may-run"]


def test_a_queue_whose_worker_is_silent_with_a_job_in_hand_is_swept_too(valkey, duties):
    silent, fresh = (queuekit.Host(valkey, name=name, queue=f"pi-jobs@{name}") for name in ("x", "y"))
    for host, job_id in ((silent, "local-1"), (fresh, "local-2")):
        host.beats.register()
        host.enqueue(job_id)
        host.claim()
    valkey.sadd(hosts_keys.QUEUES_KNOWN, "pi-jobs@x", "pi-jobs@y", "pi-jobs@not:a:name")
    (boot,) = valkey.zrange("takers:pi-jobs@x", 0, -1)
    valkey.zadd("takers:pi-jobs@x", {boot: 1})

    assert duties.queues_of_others().queues == ("pi-jobs@x",)


def test_the_fleet_sees_at_once_how_many_jobs_a_host_has(valkey, duties):
    host = queuekit.Host(valkey)
    host.enqueue("local-1")

    def shown():
        return valkey.hget(hosts_keys.host_row("alpha"), "slotsUsed")

    duties.hear_orders()
    assert shown() is None, "nothing has changed"
    with duties.host.live.holding(LiveAttempt(claimed=host.claim())):
        duties.hear_orders()
        assert shown() == b"1"
    duties.hear_orders()

    assert shown() == b"0"
