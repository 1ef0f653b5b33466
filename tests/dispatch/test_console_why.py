"""Why is it not running: a true answer for every state, in the same words wherever it is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.console import lookup, queue_shown, why_shown
from dispatch.console.instants import ahead, span, stamp
from dispatch.console.obstacles import QueueFacts
from dispatch.console.standing import Facts
from dispatch.console.waiting import SLEEPS
from dispatch.console.why import explain
from dispatch.queue import keys
from dispatch.queue.entries import Entry
from dispatch.queue.states import State
from dispatch.queue.waiters import WaitReason
from dispatch.waits.conditions import read as conditions_of
from dispatch.waits.holds import Hold, Holds, Waiter
from hosts import switches
from hosts.switches import PauseFlag
from runs.outcome import Outcome, Reason
from tests.dispatch.queuekit import JOB, QUEUE, Host, age_beat, now_ms

NOW = 1_000_000_000_000
BOOT = "00112233445566aa-00000001"
LIVES = QueueFacts(queue=QUEUE, now_ms=NOW, beats={BOOT: NOW - 44_000})
SILENT = replace(LIVES, beats={BOOT: NOW - 50_000})
FLAG = PauseFlag(by="me@here", reason="lunch", since_ms=NOW - 1000, until_ms=NOW + 60_000)
PAUSED = replace(LIVES, own=FLAG)
FLEET = replace(PAUSED, fleet=replace(FLAG, reason="", until_ms=None))
HELD = Hold(since_ms=NOW - 90_000, checks=12, faults=2, throttles=0)
STARVED = Hold(since_ms=NOW - 90_000, checks=0, faults=0, throttles=1)
PROFILES = conditions_of([{"profile": "green"}, {"profile": "quiet"}])
AFTER = conditions_of([{"after": "2001-09-09T01:47:40Z"}, {"profile": "green"}])


def entry(state, **more):
    known = {"since_ms": NOW - 4000, "first_queued_ms": NOW - 60_000, "attempts": 2}
    return Entry(job_id="local-1", queue=QUEUE, state=state, **{**known, **more})


def asleep(reason, until_ms=NOW + 5000, **more):
    return entry(State.SCHEDULED, reason=reason, until_ms=until_ms, **more)


def other(number, state=State.STARTED):
    return Entry(job_id=f"local-{number}", queue=QUEUE, state=state, host="beta")


QUEUED = entry(State.QUEUED, position=3)
IN_HAND = entry(State.IN_HAND, host="alpha", since_ms=None)
STARTED = entry(State.STARTED, host="alpha", token=f"{BOOT}/7")


def case(name, entry, queue, reason, says, ends, **facts):
    return pytest.param(Facts(entry=entry, queue=queue, **facts), reason, says, ends, id=name)


LATER = replace(LIVES, now_ms=NOW + 60_000, beats={BOOT: NOW + 60_000})
CASES = [
    case(
        *(
            "in line",
            QUEUED,
            LIVES,
            "in-line",
            "It is behind 2 others in line (of this queue 10 jobs wait, 4 run or are in hand).",
        ),
        *("a slot is free",),
        line=10,
        busy=4,
    ),
    case(
        *("next", entry(State.QUEUED, position=1), LIVES, "in-line"),
        *("It is next in line (of this queue 1 job waits, 1 runs or is in hand).", "A worker takes it"),
        line=1,
        busy=1,
    ),
    case(
        "queue paused",
        QUEUED,
        PAUSED,
        "queue-paused",
        "The queue pi-jobs is paused by me@here: lunch.",
        "`manage.py resume pi-jobs` ends that",
    ),
    case(
        *("fleet paused", QUEUED, FLEET, "fleet-paused", "The whole fleet is paused by me@here."),
        "`manage.py resume --fleet-only` ends that",
    ),
    case(
        "no worker", QUEUED, SILENT, "no-worker", "No worker is there to take jobs from pi-jobs.", "runworker"
    ),
    case("in hand", IN_HAND, LIVES, "being-checked", "the worker alpha, at the checks", "moment", boot=BOOT),
    case(
        *(
            "in hand of a silent worker",
            IN_HAND,
            SILENT,
            "worker-silent",
            "alpha, which has been silent for 50 s",
        ),
        *("puts it back",),
        boot=BOOT,
    ),
    case("in no list", IN_HAND, LIVES, "not-in-line", "stands in no list", "Nobody will run it"),
    case(
        "window",
        asleep("pause-window"),
        LIVES,
        "pause-window",
        "A pause window holds.",
        "when the window ends",
    ),
    case("cap", asleep("cap"), LIVES, "cap", "A cap is used up.", "`manage.py budget` shows"),
    *(
        case(cause, asleep("cap", cause=cause), LIVES, "cap", says, f"{freed}; `manage.py budget` shows")
        for cause, says, freed in (
            ("over-budget:week", "The cap of starts a week is reached.", "--set weeklyCap=N`)"),
            (
                *("soft-hold:day", "What the soft hold leaves free of the cap of starts a day is spent."),
                (
                    "the soft hold is raised or removed (`manage.py settings`, softHoldPct), or the cap"
                    " raised (dailyCap)"
                ),
            ),
            (
                *("scope-cap:month", "The cap of its folder or repository, starts a month, is reached."),
                "it is raised (PI_SCOPED_LIMITS_FILE)",
            ),
            ("daily-token-cap:day", "The cap of tokens a day is reached.", "--set dailyTokenCap=N`)"),
            ("scope-cap:moon", "A cap is used up.", "the cap is raised"),
            ("moon:day", "A cap is used up.", "the cap is raised"),
        )
    ),
    case(
        "folder", asleep("scope-busy"), LIVES, "scope-busy", "folder or repository is busy.", "is woken when"
    ),
    case(
        *("folder of a job", asleep("scope-busy"), LIVES, "scope-busy"),
        *("is busy: job local-2 runs on the worker beta.", "is woken when"),
        holders=[other(2)],
    ),
    case(
        *("repository of many", asleep("scope-busy-fleet"), LIVES, "scope-busy-fleet"),
        *(
            "as its limit allows: job local-2 is in the hand of the worker beta, job local-3 runs",
            "looks again",
        ),
        holders=[other(2, State.IN_HAND), other(3), other(4), other(5)],
    ),
    case(
        *("retry", asleep("retry", attempt=1), LIVES, "retry"),
        *("Attempt 1 of 2 could not run (container-never-started); it is tried again.", "by itself"),
        last_reason="container-never-started",
    ),
    case("held", asleep("wait"), LIVES, "wait", "It is held until its conditions say go.", "asked again"),
    case(
        *("held by checks", asleep("wait"), LIVES, "wait"),
        *(
            "green, quiet say go; asked 12 times in 1 min 30 s; a check could not tell the last 2 times.",
            "refused when",
        ),
        hold=HELD,
        conditions=PROFILES,
    ),
    case(
        *(
            "held without a check",
            asleep("wait"),
            LIVES,
            "wait",
            "say go; no slot for a check was free the last time.",
            "refused",
        ),
        hold=STARVED,
        conditions=PROFILES,
    ),
    case(
        *("held by each of its bounds", asleep("wait"), LIVES, "wait"),
        *(
            (
                "asked once in 1 min 30 s; a check could not tell the last time; no slot for a check was free"
                " the last 3 times."
            ),
            "refused",
        ),
        hold=replace(STARVED, checks=1, faults=1, throttles=3),
        conditions=PROFILES,
    ),
    case(
        *("held until an instant", asleep("wait"), LIVES, "wait"),
        *("not to start before 2001-09-09 01:47:40 UTC.", "and held until green says go."),
        conditions=AFTER,
    ),
    case(
        *("held after an instant", asleep("wait", NOW + 95_000), LATER, "wait"),
        *("until green says go.", "refused"),
        conditions=AFTER,
    ),
    case("of a later version", asleep("moon"), LIVES, "moon", "The reason given is moon.", "wakes by itself"),
    case(
        "due",
        asleep("cap", NOW),
        LIVES,
        "due",
        "It slept (a cap is used up), and its time has",
        "back to the front",
    ),
    case(
        *("due, of a cap", asleep("cap", NOW, cause="scope-cap:day"), LIVES, "due"),
        *("It slept (the cap of its folder or repository, starts a day, is reached)", "back to the front"),
    ),
    case(
        "due, no worker",
        asleep("cap", NOW),
        SILENT,
        "no-worker",
        "no worker is there to bring it back",
        "Start one",
    ),
    case("not yet due", asleep("cap", NOW + 1), LIVES, "cap", "A cap is used up.", "raised"),
    case(
        *(
            "runs",
            STARTED,
            LIVES,
            "running",
            "It runs on the worker alpha in container pi-job-x.",
            "logs local-1",
        ),
        boot=BOOT,
        container="pi-job-x",
    ),
    case("silent", STARTED, SILENT, "worker-silent", "silent for 50 s", "After 1 min 30 s", boot=BOOT),
    case("owner unknown", STARTED, replace(LIVES, beats={}), "running", "It runs on", "logs", boot=BOOT),
    case(
        *(
            "completed",
            entry(State.FINISHED),
            LIVES,
            "completed",
            "The agent ran",
            "`manage.py logs local-1` on gamma",
        ),
        ended_with="completed",
        ran_on="gamma",
    ),
    case(
        *("refused", entry(State.FINISHED), LIVES, "over-budget", "A rule said no"),
        "run it again. With PI_CAP_ACTION=park such a job sleeps instead. Its record stands in the console's",
        ended_with="over-budget",
    ),
    case(
        "failed",
        entry(State.FAILED),
        LIVES,
        "stalled",
        "Its worker vanished",
        "list of runs",
        ended_with="stalled",
    ),
    case("failed, no word", entry(State.FAILED), LIVES, "failed", "It could not run", "list of runs"),
    case("foreign", entry(State.OTHER), LIVES, "foreign-state", "none of ours", "Nobody will run it"),
]


@pytest.mark.parametrize(("facts", "reason", "says", "ends"), CASES)
def test_every_state_has_its_answer(facts, reason, says, ends):
    found = explain(facts)

    assert found.reason == reason
    assert says in found.sentence
    assert ends in found.remedy
    assert found.notes == () or reason.endswith(("paused", "no-worker"))
    assert why_shown.as_data(found)["reason"] == reason
    assert all(line.isprintable() for line in why_shown.lines(found))


def test_a_sleeper_is_told_that_no_worker_is_there():
    found = explain(Facts(entry=asleep("pause-window"), queue=SILENT))

    assert "no worker is there" in " ".join(found.notes)


def test_every_reason_to_sleep_has_its_words():
    assert set(SLEEPS) == set(WaitReason)


@pytest.mark.parametrize(
    ("facts", "until_ms"),
    [
        pytest.param(Facts(entry=QUEUED, queue=PAUSED), NOW + 60_000, id="the pause"),
        pytest.param(Facts(entry=QUEUED, queue=FLEET), None, id="a pause without an end"),
        pytest.param(Facts(entry=asleep("cap"), queue=LIVES), NOW + 5000, id="the sleep"),
        pytest.param(Facts(entry=STARTED, queue=LIVES, deadline_ms=NOW + 9), NOW + 9, id="the container"),
        pytest.param(Facts(entry=STARTED, queue=LIVES), None, id="no container yet"),
    ],
)
def test_the_end_is_that_of_what_stands_in_the_way(facts, until_ms):
    assert explain(facts).until_ms == until_ms


@pytest.mark.parametrize(
    ("reason", "raised"),
    [
        (Reason.OVER_BUDGET, "dailyCap=N`, weeklyCap=N or monthlyCap=N"),
        (Reason.SOFT_HOLD, "raise or remove the soft hold (`manage.py settings --set softHoldPct=N`"),
        (Reason.SCOPE_CAP, "in the file of PI_SCOPED_LIMITS_FILE"),
        (Reason.DAILY_TOKEN_CAP, "`manage.py settings --set dailyTokenCap=N`"),
    ],
)
def test_what_a_cap_refused_has_a_next_step(reason, raised):
    found = explain(Facts(entry=entry(State.FINISHED), queue=LIVES, ended_with=reason))

    assert [
        part
        for part in (
            "`manage.py budget` shows",
            raised,
            "run it again",
            "PI_CAP_ACTION=park",
            "list of runs.",
        )
        if part not in found.remedy
    ] == []


@pytest.mark.parametrize("job", [asleep("cap"), IN_HAND])
def test_a_job_that_would_then_meet_a_pause_says_so(job):
    found = explain(Facts(entry=job, queue=PAUSED, boot=BOOT))

    assert found.notes == (
        "Besides, the queue pi-jobs is paused by me@here: lunch; `manage.py resume pi-jobs` ends that.",
    )


@pytest.mark.parametrize(("put_backs", "words"), [(1, "once"), (2, "2 times")])
def test_a_job_that_cost_workers_says_so(put_backs, words):
    found = explain(Facts(entry=replace(QUEUED, put_backs=put_backs), queue=LIVES))

    assert found.notes == (f"A worker was lost with it in hand {words}.",)


def test_the_lines_of_an_answer():
    facts = Facts(
        entry=asleep("retry", NOW + 245_000, attempt=1), queue=LIVES, last_reason="container-never-started"
    )

    assert why_shown.lines(explain(facts)) == [
        "Job local-1 is deferred on pi-jobs: retry",
        "Attempt 1 of 2 could not run (container-never-started); it is tried again.",
        "It is tried again by itself.",
        "  since    2001-09-09 01:46:36 UTC, 4 s ago",
        "  until    2001-09-09 01:50:45 UTC, in 4 min 5 s",
        "  enqueued 2001-09-09 01:45:40 UTC, 1 min ago",
        "  attempt  2 of 2",
    ]


# Out of Valkey.


@pytest.fixture
def host(valkey):
    host = Host(valkey, host_id="00112233445566aa")
    host.beats.register()
    return host


def enqueue(host, job_id, **more):
    host.producer.enqueue(host.queue, job_id, more.pop("job", JOB), **more)


def why(client, job_id="local-1"):
    return why_shown.as_data(lookup.why(client, job_id))


def test_a_busy_folder_names_the_job_that_has_it_wherever_that_runs(valkey, host):
    enqueue(host, "local-1", scope_hash="abcd")
    claimed = host.claim()
    elsewhere = Host(valkey, name="beta", host_id="bb" * 8, queue="pi-jobs@beta")
    enqueue(elsewhere, "local-2", scope_hash="abcd")
    enqueue(elsewhere, "local-3", scope_hash="ef01")
    enqueue(elsewhere, "local-4", scope_hash="abcd")
    for _ in range(2):
        elsewhere.start()
    elsewhere.claim()
    host.put_off(claimed)

    found = why(valkey)

    assert (found["reason"], found["holders"]) == ("scope-busy", ["local-2"])
    assert "job local-2 runs on the worker beta" in found["sentence"]


def test_a_folder_that_nobody_runs_in_may_be_had_by_who_is_in_hand(valkey, host):
    for job_id in ("local-1", "local-2", "local-3"):
        enqueue(host, job_id, scope_hash=None if job_id == "local-3" else "abcd")
    claimed = host.claim()
    host.claim()
    host.claim()
    host.put_off(claimed)

    assert why(valkey)["holders"] == ["local-2"]


def test_of_a_scope_that_nobody_wrote_down_no_holder_is_told(valkey, host):
    host.enqueue("local-1", "local-2")
    claimed = host.claim()
    host.start()
    host.steps.put_off(claimed, until_ms=NOW * 5, reason="scope-busy")

    assert why(valkey)["holders"] == []


def test_a_held_job_tells_its_hold_and_its_conditions(valkey, host):
    waits = replace(JOB, wait_for=({"after": "2001-09-09T01:46:40Z"}, {"profile": "green"}))
    enqueue(host, "local-1", job=waits)
    claimed = host.claim()
    now = now_ms(valkey)
    holds = Holds(valkey)
    waiter = Waiter(job_id="local-1", target="local-1", label="green", identity=None)
    holds.record(waiter, now_ms=now - 7000, until_ms=now + 60_000)
    holds.count_check("local-1", token=claimed.token, fault=True)
    host.steps.put_off(claimed, until_ms=now + 60_000, reason="wait")

    found = why(valkey)

    assert found["hold"] == {
        "since": now - 7000,
        "after": NOW,
        "profiles": ["green"],
        "checks": 1,
        "faults": 1,
        "throttles": 0,
    }
    assert found["sentence"].startswith(
        "It is held until green says go; asked once in 7 s; a check could not"
    )


def test_a_running_job_tells_its_container_and_when_that_ends_itself(valkey, host):
    host.enqueue("local-0", "local-1")
    host.start()
    host.steps.begin(host.claim(), container="pi-job-x", deadline_ms=NOW)

    found = why(valkey)

    assert (found["host"], found["container"], found["until"]) == ("alpha", "pi-job-x", NOW)


@pytest.mark.parametrize(
    ("end", "reason", "ran_on"),
    [
        pytest.param(lambda host: host.end(host.start()), "completed", "alpha", id="completed"),
        pytest.param(lambda host: host.end(host.start(), Outcome.FAILED), "failed", "alpha", id="failed"),
        pytest.param(lambda host: host.refuse(host.claim()), "over-budget", None, id="refused"),
    ],
)
def test_an_ended_job_tells_how_and_where(valkey, host, end, reason, ran_on):
    enqueue(host, "local-1")
    end(host)

    found = why(valkey)

    assert (found["reason"], found["host"]) == (reason, ran_on)
    assert now_ms(valkey) - 5000 < found["since"] <= now_ms(valkey) + 50


def one_of_each(host):
    for number in range(8):
        enqueue(host, f"local-{number}", scope_hash=f"{number:04x}")
    host.start()
    host.claim()
    for reason in (WaitReason.CAP, WaitReason.WAIT):
        host.steps.put_off(host.claim(), until_ms=NOW * 5, reason=reason)
    host.steps.put_off(host.claim(), until_ms=1, reason=WaitReason.PAUSE_WINDOW)
    host.again(host.claim())


@pytest.mark.parametrize(
    "bring",
    [
        pytest.param(lambda client, host: None, id="nothing in the way"),
        pytest.param(lambda client, host: age_beat(client, host, 60), id="nobody there"),
        pytest.param(lambda client, host: switches.pause(client, ["*"], by="a", reason="b"), id="paused"),
    ],
)
def test_the_list_and_the_single_answer_never_differ(valkey, host, bring):
    one_of_each(host)
    bring(valkey, host)

    (queue,) = queue_shown.as_data(lookup.view(valkey, [QUEUE], limit=10, unreadable={}))["queues"]
    listed = [job for name in ("running", "waiting", "deferred", "held") for job in queue[name]["jobs"]]

    assert len(listed) == 8
    for job in listed:
        single = why(valkey, job["job"])
        until_ms = job.pop("until")
        assert job == {name: single[name] for name in job}
        # The list does not look for containers.
        assert until_ms == (None if job["state"] == "started" else single["until"])


def test_a_queue_of_somebody_else_is_explained_too(valkey, host):
    valkey.hset(keys.job(b"theirs_1"), mapping={"status": "deferred", "origin": "emails"})

    found = why(valkey, "theirs_1")

    assert (found["reason"], found["queue"]) == ("foreign-state", "emails")


# Time in words.


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (45_000, "45 s"),
        (245_000, "4 min 5 s"),
        (7_200_000, "2 h"),
        (7_205_000, "2 h"),
        (273_600_000, "3 d 4 h"),
        (10**15, "11574074 d 1 h"),
    ],
)
def test_a_distance_has_its_two_largest_units(milliseconds, words):
    assert span(milliseconds) == words


@given(st.integers(0, 10**13), st.integers(0, 10**13))
def test_a_wake_up_is_never_said_too_near(instant, now):
    said = ahead(instant, now)

    if instant <= now:
        assert said == "now"
    elif instant - now <= 60_000:
        assert said in {f"in {-(-(instant - now) // 1000)} s", "in 1 min"}


@given(st.integers(0, 10**16))
def test_any_instant_can_be_written(instant):
    assert stamp(instant).endswith(" UTC")
    if instant < 10**13:
        assert stamp(instant) == f"{datetime.fromtimestamp(instant // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
