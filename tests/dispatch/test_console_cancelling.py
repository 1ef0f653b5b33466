"""`cancel` as a procedure: what waits is taken out, what runs is asked for, and races are looked at again."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
import redis

from dispatch.console import cancel_shown
from dispatch.console.cancelling import Cancelled, Fate, Patience, cancel
from dispatch.console.lookup import why
from dispatch.ids import rq_id
from dispatch.jobs import local_job
from dispatch.money.ledger import Granted, Ledger, ReserveRequest
from dispatch.money.windows import Caps
from dispatch.queue.keys import queue_keys
from dispatch.waits.holds import Holds, Waiter
from hosts import stops
from runs.outcome import Outcome
from tests.dispatch.consolekit import own_server
from tests.dispatch.queuekit import QUEUE, Host, age_beat, assert_sound, hash_of

QUICK = Patience(answer=0.2, look=0.01)
SOON = Patience(answer=5, look=0.01)


@pytest.fixture
def host(valkey):
    host = Host(valkey)
    host.beats.register()
    return host


def deferred(host, reason="scope-busy"):
    claimed = host.claim()
    host.steps.put_off(claimed, until_ms=claimed.now_ms + 60_000, reason=reason, scope_hash="abcd")


def repeated(host):
    host.again(host.start())


@contextmanager
def when_asked(client, job_id, do):
    """Do this, given the request's id, as soon as the job's cancel is asked for."""
    ended = threading.Event()

    def worker():
        while not ended.wait(0.005):
            found = stops.read(client, host="alpha", containers="x", job_ids=(job_id,)).cancels
            if found:
                do(found[job_id])
                return

    thread = threading.Thread(target=worker)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def answering(client, job_id):
    return when_asked(
        client,
        job_id,
        lambda request_id: stops.answer_cancel(client, job_id, request_id=request_id, host="alpha"),
    )


class Hooked:
    """A client around one of whose scripts, told by a part of its text, something happens once."""

    def __init__(self, client, mark, *, before=lambda: None, after=lambda: None):
        self._client, self._mark, self._before, self._after = client, mark, before, after

    def __getattr__(self, name):
        return getattr(self._client, name)

    def register_script(self, text):
        script = self._client.register_script(text)
        if self._mark not in text:
            return script

        def call(**options):
            self._mark = "done"
            self._before()
            answer = script(**options)
            self._after()
            return answer

        return call


def lose():
    raise redis.exceptions.TimeoutError("lost")


@pytest.mark.parametrize(
    ("given", "attempt"),
    [
        pytest.param(lambda host: None, 0, id="waits"),
        pytest.param(Host.claim, 0, id="in hand"),
        pytest.param(deferred, 0, id="put off"),
        pytest.param(repeated, 1, id="to be tried again"),
    ],
)
def test_what_does_not_run_is_taken_out_and_its_id_is_free_if_it_never_ran(valkey, host, given, attempt):
    host.enqueue("repeat:x:1")
    given(host)

    (found,) = cancel(valkey, ["repeat:x:1"], patience=QUICK)

    assert (found.fate, found.attempt, found.is_done) == (Fate.DROPPED, attempt, True)
    assert hash_of(valkey, "repeat:x:1").get("status") == ("finished" if attempt else None)
    assert_sound(valkey, ["repeat:x:1"])
    assert ("not tried again" in cancel_shown.line(found)) == bool(attempt)


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_start_that_a_killed_pop_left_is_paid_back(valkey, host, attempt):
    host.enqueue("local-1")
    if attempt:
        repeated(host)
        valkey.zadd(queue_keys(QUEUE).scheduled, {"local-1": 1})
        host.promoter.promote([QUEUE])
    claimed = host.claim()
    ledger = Ledger(valkey)
    granted = ledger.reserve(
        ReserveRequest(
            job_id="local-1",
            attempt=attempt,
            token=claimed.token,
            first_queued_ms=claimed.first_queued_ms,
            now_ms=claimed.now_ms,
            caps=Caps(day=9),
        )
    )
    assert isinstance(granted, Granted)

    cancel(valkey, ["local-1"], patience=QUICK)

    assert not ledger.is_reserved("local-1", attempt, first_queued_ms=claimed.first_queued_ms)
    assert [int(valkey.get(key)) for key in granted.counters] == [0]


def test_a_held_job_leaves_no_hold_behind(valkey, host):
    job = local_job("/srv/site", task="later", wait_for=({"profile": "idle"},))
    host.producer.enqueue(QUEUE, "local-1", job)
    deferred(host, "wait")
    holds = Holds(valkey)
    holds.record(
        Waiter(job_id="local-1", target="local-1", label="idle", identity=None), now_ms=1, until_ms=2
    )

    cancel(valkey, ["local-1"], patience=QUICK)

    assert holds.held() == []
    assert valkey.keys("wait:job:*") == []


@pytest.mark.parametrize("spelling", [str, rq_id])
def test_a_running_job_is_asked_for_by_its_natural_id_and_answered_by_name(valkey, host, spelling):
    host.enqueue("repeat:x:1")
    host.start()

    with answering(valkey, "repeat:x:1"):
        (found,) = cancel(valkey, [spelling("repeat:x:1")], patience=SOON)

    assert (found.fate, found.job_id, found.host) == (Fate.STOPPING, "repeat:x:1", "alpha")
    assert cancel_shown.line(found) == (
        "Job repeat:x:1 is being stopped by alpha; it ends as operator-cancel."
    )


def test_nobody_answers_the_request_is_taken_back_and_the_person_told_what_that_means(valkey, host):
    host.enqueue("local-1")
    host.start()

    (alive,) = cancel(valkey, ["local-1"], patience=QUICK)
    age_beat(valkey, host, 60)
    (silent,) = cancel(valkey, ["local-1"], patience=QUICK)

    assert (alive.fate, alive.host, alive.silent_ms) == (Fate.UNANSWERED, "alpha", None)
    assert "alpha did not answer, and the request is taken back. Repeat this" in cancel_shown.line(alive)
    assert silent.silent_ms >= 60_000
    assert "silent for 1 min: after 1 min 30 s the job is recorded as stalled" in cancel_shown.line(silent)
    assert valkey.keys("cancel:*") == []


def test_in_the_last_moment_nobody_is_asked_any_more(valkey, host):
    host.enqueue("local-1")
    host.start()

    (found,) = cancel(valkey, ["local-1"], patience=replace(QUICK, answer=0))

    assert (found.fate, valkey.keys("cancel:*")) == (Fate.UNANSWERED, [])


def test_an_answer_in_the_last_moment_counts(valkey, host):
    host.enqueue("local-1")
    host.start()
    late = Hooked(
        valkey,
        "take a request to cancel back",
        before=lambda: stops.answer_cancel(valkey, "local-1", request_id="x", host="alpha"),
    )

    (found,) = cancel(late, ["local-1"], patience=QUICK)

    assert (found.fate, found.host) == (Fate.STOPPING, "alpha")


def cancelled(host, claimed):
    host.steps.end(claimed, outcome=Outcome.POLICY, reason="operator-cancel", record=b"{}")


@pytest.mark.parametrize(
    ("moves_on", "fate"),
    [(Host.end, Fate.ENDED), (Host.again, Fate.DROPPED), (cancelled, Fate.CANCELLED)],
)
def test_what_becomes_of_it_while_an_answer_is_waited_for_is_looked_at_again(valkey, host, moves_on, fate):
    host.enqueue("local-1")
    claimed = host.start()

    with when_asked(valkey, "local-1", lambda _: moves_on(host, claimed)):
        (found,) = cancel(valkey, ["local-1"], patience=SOON)

    assert found.fate is fate


def test_one_that_is_started_between_the_look_and_the_drop_is_asked_for(valkey, host):
    host.enqueue("local-1")
    racing = Hooked(valkey, "-- drop:", before=host.start)

    with answering(valkey, "local-1"):
        (found,) = cancel(racing, ["local-1"], patience=SOON)

    assert found.fate is Fate.STOPPING


@pytest.mark.parametrize(
    ("outcome", "reason", "fate", "said"),
    [
        (Outcome.COMPLETED, None, Fate.ENDED, "completed."),
        (Outcome.POLICY, "over-budget", Fate.ENDED, "policy (over-budget)."),
        (Outcome.FAILED, "stalled", Fate.ENDED, "failed (stalled)."),
        (Outcome.POLICY, "operator-cancel", Fate.CANCELLED, "has been stopped"),
    ],
)
def test_of_an_ended_job_it_is_said_how_it_ended(valkey, host, outcome, reason, fate, said):
    host.enqueue("local-1")
    host.steps.end(host.start(), outcome=outcome, reason=reason, record=b"{}")

    (found,) = cancel(valkey, ["local-1"], patience=QUICK)

    assert (found.fate, found.outcome, found.reason) == (fate, outcome, reason)
    assert said in cancel_shown.line(found)


def test_several_at_once_cost_one_wait_and_each_is_told_apart(valkey, host):
    for name in ("local-1", "local-2", "local-3", "local-4"):
        host.enqueue(name)
    host.start(), host.start()

    with answering(valkey, "local-2"):
        found = cancel(
            valkey,
            ["local-1", "local-2", "local-3", "nobody", "\udcff" * 300, "local-3"],
            patience=replace(QUICK, answer=0.5),
        )

    assert [one.fate for one in found] == [
        Fate.UNANSWERED,
        Fate.STOPPING,
        Fate.DROPPED,
        Fate.UNKNOWN,
        Fate.UNKNOWN,
    ]
    assert hash_of(valkey, "local-4")["status"] == "queued"
    assert [one["cancelled"] for one in cancel_shown.as_data(found)["jobs"]] == [
        *(False, True, True, False, False)
    ]


@pytest.mark.parametrize(
    ("fates", "code"),
    [
        ([Fate.DROPPED, Fate.STOPPING, Fate.CANCELLED], 0),
        ([Fate.DROPPED, Fate.ENDED], 1),
        ([Fate.UNANSWERED], 1),
        ([Fate.UNKNOWN, Fate.STOPPING], 2),
        ([Fate.UNKNOWN, Fate.UNANSWERED], 1),
    ],
)
def test_the_exit_code_says_whether_repeating_may_help(fates, code):
    assert cancel_shown.exit_code([Cancelled(given="x", job_id="x", fate=fate) for fate in fates]) == code


@pytest.mark.parametrize(("given", "fate"), [(Host.claim, Fate.DROPPED), (repeated, Fate.CANCELLED)])
def test_a_drop_whose_answer_was_lost_was_a_drop(valkey, host, given, fate):
    host.enqueue("local-1")
    given(host)

    (found,) = cancel(Hooked(valkey, "-- drop:", after=lose), ["local-1"], patience=SOON)

    assert found.fate is fate


def test_one_that_was_cancelled_between_two_attempts_is_told_so_afterwards(valkey, host):
    host.enqueue("local-1")
    repeated(host)
    cancel(valkey, ["local-1"], patience=QUICK)

    (found,) = cancel(valkey, ["local-1"], patience=QUICK)
    told = why(valkey, "local-1")

    assert (found.fate, found.outcome, found.reason) == (Fate.CANCELLED, Outcome.POLICY, "operator-cancel")
    assert (told.reason, told.host) == ("operator-cancel", "alpha")
    assert told.sentence.endswith("An operator cancelled it.")


def test_a_server_that_is_away_is_told_at_once_and_one_that_goes_away_after_the_wait():
    with own_server() as server:
        client = redis.Redis.from_url(server.url, socket_timeout=0.3)
        host = Host(client)
        host.enqueue("local-1")
        host.start()

        going = when_asked(client, "local-1", lambda _: server.kill())
        with going, pytest.raises(redis.exceptions.RedisError):
            cancel(client, ["local-1"], patience=QUICK)
        began = time.monotonic()
        with pytest.raises(redis.exceptions.RedisError):
            cancel(client, ["local-1"], patience=replace(SOON, answer=60))
        assert time.monotonic() - began < 10
        client.close()
