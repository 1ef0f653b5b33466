"""What had an owner that is gone: back to the queue, or failed and recorded, once. Nobody alive is judged."""

from __future__ import annotations

import dataclasses
import time

import pytest

from dispatch.jobs import Malformed
from dispatch.queue import keys
from dispatch.queue.sweep import Swept
from dispatch.queue.timings import Timings
from dispatch.queue.transitions import Step
from runs.outcome import Reason
from tests.dispatch.queuekit import (
    QUEUE,
    Clock,
    Host,
    age_beat,
    assert_sound,
    everything,
    hash_of,
    listed,
    records,
    taken,
)

NAMES = keys.queue_keys(QUEUE)
# Production's, but for the clock, which the tests move.
TIMINGS = Timings()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def host(valkey, clock):
    host = Host(valkey, timings=TIMINGS, clock=clock)
    host.enqueue("local-1")
    host.beats.register()
    return host


@pytest.fixture
def peer(valkey, clock):
    """Another host, which has watched long enough to judge."""
    peer = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock)
    peer.beats.register()
    clock.seconds += 1000
    return peer


def restarted(host: Host) -> Host:
    return Host(host.client, boot_number=2, timings=TIMINGS, clock=host.clock)


def pop_and_forget(host: Host):
    """A pop whose thread died right after it."""
    claimed = host.claim()
    host.held.clear()
    return claimed


@pytest.mark.parametrize(
    ("silent_for", "swept"),
    [
        pytest.param(0, Swept(), id="just beaten"),
        pytest.param(44, Swept(), id="not yet late"),
        pytest.param(46, Swept(put_back=("local-1",)), id="late"),
        pytest.param(500, Swept(put_back=("local-1",)), id="gone"),
    ],
)
def test_what_a_silent_peer_had_in_hand_goes_back_when_it_is_late(valkey, host, peer, silent_for, swept):
    host.enqueue("local-2")
    host.claim()
    age_beat(valkey, host, silent_for)

    assert peer.sweeper.tick([QUEUE]) == swept

    assert_sound(valkey, ["local-1", "local-2"])
    if swept.put_back:
        assert listed(valkey) == ["local-1", "local-2"]
        assert hash_of(valkey, "local-1")["putBacks"] == "1"
        assert records(valkey, "bbbb") == []


@pytest.mark.parametrize(
    ("silent_for", "stalled"),
    [
        pytest.param(0, False, id="just beaten"),
        pytest.param(60, False, id="late"),
        pytest.param(89, False, id="not yet gone"),
        pytest.param(91, True, id="gone"),
    ],
)
def test_what_a_silent_peer_had_started_fails_when_it_is_gone(valkey, host, peer, silent_for, stalled):
    host.start()
    age_beat(valkey, host, silent_for)

    swept = peer.sweeper.tick([QUEUE])

    assert_sound(valkey, ["local-1"])
    assert [one.job_id for one in swept.failed] == (["local-1"] if stalled else [])
    assert hash_of(valkey, "local-1")["status"] == ("failed" if stalled else "started")
    expected = [{"job": "local-1", "cause": "stalled", "host": "alpha"}] if stalled else []
    assert records(valkey, "bbbb") == expected
    assert records(valkey) == []


def test_a_lost_job_says_who_had_it_and_since_when(valkey, host, peer):
    claimed = host.start()
    age_beat(valkey, host, 100)

    [lost] = peer.sweeper.tick([QUEUE]).failed

    assert (lost.cause, lost.host, lost.token) == (Reason.STALLED, "alpha", claimed.token)
    assert lost.worker_name == f"alpha.{host.owner.boot}.{QUEUE}"
    assert abs(lost.started_ms - time.time() * 1000) < 5000
    assert lost.job == claimed.job


def test_a_stall_leaves_nothing_of_the_execution_behind(valkey, host, peer):
    host.start()
    age_beat(valkey, host, 100)

    peer.sweeper.tick([QUEUE])

    left = [key.decode() for key in valkey.scan_iter("rq:*") if b"execution" in key or b"wip" in key]
    assert left == []


