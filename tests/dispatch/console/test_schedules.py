"""How schedules stand, read out of a real Valkey that holds what workers of a fleet leave there."""

from __future__ import annotations

import json
import time

import pytest

from dispatch.console import fleet, schedules
from dispatch.console.findings_shown import WORDS
from dispatch.console.schedule_facts import LastRun
from dispatch.console.schedules_data import as_data
from dispatch.console.schedules_lines import lines
from dispatch.ids import occurrence_id, rq_id
from dispatch.instants import instant_of
from dispatch.queue import keys
from dispatch.queue.results import returned
from dispatch.schedules import keys as schedule_keys
from dispatch.schedules.notes import Acted
from dispatch.schedules.table import Table
from dispatch.schedules.ticker import Ticker
from hosts import keys as hosts_keys
from hosts import switches
from tests.dispatch.schedulekit import (
    ALPHA,
    BRAVO,
    HOUR_MS,
    MINUTE_MS,
    Bench,
    entry,
    hourly,
    no_runs,
    schedule,
)


@pytest.fixture
def bench(valkey, tmp_path):
    return Bench(valkey, tmp_path)


def started(bench, due):
    bench.client.hset(bench.enqueue("nightly", due), "status", "started")


def ended(bench, due, with_word="completed"):
    key = bench.enqueue("nightly", due)
    bench.client.hset(key, mapping={"status": "finished", "ended_at": "2026-01-01T00:00:00.000000Z"})
    bench.client.xadd(key.replace(b":job:", b":results:"), dict([returned(with_word)]))


def paused(bench, due):
    bench.enqueue("nightly", due)
    switches.pause(bench.client, [ALPHA], by="ann", reason="lunch")


def asleep(reason):
    """Have it sleep for this reason."""

    def happened(bench, due):
        changes = {"status": "scheduled", "reason": reason, "until": str(bench.now_ms + HOUR_MS)}
        bench.client.hset(bench.enqueue("nightly", due), mapping=changes)

    return happened


def previous_waits(bench, due):
    bench.enqueue("nightly", due - HOUR_MS)
    noted(bench, due, job=due - HOUR_MS, waited=True)


def noted(bench, due, *, job=None, waited=False):
    job_id = occurrence_id("nightly", instant=instant_of(due if job is None else job))
    acted = Acted(instant_ms=due, at_ms=due, skipped=0, job_id=job_id, waited=waited)
    bench.client.hset(schedule_keys.fired(ALPHA), "nightly", acted.text())


def gone(bench, due):
    bench.client.delete(hosts_keys.host_row("alpha"))
    bench.client.zadd(f"takers:{ALPHA}", {"x": bench.now_ms - HOUR_MS})
    bench.client.zremrangebyrank(f"takers:{ALPHA}", 1, -1)


def drained(bench, due):
    bench.enqueue("nightly", due)
    switches.drain(bench.client, "alpha", by="ann", reason="new disk")


def torn(bench, due):
    assert Table(bench.client, ALPHA).tear_down("nightly", stalls=4, at_ms=due - MINUTE_MS)


def overdue(bench, due):
    bench.client.zadd(schedule_keys.upcoming(ALPHA), {"nightly": due})


def elsewhere(bench, due):
    """Bravo has it too and ran it, its queue being nothing to this host's."""
    bench.host("bravo")
    bench.install(schedule(pattern=bench.entries[0]["on"]["pattern"]), queue=BRAVO)
    key = bench.enqueue("nightly", due, queue=BRAVO)
    bench.client.hset(key, mapping={"status": "finished", "ended_at": "2026-01-01T00:00:00.000000Z"})


def elsewhere_once(bench, due):
    """Bravo was faster with it, and does not have it any more; alpha's own job was the one before."""
    noted(bench, due, job=due - HOUR_MS)


def recorded(bench, due):
    job_id = occurrence_id("nightly", instant=instant_of(due))
    bench.runs = {"nightly": [LastRun(job_id=job_id, instant_ms=due, outcome="completed")]}


