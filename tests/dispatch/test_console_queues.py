"""Which queues there are: by several sources, each of which may fail by itself or hold what is hostile."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dispatch.console.queues import known_queues, named_queues, read_queues
from dispatch.console.status import read_status
from dispatch.console.switched import counted
from dispatch.queue import keys as queue_keys
from hosts import keys
from pidispatch_site.errors import ConfigurationError
from tests.dispatch.queuekit import QUEUE, now_ms

THERE = "pi-jobs@there"
A, B, C = (f"pi-jobs@{name}" for name in "abc")


def register(client, name, **fields):
    """The row that a worker of this name would have written just now."""
    client.hset(
        keys.host_row(name), mapping={"name": name, "beatAt": now_ms(client), "routes": "true", **fields}
    )
    client.sadd(keys.HOSTS_LIVE, name)


def know(client, host_id, name):
    client.hset(keys.HOSTS_KNOWN, host_id, f'{{"name": "{name}", "beat": {now_ms(client)}}}')


def test_every_source_names_queues_and_one_name_counts_once(valkey):
    register(valkey, "a")
    register(valkey, "no-queue", routes="false")
    know(valkey, "0" * 16, "gone")
    valkey.sadd(keys.QUEUES_KNOWN, B, A)
    valkey.sadd(queue_keys.QUEUES, f"rq:queue:{C}")

    found = read_queues(valkey)

    assert found.names == known_queues(valkey) == (QUEUE, A, B, C)
    assert found.hosts == ("a", "b", "c", "gone", "no-queue")
    assert found.gap is None


def test_nothing_but_names_of_ours_comes_out_of_what_others_wrote(valkey):
    hostile = ("bad name", "x@y", "a\x1b[2J", "", "n" * 65)
    for name in hostile:
        register(valkey, name)
        know(valkey, f"{len(name):016x}", name.replace("\x1b", "\\u001b"))
        valkey.sadd(keys.QUEUES_KNOWN, f"pi-jobs@{name}", name)
        valkey.sadd(queue_keys.QUEUES, f"rq:queue:pi-jobs@{name}", f"rq:queue:{name}")
    valkey.sadd(queue_keys.QUEUES, b"\xff", "rq:queue:emails", f"rq:queue:{THERE}")

    found = read_queues(valkey)

    assert (found.names, found.hosts, found.gap) == ((QUEUE, THERE), ("there",), None)


@pytest.mark.parametrize(
    ("broken", "queues", "gap"),
    [
        (keys.HOSTS_LIVE, (QUEUE, B, C), "registry: wrong-type"),
        (keys.QUEUES_KNOWN, (QUEUE, A, C), "queues:known: wrong-type"),
        (queue_keys.QUEUES, (QUEUE, A, B), "rq:queues: wrong-type"),
    ],
)
def test_a_source_that_cannot_be_read_is_named_and_the_others_count(valkey, broken, queues, gap):
    register(valkey, "a")
    valkey.sadd(keys.QUEUES_KNOWN, B)
    valkey.sadd(queue_keys.QUEUES, f"rq:queue:{C}")
    valkey.delete(broken)
    valkey.set(broken, "somebody else's")

    found = read_queues(valkey)

    assert (found.names, found.gap) == (queues, gap)
    assert read_status(valkey)["fleet"] == gap


def test_a_server_that_is_away_names_the_shared_queue_and_every_source():
    with redis.Redis.from_url("redis://127.0.0.1:1") as nobody:
        found = read_queues(nobody)

    assert (found.names, found.hosts) == ((QUEUE,), ())
    assert found.gap == "registry: no-connection; queues:known: no-connection; rq:queues: no-connection"


def test_sources_are_asked_side_by_side():
    """A server that hangs costs the time of one answer: the second question comes before the first's end."""
    with socket.create_server(("127.0.0.1", 0)) as deaf, ThreadPoolExecutor(1) as person:
        deaf.settimeout(5)
        client = redis.Redis(port=deaf.getsockname()[1], socket_timeout=20, retry=Retry(NoBackoff(), 0))
        answer = person.submit(read_queues, client)
        asked = [deaf.accept()[0] for _ in range(2)]
        deaf.close()
        for connection in asked:
            connection.close()

    assert (
        answer.result().gap
        == "registry: no-connection; queues:known: no-connection; rq:queues: no-connection"
    )


def test_a_name_that_is_given_twice_counts_once_and_each_wrong_one_is_named():
    assert named_queues([THERE, QUEUE, THERE]) == (THERE, QUEUE)

    with pytest.raises(ConfigurationError) as error:
        named_queues(["one", QUEUE, "pi-jobs@"])

    assert [problem.split(" is ")[0] for problem in error.value.problems] == ["'one'", "'pi-jobs@'"]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, ""),
        (1, "q0"),
        (2, "2 queues: q0, q1"),
        (1001, "1001 queues: q0, q1, q2, q3, q4, q5, q6, q7 and 993 more"),
    ],
)
def test_many_queues_are_counted_and_some_are_named(count, said):
    assert counted([f"q{number}" for number in range(count)]) == said
