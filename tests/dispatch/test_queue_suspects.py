"""Which queues another host must sweep: those with jobs that nobody alive has, and no others."""

from __future__ import annotations

import time

import pytest

from dispatch.queue import keys
from dispatch.queue.suspects import suspects
from dispatch.queue.timings import Timings
from tests.dispatch.queuekit import Host, age_beat, everything, hash_of

LATE = Timings().late
THEIRS = "pi-jobs@alpha"


@pytest.fixture
def host(valkey):
    host = Host(valkey, queue=THEIRS, timings=Timings())
    host.beats._beat(())
    host.enqueue("local-1", "local-2")
    return host


def silent(host):
    age_beat(host.client, host, 46)


def nearly_silent(host):
    age_beat(host.client, host, 44)


def unknown(host):
    host.client.delete(keys.queue_keys(THEIRS).takers)


def restarted(host):
    silent(host)
    Host(host.client, queue=THEIRS, boot_number=2).beats._beat(())


def in_hand(host):
    host.claim()


def popped(host):
    names = keys.queue_keys(THEIRS)
    host.client.blmove(names.jobs, names.taken(host.owner.boot), 1)


def ended_but_listed(host):
    host.start()
    host.client.hset("rq:job:local-1", "status", "finished")


def no_hash(host):
    host.start()
    host.client.delete("rq:job:local-1")
    host.client.set("rq:job:local-1", "x")


CASES = [
    ("waits", lambda _: None, silent, False),
    ("in hand, taker speaks", in_hand, nearly_silent, False),
    ("in hand, taker silent", in_hand, silent, True),
    ("popped, taker silent", popped, silent, True),
    ("in hand of an older boot", in_hand, restarted, True),
    ("started, taker speaks", Host.start, nearly_silent, False),
    ("started, taker silent", Host.start, silent, True),
    ("started by an older boot", Host.start, restarted, True),
    ("started, nobody known", Host.start, unknown, True),
    ("ended, nobody known", ended_but_listed, unknown, False),
    ("no hash, nobody known", no_hash, unknown, False),
    ("nothing, older boot", lambda host: host.end(host.start()), restarted, False),
]


@pytest.mark.parametrize(
    ("take", "leave", "found"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_queue_is_suspect_when_nobody_alive_has_its_jobs(valkey, host, take, leave, found):
    take(host)
    leave(host)
    before = everything(valkey)

    assert suspects(valkey, ["pi-jobs", THEIRS, "pi-jobs@beta"], late=LATE).queues == (
        (THEIRS,) if found else ()
    )
    assert everything(valkey) == before


def test_what_is_suspect_is_so_no_longer_when_it_is_swept(valkey, host):
    host.start()
    host.claim()
    age_beat(valkey, host, 100)
    peer = Host(valkey, name="beta", host_id="bbbb", timings=Timings())
    peer.clock.seconds += 1000

    swept = peer.sweeper.tick(suspects(valkey, [THEIRS], late=LATE).queues)

    assert (len(swept.put_back), len(swept.failed)) == (1, 1)
    assert hash_of(valkey, "local-2")["status"] == "queued"
    assert suspects(valkey, [THEIRS], late=LATE).queues == ()


def test_the_owner_that_nobody_knows_has_its_time_before_its_job_fails(valkey, host):
    host.start()
    unknown(host)
    peer = Host(valkey, name="beta", host_id="bbbb", timings=Timings())
    peer.clock.seconds += 1000
    found = []
    for silence in (0, 46, 91):
        queues = suspects(valkey, [THEIRS], late=LATE).queues
        found.append((queues, len(peer.sweeper.tick(queues).failed)))
        age_beat(valkey, host, silence or 44)

    assert found == [((THEIRS,), 0), ((), 0), ((THEIRS,), 0)]
    assert len(peer.sweeper.tick(suspects(valkey, [THEIRS], late=LATE).queues).failed) == 1


def test_a_thousand_queues_are_looked_at_in_one_step_of_some_milliseconds(valkey, host):
    host.claim()
    silent(host)
    queues = [f"pi-jobs@host{number}" for number in range(1000)]
    now = time.time() * 1000
    with valkey.pipeline() as pipeline:
        for queue in queues:
            pipeline.zadd(f"takers:{queue}", {"dead": 1, "alive": now + 60_000})
        pipeline.execute()
    assert suspects(valkey, [*queues, THEIRS], late=LATE).queues == (THEIRS,)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        suspects(valkey, [*queues, THEIRS], late=LATE)
        took.append(time.perf_counter() - began)

    assert min(took) < 0.1
    assert suspects(valkey, [], late=LATE).queues == ()