def put_in_just_now(bench, due):
    Table(bench.client, ALPHA).remove(["nightly"])
    bench.install(schedule(pattern=bench.entries[0]["on"]["pattern"]), age_ms=MINUTE_MS)


def without_file(bench, due):
    bench.client.hdel(hosts_keys.host_row("alpha"), "fpTriggers")


# What happened to the occurrence of 20 minutes ago: state, its reason, a part of the words.
STATES = {
    "nothing, and no worker acts on it": (overdue, "missed", "unknown", "has not acted on it"),
    "nothing, and nobody knows why": (lambda *_: None, "missed", "unknown", "nobody knows why"),
    "it runs": (started, "running", None, "runs"),
    "it ended": (ended, "ok", None, "ok"),
    "it was recorded": (recorded, "ok", None, "ok"),
    "it ran, and only the table knows": (noted, "ok", None, "ok"),
    "it ran on another host": (elsewhere, "ok", None, "ok"),
    "it ran on a host that has it no more": (elsewhere_once, "ok", None, "ok"),
    "paused": (paused, "missed", "paused", f"the queue {ALPHA} is paused by ann: lunch"),
    "drained": (drained, "missed", "draining", "is drained by ann: new disk"),
    "in line": (lambda bench, due: bench.enqueue("nightly", due), "missed", "in-line", "its turn has not"),
    "what it waits for itself": (asleep("wait"), "waiting", "wait", "its conditions are not met yet"),
    **{
        f"asleep: {reason}": (asleep(reason), "missed", reason, part)
        for reason, part in {
            "pause-window": "a pause window holds",
            "cap": "a cap is used up",
            "scope-busy": "its folder or repository is busy",
            "scope-busy-fleet": "as many jobs of its repository run",
            "retry": "it could not run and is tried again",
        }.items()
    },
    "asleep: what a later version knows": (asleep("moon"), "missed", "unknown", "the reason given is moon"),
    "the one before waits": (previous_waits, "missed", "previous-waits", "before it still waits (its turn"),
    "the host is gone": (gone, "missed", "host-gone", "the worker alpha, which alone takes jobs from"),
    "torn down": (
        torn,
        "missed",
        "torn-down",
        f"torn down on {ALPHA}: its jobs lost their worker 4 times within a day",
    ),
    "no triggers file": (without_file, "missed", "no-triggers-file", "has no triggers file any more"),
    "put in after it": (put_in_just_now, "ok", None, "nothing was due yet"),
}


@pytest.mark.parametrize("case", STATES.values(), ids=list(STATES))
def test_what_became_of_the_last_due_occurrence(case, bench):
    happened, state, reason, part = case
    due = hourly(bench, minutes_ago=20)
    happened(bench, due)

    line = bench.line()

    assert (line.state, line.verdict.reason) == (state, reason), line
    assert part in line.words
    assert line.is_alarm is (state == "missed")


def test_what_ended_is_told_with_how_it_ended(bench):
    ended(bench, hourly(bench), "over-budget")

    last = bench.line().last
    assert (last.outcome, last.reason, last.host) == ("policy", "over-budget", "alpha")


def a_run(bench, minutes_ago, outcome, reason="", **more):
    return LastRun(job_id="x", instant_ms=bench.passed(minutes_ago), outcome=outcome, reason=reason, **more)


# The last run at an instant, one that was started by hand: state and a part of words and remedy.
BAD = {
    "refused": ("policy", "provider-unconfigured", None, "policy", "was refused, prov", "such as ANTHROPIC"),
    "stopped": ("policy", "worker-abort", None, "policy", "its last run was stopped, w", "at its time limit"),
    "failed": ("failed", "stalled", None, "failed", "its last run failed, stalled", "Look at the folder"),
    "failed, nobody knows why": ("failed", "", None, "failed", "its last run failed", "`manage.py logs x`"),
    "mended by hand": ("policy", "over-budget", "completed", "ok", "ok", ""),
    "by hand neither": ("completed", "", "failed", "failed", "its last run failed", "--trigger nightly"),
    "of a later version": ("moon", "shine", None, "ok", "ok", ""),
}