def test_a_moved_id_that_nobody_claimed_goes_back_too(valkey, host, peer):
    valkey.blmove(NAMES.jobs, NAMES.taken(host.owner.boot), 1)
    age_beat(valkey, host, 46)

    assert peer.sweeper.tick([QUEUE]).put_back == ("local-1",)
    assert_sound(valkey, ["local-1"])


def test_a_process_that_has_just_begun_to_watch_judges_no_peer(valkey, host, clock):
    host.start()
    host.enqueue("local-2")
    host.claim()
    age_beat(valkey, host, 1000)
    fresh = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock)

    swept = {}
    for seconds in (0, 44, 46, 89, 91):
        clock.seconds = fresh_start(fresh) + seconds
        swept[seconds] = fresh.sweeper.tick([QUEUE])

    found = {seconds: (one.put_back, [lost.job_id for lost in one.failed]) for seconds, one in swept.items()}
    assert found == {
        0: ((), []),
        44: ((), []),
        46: (("local-2",), []),
        89: ((), []),
        91: ((), ["local-1"]),
    }


def fresh_start(host: Host) -> float:
    return host.sweeper._watching_since


def test_after_an_outage_the_sweep_holds_still_for_as_long_as_it_would_judge(valkey, host, peer, clock):
    host.start()
    age_beat(valkey, host, 100)
    peer.sweeper.interrupted()

    at_once = peer.sweeper.tick([QUEUE])
    clock.seconds += 60
    later = peer.sweeper.tick([QUEUE])
    host.beats.beat([])
    clock.seconds += 60
    after_the_beat = peer.sweeper.tick([QUEUE])

    assert (at_once, later, after_the_beat) == (Swept(), Swept(), Swept())
    assert hash_of(valkey, "local-1")["status"] == "started"


def test_a_time_without_looks_counts_as_an_outage(valkey, host, peer):
    host.start()
    peer.sweeper.tick([QUEUE])
    peer.sweeper._looked_at_ms -= 100_000
    age_beat(valkey, host, 100)

    assert peer.sweeper.tick([QUEUE]) == Swept()


def test_a_set_of_takers_that_was_lost_fails_no_live_job(valkey, host, peer):
    claimed = host.start()
    valkey.delete(NAMES.takers)

    first = peer.sweeper.tick([QUEUE])

    assert first == Swept()
    assert valkey.zscore(NAMES.takers, host.owner.boot) is not None
    assert host.end(claimed) is Step.DONE


def test_an_owner_that_nobody_knows_is_judged_from_its_first_sight(valkey, host, peer):
    host.start()
    valkey.delete(NAMES.takers)
    peer.sweeper.tick([QUEUE])
    age_beat(valkey, host, 91)

    assert [one.job_id for one in peer.sweeper.tick([QUEUE]).failed] == ["local-1"]


def test_a_peer_that_speaks_between_look_and_verdict_keeps_its_jobs(valkey, host, clock):
    def speak(point):
        if point.startswith("before"):
            host.beats.beat([])

    peer = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock, delays=speak)
    clock.seconds += 1000
    host.start()
    host.enqueue("local-2")
    host.claim()
    age_beat(valkey, host, 1000)

    assert peer.sweeper.tick([QUEUE]) == Swept()
    assert_sound(valkey, ["local-1", "local-2"])


@pytest.mark.parametrize("moved_only", [True, False], ids=["moved", "claimed"])
def test_a_job_that_another_sweeper_puts_back_first_stands_in_the_queue_once(valkey, host, clock, moved_only):
    def be_faster(point):
        if point == "before put back" and not listed(valkey):
            other.sweeper.tick([QUEUE])

    other = Host(valkey, name="gamma", host_id="cccc", timings=TIMINGS, clock=clock)
    peer = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock, delays=be_faster)
    clock.seconds += 1000
    valkey.blmove(NAMES.jobs, NAMES.taken(host.owner.boot), 1) if moved_only else host.claim()
    age_beat(valkey, host, 1000)

    assert peer.sweeper.tick([QUEUE]) == Swept()
    assert_sound(valkey, ["local-1"])


