"""The jobs of a queue at one instant: each in one section, in its order; looking changes nothing."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dispatch.console.lookup import why_it_waits
from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.entries import Entry
from dispatch.queue.listing import read_queue, read_running
from dispatch.queue.place import find
from dispatch.queue.states import State, look
from dispatch.waits.holds import Holds
from runs.outcome import Outcome
from tests.dispatch.queuekit import JOB, QUEUE, Host, everything

FAR = 10**13
BOOT = "aaaa-00000001"


@pytest.fixture
def host(valkey):
    return Host(valkey)


def sleep(host, reason, until_ms=FAR):
    claimed = host.claim()
    host.steps.put_off(claimed, until_ms=until_ms, reason=reason)
    return claimed.job_id


def one_of_each(host):
    """0 ended, 1 runs, 2 in hand, 3 and 4 sleep, 5 and 6 are held, 7 and 8 wait."""
    host.enqueue(*(f"local-{number}" for number in range(9)))
    host.end(host.start(), Outcome.FAILED)
    host.start()
    host.claim()
    sleep(host, "pause-window", FAR)
    sleep(host, "cap", FAR - 5000)
    sleep(host, "wait", FAR - 1000)
    sleep(host, "wait", FAR - 9000)


def ids(section):
    return [entry.job_id for entry in section.entries]


SECTIONS = ("running", "waiting", "deferred", "held")


def shown(listing):
    return {name: ids(getattr(listing, name)) for name in SECTIONS}


def test_each_job_stands_in_one_section_in_its_order(valkey, host):
    one_of_each(host)
    before = everything(valkey)

    listing = read_queue(valkey, QUEUE, limit=10)

    assert shown(listing) == {
        "running": ["local-1", "local-2"],
        "waiting": ["local-7", "local-8"],
        "deferred": ["local-4", "local-3"],
        "held": ["local-5", "local-6"],
    }
    assert [getattr(listing, name).total for name in SECTIONS] == [2, 2, 2, 2]
    assert [entry.position for entry in listing.waiting.entries] == [1, 2]
    assert listing.beats == {BOOT: pytest.approx(listing.now_ms, abs=5000)}
    assert everything(valkey) == before


def test_an_entry_says_who_since_when_and_until_when(valkey, host):
    one_of_each(host)

    listing = read_queue(valkey, QUEUE, limit=10)
    started, in_hand = listing.running.entries
    asleep = listing.deferred.entries[0]

    assert (started.state, started.host, started.attempts) == (State.STARTED, "alpha", 2)
    assert started.token.startswith(f"{BOOT}/")
    assert (in_hand.state, in_hand.host, in_hand.since_ms) == (State.IN_HAND, "alpha", None)
    assert (asleep.state, asleep.reason, asleep.until_ms) == (State.SCHEDULED, "cap", FAR - 5000)
    for entry in (started, asleep, listing.waiting.entries[0]):
        assert listing.now_ms - 5000 < entry.since_ms <= listing.now_ms + 50
        assert listing.now_ms - 5000 < entry.first_queued_ms <= listing.now_ms


def test_few_are_shown_and_all_are_counted(valkey, host):
    one_of_each(host)

    listing = read_queue(valkey, QUEUE, limit=1)

    assert shown(listing) == {
        "running": ["local-1"],
        "waiting": ["local-7"],
        "deferred": ["local-4"],
        "held": ["local-5"],
    }
    assert [getattr(listing, name).total for name in SECTIONS] == [2, 2, 2, 2]


def test_who_runs_is_found_however_many_wait(valkey, host):
    one_of_each(host)
    other = Host(valkey, name="beta", host_id="bbbb", queue="pi-jobs@beta")
    other.enqueue("local-b", "local-c")
    other.start()

    running = [*read_running(valkey, QUEUE), *read_running(valkey, "pi-jobs@beta")]

    assert [(one.job_id, one.queue) for one in running] == [
        ("local-1", QUEUE),
        ("local-2", QUEUE),
        ("local-b", "pi-jobs@beta"),
    ]


def test_what_is_no_job_any_more_is_not_shown(valkey, host):
    names = keys.queue_keys(QUEUE)
    host.enqueue("local-1", "local-2", "local-3")
    ended, begun = host.start(), host.start()
    host.end(ended)
    # Left behind by tools and by crashes of older versions.
    valkey.zadd(names.started, {f"{ended.rq_id}:deadbeef": 1, f"{begun.rq_id}:deadbeef": 1, "gone:x": 1})
    valkey.lpush(names.jobs, "gone", ended.rq_id, begun.rq_id)
    valkey.zadd(names.scheduled, {"gone": 1, "local-3": 1})
    valkey.set(keys.job(b"other"), "no hash")
    valkey.rpush(names.jobs, "other")

    listing = read_queue(valkey, QUEUE, limit=10)

    assert shown(listing) == {"running": ["local-2"], "waiting": ["local-3"], "deferred": [], "held": []}
    assert listing.running.total == 1
    # The place counts what a worker would still have to drop.
    assert listing.waiting.entries[0].position == 4


def test_nothing_of_a_queue_that_nobody_used(valkey):
    listing = read_queue(valkey, QUEUE, limit=10)

    assert shown(listing) == {name: [] for name in SECTIONS}
    assert listing.beats == {}
    assert find(valkey, "local-1") is None


def test_a_job_that_moves_while_it_is_looked_at_is_seen_once_each_time(valkey, host):
    jobs = {f"local-{number}" for number in range(6)}
    host.enqueue(*sorted(jobs))
    client = type(valkey)(connection_pool=valkey.connection_pool)
    mover = Host(client, host_id="cccc")
    stop = threading.Event()

    def move():
        rounds = 0
        while not stop.is_set():
            mover.steps.give_back(mover.claim())
            mover.put_off(mover.claim(), 1)
            mover.steps.put_off(mover.claim(), until_ms=1, reason="wait")
            mover.promoter.promote([QUEUE])
            rounds += 1
        return rounds

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        try:
            for _ in range(300):
                found = shown(read_queue(valkey, QUEUE, limit=10)).values()
                assert sorted(job for section in found for job in section) == sorted(jobs)
        finally:
            stop.set()
        assert moving.result() > 5


def test_thousands_that_wait_sleep_and_are_held_are_listed_in_a_moment(valkey):
    """Every eleventh sleeper is not held."""
    names = keys.queue_keys(QUEUE)
    pipeline = valkey.pipeline(transaction=False)
    for number in range(9_900):
        job_id, is_held = f"s{number}", number % 11
        pipeline.hset(keys.job(b"w%d" % number), "status", "queued")
        pipeline.hset(keys.job(job_id.encode()), "status", "scheduled")
        pipeline.rpush(names.jobs, f"w{number}")
        pipeline.zadd(names.scheduled, {job_id: number})
        if is_held:
            pipeline.zadd(keys.waiters(QUEUE, "wait"), {job_id: number})
    pipeline.execute()

    began = time.monotonic()
    listing = read_queue(valkey, QUEUE, limit=1000)
    seconds = time.monotonic() - began

    assert [getattr(listing, name).total for name in SECTIONS] == [0, 9_900, 900, 9_000]
    assert ids(listing.waiting) == [f"w{number}" for number in range(1000)]
    assert ids(listing.deferred) == [f"s{number}" for number in range(0, 9_900, 11)]
    assert len(listing.held.entries) == 1000
    assert seconds < 1


@pytest.mark.parametrize("job_id", ["local-1", "repeat:x:1", "a_b", "\u00fc" * 60])
def test_a_job_is_found_by_its_id_and_by_the_form_that_rq_has(valkey, host, job_id):
    host.enqueue("first", job_id)

    found = [find(valkey, given) for given in (job_id, rq_id(job_id))]

    assert [(place.entry.job_id, place.entry.position, place.line) for place in found] == [(job_id, 2, 2)] * 2


@pytest.mark.parametrize("given", ["", "nobody", "a_3a", "x" * 300, "\udcff", "a_b c"])
def test_an_id_that_nobody_has_is_found_nowhere(valkey, host, given):
    host.enqueue("local-1")

    assert find(valkey, given) is None


def test_a_natural_id_comes_before_one_that_is_written_alike_for_rq(valkey, host):
    host.enqueue("a:b", "a_3ab")

    assert find(valkey, "a_3ab").entry.job_id == "a_3ab"
    assert find(valkey, "a:b").entry.job_id == "a:b"


def test_a_job_that_was_moved_and_not_yet_claimed_is_in_its_takers_hand(valkey):
    class KilledError(Exception):
        pass

    def kill(point):
        if point == "after move":
            raise KilledError

    host = Host(valkey, delays=kill)
    host.enqueue("local-1")
    with pytest.raises(KilledError):
        host.popper.wait(1)

    place = find(valkey, "local-1")

    assert (place.entry.state, place.boot, place.busy) == (State.IN_HAND, BOOT, 1)
    assert ids(read_queue(valkey, QUEUE, limit=1).running) == ["local-1"]


def test_a_queued_job_that_stands_in_no_list_is_in_nobodys_hand(valkey, host):
    host.enqueue("local-1")
    valkey.delete(keys.queue_keys(QUEUE).jobs)

    place = find(valkey, "local-1")

    assert (place.entry.state, place.boot) == (State.IN_HAND, None)


def test_a_place_tells_how_the_attempt_before_ended_and_where_the_last_one_ran(valkey, host):
    host.producer.enqueue(QUEUE, "local-1", JOB, scope_hash="abcd")
    host.steps.again(host.start(), delay_ms=1, record=b"{}", log_entry={"reason": "container-never-started"})

    place = find(valkey, "local-1")

    assert (place.last_reason, place.ran_on) == ("container-never-started", "alpha")
    assert (place.entry.attempt, place.entry.reason, place.entry.scope_hash) == (1, "retry", "abcd")
    assert place.job == JOB


@pytest.mark.parametrize("field", ["attempt", "since", "until", "firstQueued", "enqueued_at", "attemptLog"])
@pytest.mark.parametrize("value", [b"", b"\xff", b"-1", b"9" * 40, b"1e3", b"[[]]"])
def test_nonsense_in_a_hash_is_as_if_it_were_not_there(valkey, host, field, value):
    host.enqueue("local-1")
    host.put_off(host.claim(), FAR)
    valkey.hset(keys.job(b"local-1"), field, value)

    (entry,) = read_queue(valkey, QUEUE, limit=1).deferred.entries

    assert isinstance(entry, Entry)
    assert entry.attempt == 0
    assert find(valkey, "local-1").entry == entry


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), -1, 1e300])
def test_a_beat_at_no_instant_is_nobodys(valkey, score):
    Host(valkey).enqueue("local-1")
    valkey.zadd(f"takers:{QUEUE}", {"aaaa-00000001": score, "bbbb-00000001": 1000})

    assert read_queue(valkey, QUEUE, limit=1).beats == {"bbbb-00000001": 1000}
    why_it_waits(valkey, QUEUE)


def test_numbers_of_thousands_of_digits_are_none(valkey):
    Host(valkey).enqueue("local-1")
    for name in ("attempt", "attempts", "putBacks", "since", "until"):
        valkey.hset("rq:job:local-1", name, "9" * 5000)
    valkey.sadd("wait:held", "local-1")
    valkey.hset(
        "wait:job:local-1", mapping=dict.fromkeys(("since", "checks", "faults", "throttles"), "9" * 5000)
    )

    assert look(valkey, "local-1").since_ms is None
    assert Holds(valkey).read("local-1").checks == 0
    assert [job.checks for job in Holds(valkey).held()] == [0]