@pytest.mark.parametrize("case", BAD.values(), ids=list(BAD))
def test_a_last_run_that_came_to_nothing_is_an_alarm_until_one_completes(case, bench):
    outcome, reason, by_hand, state, words, fix = case
    hourly(bench)
    runs = [a_run(bench, 20, outcome, reason)]
    runs += [a_run(bench, 10, by_hand, by_hand=True)] if by_hand else []
    bench.runs = {"nightly": runs}

    line = bench.line()

    assert (line.state, line.is_alarm) == (state, state != "ok")
    assert words in line.words
    assert fix in line.remedy
    assert line.verdict.standing == "done"


def test_it_stays_one_while_the_next_runs(bench):
    bench.runs = {"nightly": [a_run(bench, 80, "failed", "stalled")]}
    started(bench, hourly(bench))

    line = bench.line()

    assert (line.state, line.is_alarm) == ("failed", True)
    assert line.words.endswith(" runs")


def taken_over_late(bench, due):
    """Alpha, which had it, is gone; bravo has it since a minute."""
    gone(bench, due)
    bench.host("bravo")
    bench.install(schedule(pattern=bench.entries[0]["on"]["pattern"]), queue=BRAVO, age_ms=MINUTE_MS)


@pytest.mark.parametrize(
    ("queues", "words"),
    [
        ((ALPHA,), "the worker alpha, which alone takes jobs from"),
        ((ALPHA, BRAVO), "no worker of alpha or bravo is there"),
        ((ALPHA, BRAVO, "pi-jobs"), "no worker of alpha, bravo or the queue pi-jobs is there"),
    ],
)
def test_without_any_worker_it_is_an_alarm_before_anything_is_missed(queues, words, bench):
    bench.entries = [entry(pattern="5 * * * *")]
    for queue in queues:
        bench.install(schedule(pattern="5 * * * *"), queue=queue, age_ms=0)

    alone = bench.line()
    bench.host("bravo")
    bench.client.zadd("takers:pi-jobs", {"x": bench.now_ms})

    assert (alone.state, alone.is_alarm) == ("host-gone", True)
    assert words in alone.words
    assert "runworker" in alone.remedy
    assert bench.line().is_alarm is (len(queues) == 1)


def test_one_host_that_is_gone_is_no_reason_where_another_has_it(bench):
    taken_over_late(bench, due := hourly(bench))

    line = bench.line()

    assert (line.state, line.verdict.reason, line.verdict.instant_ms) == ("missed", "unknown", due)
    assert [one.queue for one in line.installed] == [BRAVO, ALPHA]


def test_one_queue_that_is_paused_is_no_reason_where_another_is_in_order(bench):
    hourly(bench)
    bench.host("bravo")
    bench.install(schedule(pattern=bench.entries[0]["on"]["pattern"]), queue=BRAVO)
    bench.client.zadd(schedule_keys.upcoming(BRAVO), {"nightly": bench.now_ms + HOUR_MS})
    switches.pause(bench.client, [ALPHA], by="ann", reason="lunch")

    assert bench.line().verdict.reason == "unknown"


@pytest.mark.parametrize("has_run", [False, True])
def test_of_each_minute_the_one_whose_grace_is_over_is_judged(has_run, bench):
    hourly(bench)
    bench.install(schedule(pattern="* * * * *"))
    # A minute may end while the test runs.
    either = [bench.passed(5), bench.passed(4)]
    for due in either if has_run else ():
        ended(bench, due)

    verdict = bench.line().verdict

    assert verdict.standing == ("done" if has_run else "missed")
    assert verdict.instant_ms in either


