"""A due instant becomes a job once, the job that a producer would have made, or nothing changes at all."""

from __future__ import annotations

import zlib

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from dispatch.ids import occurrence_id, rq_id
from dispatch.instants import epoch_ms
from dispatch.queue import fields
from dispatch.queue.firing import Due, Firing, Occurrence, Turn, TurnNotes
from dispatch.queue.new_jobs import CRON
from dispatch.queue.popper import Claimed
from dispatch.queue.producer import Producer
from dispatch.schedules import keys as schedule_keys
from runs.outcome import Outcome
from tests.dispatch.queuekit import Host, everything, hash_of, listed, now_ms
from tests.dispatch.schedules.schedulekit import DAY, HOUR, MINUTE, OTHER, QUEUE, START, schedule

TIDY = schedule()
DUE = START.replace(minute=5)
BEFORE = occurrence_id("tidy", instant=START.replace(minute=0))
JOB_ID = occurrence_id("tidy", instant=DUE)
NOTES = TurnNotes(enqueued="e", exists="x", waiting="w")
TABLE = [one(QUEUE) for one in (schedule_keys.upcoming, schedule_keys.definitions, schedule_keys.fired)]


def ms(instant):
    return epoch_ms(instant)


def put_in(client, queue=QUEUE, instant=DUE):
    client.zadd(schedule_keys.upcoming(queue), {"tidy": ms(instant)})
    client.hset(schedule_keys.definitions(queue), "tidy", TIDY.text())


def fire(
    client, *, queue=QUEUE, instant=DUE, seen=DUE, text=None, before=None, follows=True, next_ms=0, now=None
):
    due = Due(
        queue=queue,
        schedule_id="tidy",
        score=str(ms(seen)).encode(),
        definition=(text or TIDY.text()).encode(),
    )
    occurrence = Occurrence(
        job_id=occurrence_id("tidy", instant=instant),
        job=TIDY.job(),
        instant_ms=ms(instant),
        since_ms=ms(seen),
        follows=follows,
        next_ms=ms(instant + 5 * MINUTE) if next_ms == 0 else next_ms,
        before=before,
    )
    firing = Firing(client)
    (landed,) = firing.fire([firing.aim(due, occurrence, NOTES, now_ms=ms(now or instant))])
    if isinstance(landed, Exception):
        raise landed
    assert landed.is_sound
    return landed.turn


def left_by(client, step):
    """All that a step leaves, apart from the table; what the clock says is replaced by how it is said."""
    client.flushall()
    step()
    found = everything(client)
    for name in [*TABLE, schedule_keys.occurred("tidy")]:
        found.pop(name, None)
    job = found[f"rq:job:{rq_id(JOB_ID)}"]
    for name in (b"created_at", b"enqueued_at"):
        assert abs(fields.milliseconds(job[name].decode()) - now_ms(client)) < 60_000
        job[name] = len(job[name])
    job[b"firstQueued"] = len(job[b"firstQueued"])
    job[b"data"] = zlib.decompress(job[b"data"])
    return found, client.ttl(f"rq:job:{rq_id(JOB_ID)}")


def test_it_leaves_what_a_producer_would_have_left(valkey):
    def fired():
        put_in(valkey)
        assert fire(valkey) is Turn.ENQUEUED
        assert hash_of(valkey, JOB_ID)["firstQueued"] == str(ms(DUE))

    def produced():
        job = TIDY.job()
        Producer(valkey).enqueue(QUEUE, JOB_ID, job, keeping=CRON, scope_hash=job.scope_hash)

    assert left_by(valkey, fired) == left_by(valkey, produced)


def test_it_stands_behind_what_waits_and_is_taken_like_any_other(valkey):
    host = Host(valkey, queue=QUEUE)
    host.enqueue("local-1")
    put_in(valkey)
    fire(valkey)

    host.claim()
    claimed = host.claim()

    assert isinstance(claimed, Claimed)
    assert (claimed.job_id, claimed.attempts, claimed.job) == (JOB_ID, 1, TIDY.job())