def test_a_job_claimed_anew_between_look_and_verdict_stays_with_its_new_claim(valkey, host, clock):
    """A thread that died left the first claim; the verdict on it must not meet the second."""

    def claim_anew(point):
        if point == "before put back" and not anew:
            valkey.lrem(NAMES.taken(host.owner.boot), 1, "local-1")
            valkey.hdel(keys.job(b"local-1"), "taker")
            valkey.lpush(NAMES.jobs, "local-1")
            anew.append(host.claim())

    anew = []
    host.sweeper._verdicts._delays = claim_anew
    pop_and_forget(host)
    host.sweeper.tick([QUEUE])
    clock.seconds += 20

    assert host.sweeper.tick([QUEUE]) == Swept()
    assert host.begin(anew[0]) is Step.DONE


@pytest.mark.parametrize("move", ["end", "again"])
def test_a_job_that_leaves_between_look_and_verdict_is_not_failed(valkey, host, clock, move):
    def leave(point):
        if point == "before stall":
            getattr(host, move)(claimed)

    peer = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock, delays=leave)
    clock.seconds += 1000
    claimed = host.start()
    age_beat(valkey, host, 1000)

    assert peer.sweeper.tick([QUEUE]) == Swept()
    assert records(valkey, "bbbb") == []
    assert_sound(valkey, ["local-1"])


def test_two_sweepers_decide_once(valkey, host, peer, clock):
    third = Host(valkey, name="gamma", host_id="cccc", timings=TIMINGS, clock=clock)
    clock.seconds += 1000
    host.start()
    host.enqueue("local-2")
    host.claim()
    age_beat(valkey, host, 1000)

    swept = [peer.sweeper.tick([QUEUE]), third.sweeper.tick([QUEUE]), peer.sweeper.tick([QUEUE])]

    assert [len(one.failed) for one in swept] == [1, 0, 0]
    assert [one.put_back for one in swept] == [("local-2",), (), ()]
    assert len(records(valkey, "bbbb")) + len(records(valkey, "cccc")) == 1


def test_a_job_put_back_too_often_fails_with_a_record(valkey, host, peer):
    answers = []
    for _ in range(6):
        host.claim()
        age_beat(valkey, host, 46)
        answers.append(peer.sweeper.tick([QUEUE]))

    assert [len(one.put_back) for one in answers] == [1, 1, 1, 1, 1, 0]
    [lost] = answers[-1].failed
    assert (lost.job_id, lost.cause, lost.put_backs) == ("local-1", Reason.WORKER_LOST, 5)
    assert records(valkey, "bbbb") == [{"job": "local-1", "cause": "worker-lost", "host": "alpha"}]
    assert_sound(valkey, ["local-1"])
    assert hash_of(valkey, "local-1")["status"] == "failed"


def test_a_restart_takes_over_at_once_what_the_older_boot_had(valkey, host):
    host.start()
    host.enqueue("local-2", "local-3")
    host.claim()
    valkey.blmove(NAMES.jobs, NAMES.taken(host.owner.boot), 1)
    new = restarted(host)

    swept = new.sweeper.at_boot([QUEUE])

    assert sorted(swept.put_back) == ["local-2", "local-3"]
    assert [one.job_id for one in swept.failed] == ["local-1"]
    assert records(valkey) == [{"job": "local-1", "cause": "stalled", "host": "alpha"}]
    assert_sound(valkey, ["local-1", "local-2", "local-3"])


def test_a_restart_touches_nothing_of_a_peer_or_of_itself(valkey, host, peer):
    new = restarted(host)
    new.enqueue("local-2", "local-3")
    peer.start()
    new.start()
    new.claim()
    age_beat(valkey, peer, 1000)
    before = everything(valkey)

    assert new.sweeper.at_boot([QUEUE]) == Swept()
    assert everything(valkey) == before