def test_what_a_ticker_leaves_is_read(bench):
    due = hourly(bench, minutes_ago=2)
    bench.client.zadd(schedule_keys.upcoming(ALPHA), {"nightly": due})

    (fired,) = Ticker(bench.client, [ALPHA], clock_ms=lambda: bench.now_ms).tick()

    waiting = bench.line()
    bench.client.delete(keys.job(rq_id(fired.job_id).encode()))
    assert (waiting.state, waiting.verdict.reason, waiting.verdict.instant_ms) == ("waiting", "in-line", due)
    # Ended so long ago that its id is forgotten, its record being another host's.
    assert (bench.line().state, bench.line().last.instant_ms) == ("ok", due)


def alone(bench):
    bench.client.delete(hosts_keys.HOSTS_LIVE)


def at_odds(bench):
    bench.host("bravo", fpCron="b" * 16)


# A schedule of the file that is in no table: what is told of it.
ABSENT = {
    "nobody has its folder": ({"folder": "/nowhere"}, lambda _: None, "unserved", "its folder is not here"),
    "hosts disagree": ({}, at_odds, "refused", "hosts have different schedules"),
    "no worker": ({}, alone, "host-gone", "no worker is there to take it over"),
    "not taken over": ({}, lambda _: None, "not-installed", "no worker has taken it over yet"),
    "no file there": (
        {},
        lambda bench: bench.host(fpTriggers=""),
        "no-triggers-file",
        "no worker has",
    ),
}


@pytest.mark.parametrize("ran_before", [False, True])
@pytest.mark.parametrize("case", ABSENT.values(), ids=list(ABSENT))
def test_a_schedule_that_no_table_has_is_told_with_why(case, ran_before, bench):
    run, happened, reason, part = case
    bench.entries = [entry(pattern="* * * * *", **run)]
    bench.host()
    happened(bench)
    if ran_before:
        recorded(bench, bench.passed(30))

    line = bench.line()

    # Since when it is due is known only of one that has run.
    assert line.state == ("missed" if ran_before else reason)
    assert line.is_alarm
    assert part in line.words
    assert line.upcoming == ()


KEPT = {"edited": 4, "same": 6, "zombie": 7}


def test_what_the_file_has_otherwise_and_what_only_tables_have_is_told(bench):
    bench.entries = [entry("edited", "5 * * * *"), entry("same", "6 * * * *")]
    bench.host(fpTriggers="f" * 16)
    bench.install(*(schedule(name, f"{minute} * * * *") for name, minute in KEPT.items()))

    overview = bench.look(upcoming=3)

    told = {line.id: (line.pattern, line.differs, line.authored is None) for line in overview.lines}
    assert told == {
        "edited": ("4 * * * *", True, False),
        "same": ("6 * * * *", False, False),
        "zombie": ("7 * * * *", False, True),
    }
    assert overview.differs_on == ("alpha",)
    assert all(len(line.upcoming) == 3 for line in overview.lines)
    assert all(instant_of(line.upcoming[0]).minute == int(line.pattern.split()[0]) for line in overview.lines)


HOSTILE = {
    "no definition": (schedule_keys.definitions(ALPHA), "nightly", b"\xff\xfe"),
    "another's definition": (schedule_keys.definitions(ALPHA), "nightly", schedule("other").text()),
    "a bomb": (schedule_keys.definitions(ALPHA), "nightly", b"[" * 100_000),
    "an id of control characters": (schedule_keys.definitions(ALPHA), b"\x1b[31m\xff", schedule("x").text()),
    "an id that is too long": (schedule_keys.definitions(ALPHA), "x" * 5000, schedule("x").text()),
    "since never": (schedule_keys.since(ALPHA), "nightly", b"nan"),
    "since for ever": (schedule_keys.since(ALPHA), "nightly", b"-9" * 400),
    "no note": (schedule_keys.fired(ALPHA), "nightly", b'{"instant": 1e999}'),
    "a note of another's job": (
        schedule_keys.fired(ALPHA),
        "nightly",
        json.dumps({"instant": 1, "at": 1, "skipped": 0, "job": "repeat:other:999999999999999"}),
    ),
    "a note of an endless job": (
        schedule_keys.fired(ALPHA),
        "nightly",
        json.dumps({"instant": 1, "at": 1, "skipped": 0, "job": f"repeat:nightly:{'9' * 15}"}),
    ),
    "no tear": (schedule_keys.torn(ALPHA), "ghost", b"[]"),
}