def test_the_schedule_goes_on_in_the_same_step(valkey):
    put_in(valkey)
    fire(valkey)

    assert valkey.zscore(TABLE[0], "tidy") == ms(DUE + 5 * MINUTE)
    assert valkey.hget(TABLE[2], "tidy") == b"e"
    assert fire(valkey) is Turn.CHANGED
    assert len(listed(valkey, QUEUE)) == 1

    assert fire(valkey, instant=DUE + 5 * MINUTE, seen=DUE + 5 * MINUTE, next_ms=None) is Turn.ENQUEUED
    assert valkey.zscore(TABLE[0], "tidy") is None


@pytest.mark.parametrize(
    "seen",
    [{"seen": DUE - MINUTE}, {"text": schedule(flow="other").text()}],
    ids=["moved on", "edited"],
)
def test_what_is_not_as_it_was_read_is_left_alone(valkey, seen):
    put_in(valkey)
    before = everything(valkey)

    assert fire(valkey, **seen) is Turn.CHANGED
    assert everything(valkey) == before


def waiting(host):
    pass


def in_hand(host):
    host.claim()


def asleep(host):
    host.put_off(host.claim())


def started(host):
    host.start()


def finished(host):
    host.end(host.start())


def failed(host):
    host.end(host.start(), Outcome.FAILED)


def gone(host):
    host.client.delete(f"rq:job:{rq_id(BEFORE)}")


def no_hash(host):
    gone(host)
    host.client.set(f"rq:job:{rq_id(BEFORE)}", "x")


def elsewhere(host):
    host.client.hset(f"rq:job:{rq_id(BEFORE)}", "origin", OTHER)