def test_a_host_whose_id_begins_alike_is_another_host(valkey, host):
    other = Host(valkey, name="other", host_id="aaaa-bb", timings=TIMINGS)
    other.claim()
    alike = Host(valkey, name="alike", host_id="aaaa-b", timings=TIMINGS)

    assert alike.sweeper.at_boot([QUEUE]) == Swept()


@pytest.mark.parametrize("which", ["in hand", "moved", "started"])
def test_an_own_entry_that_no_run_holds_is_settled_after_the_grace(valkey, host, clock, which):
    match which:
        case "in hand":
            pop_and_forget(host)
        case "moved":
            valkey.blmove(NAMES.jobs, NAMES.taken(host.owner.boot), 1)
        case "started":
            host.start()
            host.held.clear()

    first = host.sweeper.tick([QUEUE])
    clock.seconds += 14
    early = host.sweeper.tick([QUEUE])
    clock.seconds += 1
    late = host.sweeper.tick([QUEUE])

    assert (first, early) == (Swept(), Swept())
    if which == "started":
        assert [one.cause for one in late.failed] == [Reason.STALLED]
    else:
        assert late.put_back == ("local-1",)
    assert_sound(valkey, ["local-1"])


def test_a_look_at_other_queues_in_between_begins_no_grace_anew(host, clock):
    pop_and_forget(host)
    host.sweeper.tick([QUEUE])
    clock.seconds += 15
    host.sweeper.tick(["pi-jobs@beta"])

    assert host.sweeper.tick([QUEUE]).put_back == ("local-1",)


def test_what_a_run_holds_stays_with_it_however_long(valkey, host, clock):
    host.enqueue("local-2")
    host.claim()
    host.start()
    before = everything(valkey)
    for _ in range(5):
        clock.seconds += 1000
        assert host.sweeper.tick([QUEUE]) == Swept()

    assert everything(valkey) == before


def test_an_entry_that_was_held_for_a_moment_begins_its_grace_anew(host, clock):
    claimed = pop_and_forget(host)
    host.sweeper.tick([QUEUE])
    clock.seconds += 14
    host.held.add(claimed.token)
    host.sweeper.tick([QUEUE])
    host.held.clear()
    host.sweeper.tick([QUEUE])
    clock.seconds += 14

    assert host.sweeper.tick([QUEUE]) == Swept()


def test_a_claim_that_comes_after_its_put_back_has_lost(valkey, host, clock):
    claimed = pop_and_forget(host)
    host.sweeper.tick([QUEUE])
    clock.seconds += 20
    host.sweeper.tick([QUEUE])

    assert host.begin(claimed) is Step.LOST
    assert_sound(valkey, ["local-1"])


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda client, key: client.delete(key), id="hash gone"),
        pytest.param(lambda client, key: (client.delete(key), client.set(key, "x")), id="no hash"),
        pytest.param(lambda client, key: client.hset(key, "status", "finished"), id="over"),
        pytest.param(lambda client, key: client.hset(key, "taker", "bbbb-00000001/9"), id="another's"),
    ],
)
def test_a_taken_entry_that_stands_for_nothing_goes_and_makes_no_job(valkey, host, peer, spoil):
    host.claim()
    spoil(valkey, keys.job(b"local-1"))
    kept = valkey.type(keys.job(b"local-1"))
    age_beat(valkey, host, 1000)

    assert peer.sweeper.tick([QUEUE]) == Swept()

    assert taken(valkey, host) == []
    assert listed(valkey) == []
    assert valkey.type(keys.job(b"local-1")) == kept