@pytest.mark.parametrize("case", HOSTILE.values(), ids=list(HOSTILE))
def test_what_peers_write_into_a_table_hides_nothing_else(case, bench):
    key, field, value = case
    hourly(bench)
    bench.install(schedule("nightly", bench.entries[0]["on"]["pattern"]), schedule("other", "5 * * * *"))
    bench.client.hset(key, field, value)

    overview = bench.look()

    assert {"nightly", "other"} <= {line.id for line in overview.lines}
    assert all(line.id.isprintable() and len(line.id) < 200 for line in overview.lines)
    assert all(part.isprintable() for part in lines(overview, marks=WORDS, columns=100))
    json.dumps(as_data(overview))


@pytest.mark.parametrize("name", ["definitions", "upcoming", "since", "torn", "fired"])
def test_a_key_of_another_type_costs_one_table(name, bench):
    hourly(bench)
    bench.host("bravo")
    bench.install(schedule("other", "5 * * * *"), queue=BRAVO)
    key = getattr(schedule_keys, name)(ALPHA)
    bench.client.delete(key)
    bench.client.set(key, "x")

    overview = bench.look()

    assert {look.queue.queue: look.unreadable for look in overview.tables if look.unreadable} == {
        ALPHA: "wrong-type"
    }
    assert {line.id for line in overview.lines} == {"nightly", "other"}


JOBS = {
    "another type": lambda client, key: (client.delete(key), client.set(key, "x")),
    "a queue of nobody's": lambda client, key: client.hset(key, "origin", b"\xff\x00evil"),
    "no state of ours": lambda client, key: client.hset(key, "status", b"\xff"),
    "no numbers": lambda client, key: client.hset(
        key, mapping={"status": "scheduled", "until": "-1e9", "since": "x" * 4000, "cause": "\x1b[0m:day"}
    ),
}


@pytest.mark.parametrize("spoil", JOBS.values(), ids=list(JOBS))
def test_what_peers_write_into_a_job_breaks_nothing(spoil, bench):
    spoil(bench.client, bench.enqueue("nightly", hourly(bench)))

    overview = bench.look()

    assert [line.id for line in overview.lines] == ["nightly"]
    assert all(part.isprintable() for part in lines(overview, marks=WORDS, columns=100))


@pytest.fixture
def waits(monkeypatch):
    """How often an answer was waited for, each time that something was sent."""
    import redis

    sent = []
    plain = redis.Connection.send_packed_command

    def counted(self, command, *args, **more):
        sent.append(1)
        return plain(self, command, *args, **more)

    for kind in (redis.Connection, redis.UnixDomainSocketConnection):
        monkeypatch.setattr(kind, "send_packed_command", counted)
    return sent


@pytest.mark.parametrize(("count", "hosts"), [(1, 1), (2000, 1), (1, 200)])
def test_many_cost_the_round_trips_of_one_and_hardly_a_second(count, hosts, bench, waits):
    # The server then has the scripts, whichever test is the first.
    schedules.read(bench.client, fleet.read(bench.client), bench.file, no_runs)
    bench.entries = [entry(f"s{number}", f"{number % 60} {number % 24} * * *") for number in range(count)]
    bench.host()
    for number in range(hosts):
        bench.host(f"h{number}")
    made = [schedule(one["on"]["id"], one["on"]["pattern"]) for one in bench.entries]
    bench.install(*made)
    bench.install(made[0], queue="pi-jobs@h0")
    file = bench.file
    waits.clear()
    began = time.process_time()

    found = fleet.read(bench.client)
    overview = schedules.read(bench.client, found, file, no_runs)

    # Of this process, however busy the machine is.
    took = time.process_time() - began
    assert len(waits) <= 9
    assert len(overview.lines) == count
    assert took < 2