@pytest.mark.parametrize(
    ("bring", "turn"),
    [(step, Turn.WAITING) for step in (waiting, in_hand, asleep)]
    + [(step, Turn.ENQUEUED) for step in (started, finished, failed, gone, no_hash, elsewhere)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_nothing_piles_up_behind_an_occurrence_that_has_not_begun(valkey, bring, turn):
    host = Host(valkey, queue=QUEUE)
    host.producer.enqueue(QUEUE, BEFORE, TIDY.job(), keeping=CRON)
    bring(host)
    put_in(valkey)

    assert fire(valkey, before=BEFORE) is turn
    assert valkey.exists(f"rq:job:{rq_id(JOB_ID)}") == (turn is Turn.ENQUEUED)
    assert valkey.hget(TABLE[2], "tidy") == turn.value[:1].encode()
    assert valkey.zscore(TABLE[0], "tidy") == ms(DUE + 5 * MINUTE)


@pytest.mark.parametrize("bring", [waiting, started, finished], ids=lambda step: step.__name__)
def test_an_instant_that_is_a_job_anywhere_is_not_enqueued_again(valkey, bring):
    host = Host(valkey, queue=OTHER)
    host.producer.enqueue(OTHER, JOB_ID, TIDY.job(), keeping=CRON)
    bring(host)
    put_in(valkey)

    assert fire(valkey) is Turn.EXISTS
    assert listed(valkey, QUEUE) == []
    assert (valkey.hget(TABLE[2], "tidy"), valkey.zscore(TABLE[0], "tidy")) == (
        b"x",
        ms(DUE + 5 * MINUTE),
    )


# Instants (from DUE) that are acted on in this order, each with whether it follows the one before and what
# becomes of it although its id is forgotten. It is as late as the latest of them.
STRETCHES = {
    "again": [(0 * HOUR, True, "enqueued"), (0 * HOUR, True, "exists")],
    "older than what went before": [
        (0 * HOUR, True, "enqueued"),
        (HOUR, True, "enqueued"),
        (0 * HOUR, True, "exists"),
    ],
    "passed over in a night": [
        (0 * HOUR, True, "enqueued"),
        (8 * HOUR, False, "enqueued"),
        (4 * HOUR, True, "exists"),
    ],
    "a month follows a month": [
        (0 * HOUR, True, "enqueued"),
        (31 * DAY, True, "enqueued"),
        (0 * HOUR, True, "exists"),
    ],
    "years that nobody saw": [
        (0 * HOUR, True, "enqueued"),
        (900 * DAY, False, "enqueued"),
        (HOUR, True, "enqueued"),
        (HOUR, True, "exists"),
    ],
    "the day before a far one": [
        (0 * HOUR, True, "enqueued"),
        (900 * DAY, False, "enqueued"),
        (900 * DAY - 23 * HOUR, True, "exists"),
        (900 * DAY - 25 * HOUR, True, "enqueued"),
    ],
}


@pytest.mark.parametrize("steps", STRETCHES.values(), ids=STRETCHES.keys())
def test_what_was_dealt_with_is_known_for_longer_than_its_id(valkey, steps):
    latest = max(by for by, _, _ in steps)
    for by, follows, became in steps:
        put_in(valkey, instant=DUE)
        assert fire(valkey, instant=DUE + by, seen=DUE, follows=follows, now=DUE + latest) == became, by
        valkey.delete(f"rq:job:{rq_id(occurrence_id('tidy', instant=DUE + by))}", f"rq:queue:{QUEUE}")
    assert valkey.pttl(schedule_keys.occurred("tidy")) > 399 * 86_400_000


@pytest.mark.parametrize(
    "ahead",
    [[10], [10, 11, 12], [10, 12, 13], [10, *range(20, 32, 2)]],
    ids=["for a moment", "for some hours", "and slow", "and slow again and again"],
)
@pytest.mark.parametrize("before", [[], [0]], ids=["new", "known"])
def test_what_a_clock_passed_over_that_was_hours_ahead_comes_all_the_same(valkey, before, ahead):
    became = {}
    for moment, hour in enumerate([*before, *ahead, *range(1, 15)]):
        follows = moment not in range(len(before), len(before) + len(ahead)) or hour - 1 in ahead
        # Twice: it is known although its id is forgotten.
        for _ in range(2):
            put_in(valkey)
            turn = fire(valkey, instant=DUE + hour * HOUR, follows=follows)
            became.setdefault(hour, []).append(turn.value)
            valkey.delete(f"rq:job:{rq_id(occurrence_id('tidy', instant=DUE + hour * HOUR))}")

    once = ["enqueued", "exists"]
    hours = {*before, *ahead, *range(1, 15)}
    assert became == {hour: once + ["exists"] * 2 * (hour in ahead and hour < 15) for hour in hours}


def test_it_comes_however_often_everybody_was_away_before(valkey):
    away = [20 * HOUR * time for time in range(-12, 1)]
    for by in [*away, 3 * HOUR]:
        put_in(valkey)
        assert fire(valkey, instant=DUE + by, follows=False) is Turn.ENQUEUED

    for hour in (1, 2):
        put_in(valkey)
        assert fire(valkey, instant=DUE + hour * HOUR) is Turn.ENQUEUED
    for by in away:
        valkey.delete(f"rq:job:{rq_id(occurrence_id('tidy', instant=DUE + by))}")
        put_in(valkey)
        assert fire(valkey, instant=DUE + by, now=DUE) is Turn.EXISTS


WRONG = [*TABLE, schedule_keys.occurred("tidy"), f"rq:queue:{QUEUE}", "rq:queues", "queues:known"]


@pytest.mark.parametrize("key", WRONG)
def test_a_key_of_another_type_stops_it_whole(valkey, key):
    put_in(valkey)
    valkey.delete(key)
    valkey.hset(key, "a", "b") if key.startswith("sched:occurred") else valkey.set(key, "x")
    before = everything(valkey)

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        fire(valkey)
    assert everything(valkey) == before


def test_a_full_server_refuses_it_whole(valkey):
    put_in(valkey)
    before = everything(valkey)
    valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            fire(valkey)
    finally:
        valkey.config_set("maxmemory", 0)
    assert everything(valkey) == before