@pytest.mark.parametrize("status", ["finished", "failed", "canceled", None])
def test_an_entry_of_the_started_registry_whose_job_is_over_is_cleared(valkey, host, peer, status):
    host.start()
    if status:
        valkey.hset(keys.job(b"local-1"), "status", status)
    else:
        valkey.delete(keys.job(b"local-1"))

    assert peer.sweeper.tick([QUEUE]) == Swept()
    assert valkey.zcard(NAMES.started) == 0


def test_a_malformed_job_of_a_dead_taker_is_swept_like_any_other(valkey, host, peer):
    valkey.hset(keys.job(b"local-1"), "data", b"\x80\x04")
    host.start()
    age_beat(valkey, host, 100)

    [lost] = peer.sweeper.tick([QUEUE]).failed

    assert isinstance(lost.job, Malformed)


def test_a_queue_that_nobody_here_drains_is_swept_as_well(valkey, clock, peer):
    theirs = Host(valkey, queue="pi-jobs@alpha", timings=TIMINGS, clock=clock)
    theirs.beats.register()
    theirs.enqueue("local-9")
    theirs.start()
    age_beat(valkey, theirs, 100)

    assert [one.queue for one in peer.sweeper.tick([QUEUE, "pi-jobs@alpha"]).failed] == ["pi-jobs@alpha"]


def test_a_queue_of_the_dead_that_two_sweep_at_once_is_settled_once(valkey, clock):
    theirs = Host(valkey, queue="pi-jobs@gamma", name="gamma", host_id="cccc", timings=TIMINGS)
    theirs.enqueue(*(f"local-{number}" for number in range(2, 6)))
    theirs.start()
    for _ in range(3):
        theirs.claim()
    age_beat(valkey, theirs, 100)
    rival = Host(valkey, name="delta", host_id="dddd", timings=TIMINGS, clock=clock)
    swept = {}

    def meanwhile(point):
        # Right before the first step of the one, the other does all of it.
        if point.startswith("before") and "rival" not in swept:
            swept["rival"] = Swept()
            swept["rival"] = rival.sweeper.tick([theirs.queue])

    slow = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock, delays=meanwhile)
    clock.seconds += 1000
    swept["slow"] = slow.sweeper.tick([theirs.queue])

    assert (len(swept["rival"].put_back), len(swept["rival"].failed)) == (3, 1)
    assert swept["slow"] == Swept()
    assert listed(valkey, theirs.queue) == ["local-3", "local-4", "local-5"]
    stalled = [{"job": "local-2", "cause": "stalled", "host": "gamma"}]
    assert (records(valkey, "dddd"), records(valkey, "bbbb")) == (stalled, [])


@pytest.mark.parametrize(
    ("hours", "busy", "known"),
    [
        pytest.param(0.9, False, True, id="young"),
        pytest.param(1.1, False, False, id="old"),
        pytest.param(1.1, True, True, id="old with a started job"),
    ],
)
def test_a_dead_boot_is_forgotten_only_when_it_has_nothing(valkey, host, clock, hours, busy, known):
    if busy:
        host.start()
    age_beat(valkey, host, hours * 3600)
    watcher = Host(valkey, name="beta", host_id="bbbb", timings=TIMINGS, clock=clock)

    watcher.sweeper.tick([QUEUE])

    assert (valkey.zscore(NAMES.takers, host.owner.boot) is not None) is known


def test_more_entries_than_one_look_shows_come_back_look_by_look_and_in_order(valkey, host, clock):
    host.enqueue(*(f"local-{number}" for number in range(2, 8)))
    for _ in range(7):
        host.claim()
    age_beat(valkey, host, 1000)
    timings = dataclasses.replace(TIMINGS, sweep_most=3)
    peer = Host(valkey, name="beta", host_id="bbbb", timings=timings, clock=clock)
    clock.seconds += 1000

    counts = [len(peer.sweeper.tick([QUEUE]).put_back) for _ in range(4)]

    assert counts == [3, 3, 1, 0]
    assert listed(valkey) == [f"local-{number}" for number in range(1, 8)]
    assert_sound(valkey, listed(valkey))
