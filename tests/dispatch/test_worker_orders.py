"""Orders to a worker, with its attempts held by the test's own hand: obeyed, answered, never lost."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress

import pytest
import redis

from dispatch.queue import keys
from dispatch.worker.attempt import attempt
from dispatch.worker.live import LiveAttempt, LiveAttempts
from dispatch.worker.orders import Orders
from hosts import keys as hosts_keys
from hosts import stops, switches
from hosts.stops import Answer, Confirmed
from runs.abort import AbortReason
from runs.outcome import Reason
from runs.result import RunResult
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench

GONE, OPEN = Confirmed.GONE, Confirmed.UNCONFIRMED
STOP, CANCEL = AbortReason.OPERATOR_STOP, AbortReason.OPERATOR_CANCEL


class Desk:
    """One host whose attempts are begun and ended by the test, and the orders to it."""

    def __init__(self, client):
        self.client = client
        self.host = queuekit.Host(client)
        self.live = LiveAttempts()
        self.rings = []
        self.orders = self.new_orders(client)
        self._holding = {}

    def new_orders(self, client):
        return Orders(
            client,
            host=self.host.owner.host,
            host_id=self.host.owner.host_id,
            live=self.live,
            ask_engine=lambda: self.rings.append("engine"),
        )

    def take(self, job_id="local-1"):
        self.host.enqueue(job_id)
        claimed = self.host.claim()
        one = LiveAttempt(claimed=claimed, container=f"pi-job-{job_id}")
        stack = self._holding[job_id] = ExitStack()
        stack.enter_context(self.live.holding(one))
        return one

    def start(self, job_id="local-1"):
        one = self.take(job_id)
        self.host.begin(one.claimed)
        one.has_begun = True
        return one

    def leave(self, one, *, gone=True):
        """End the attempt; its engine says so, or not yet."""
        self.host.steps.end(
            one.claimed,
            outcome="policy",
            reason="operator-stop",
            record=b"{}",
            gone=one.container if gone else None,
        )
        self._holding.pop(one.claimed.job_id).close()

    def ask(self, **options):
        asked = {"by": "ann", "reason": "", "request_id": "r1", **options}
        return stops.ask(self.client, (self.host.name,), **asked)

    def answer(self):
        return stops.answers(self.client, (self.host.name,)).get(self.host.name)

    @contextmanager
    def counted(self):
        """Count what is sent to the server in the block."""
        before = self.client.info("stats")["total_commands_processed"]
        counts = []
        yield counts
        counts.append(self.client.info("stats")["total_commands_processed"] - before - 1)


@pytest.fixture
def desk(valkey):
    return Desk(valkey)


def test_nothing_is_sent_while_nothing_has_begun_and_one_question_is_while_something_has(desk):
    desk.take()
    with desk.counted() as counts:
        for _ in range(5):
            desk.orders.look()
    assert counts == [0]

    desk.start("local-2")
    desk.orders.look()
    with desk.counted() as counts:
        for _ in range(5):
            desk.orders.look()
    # A script counts with what it calls: EVALSHA and four reads.
    assert counts[0] <= 5 * 5


def test_a_stop_aborts_what_has_begun_and_answers_until_each_container_is_gone(desk, events):
    first, second = desk.start("local-1"), desk.start("local-2")
    in_hand = desk.take("local-3")
    desk.ask()

    desk.orders.look()
    assert [one.abort.reason for one in (first, second, in_hand)] == [STOP, STOP, None]
    assert desk.answer() == Answer("r1", {"pi-job-local-1": OPEN, "pi-job-local-2": OPEN})

    desk.leave(first)
    desk.orders.look()
    assert desk.answer() == Answer("r1", {"pi-job-local-1": GONE, "pi-job-local-2": OPEN})

    desk.leave(second)
    desk.orders.look()
    assert desk.answer() == Answer("r1", {"pi-job-local-1": GONE, "pi-job-local-2": GONE})
    with desk.counted() as counts:
        desk.orders.look()
    assert counts == [0]
    assert desk.rings == []
    assert [one for one in events() if one["event"] == "operator_stop"] == [
        {"event": "operator_stop", "request": "r1", "jobs": 2}
    ]


def test_what_the_engine_has_not_confirmed_stays_unconfirmed_after_its_attempt(desk):
    one = desk.start()
    desk.ask()
    desk.orders.look()

    desk.leave(one, gone=False)
    desk.orders.look()
    assert desk.answer().containers == {"pi-job-local-1": OPEN}

    desk.client.delete(keys.containers("aaaa"))
    desk.orders.look()
    assert desk.answer().containers == {"pi-job-local-1": GONE}


def test_a_container_that_no_attempt_has_is_asked_after_once(desk):
    desk.client.hset(keys.containers("aaaa"), "pi-job-left", "{}")
    desk.start()
    desk.ask()

    for _ in range(3):
        desk.orders.look()

    assert desk.rings == ["engine"]
    assert desk.answer().containers == {"pi-job-left": OPEN, "pi-job-local-1": OPEN}


def test_a_request_concerns_nothing_that_was_claimed_after_it(desk):
    older = desk.start("local-1")
    request = desk.ask()
    desk.orders.look()
    desk.client.delete(hosts_keys.pause("*"))
    while queuekit.now_ms(desk.client) <= request.at_ms:
        pass
    newer = desk.start("local-2")

    desk.orders.look()

    assert (older.abort.reason, newer.abort.reason) == (STOP, None)
    assert desk.answer().containers == {"pi-job-local-1": OPEN}


def test_one_that_begins_in_the_moment_of_the_request_is_stopped_at_the_next_look(desk):
    one = desk.take()
    desk.host.begin(one.claimed)
    other = desk.start("local-2")
    desk.ask()
    desk.orders.look()
    assert (one.abort.reason, other.abort.reason) == (None, STOP)

    one.has_begun = True
    desk.orders.look()

    assert one.abort.reason == STOP


@pytest.mark.parametrize("ended_by", ["resume", "undrain"])
def test_a_request_that_was_taken_back_is_forgotten_and_a_new_one_is_answered(desk, ended_by):
    desk.start()
    desk.ask(only="alpha" if ended_by == "undrain" else None)
    desk.orders.look()
    if ended_by == "resume":
        switches.resume_all(desk.client, hosts=("alpha",))
    else:
        switches.undrain(desk.client, "alpha")
    desk.orders.look()

    desk.ask(request_id="r2")
    desk.orders.look()

    assert desk.answer().request_id == "r2"


def test_the_last_answer_is_repeated_until_it_arrives_though_nothing_runs_any_more(desk):
    orders = desk.new_orders(Losing(desk.client, 4, arrives=False))
    one = desk.start()
    desk.ask()
    orders.look()
    desk.leave(one)

    with suppress(redis.exceptions.TimeoutError):
        orders.look()
    orders.look()

    assert desk.answer() == Answer("r1", {"pi-job-local-1": GONE})


def test_what_was_claimed_in_the_very_millisecond_of_the_request_is_stopped(desk):
    one = desk.start()
    desk.client.hset(hosts_keys.stop_request("alpha"), mapping={"id": "r1", "at": one.claimed.now_ms})

    desk.orders.look()

    assert one.abort.reason == STOP


def test_nothing_is_looked_after_any_more_once_the_request_is_taken_back(desk):
    one = desk.start()
    desk.ask()
    desk.orders.look()
    switches.resume_all(desk.client, hosts=("alpha",))
    desk.orders.look()
    desk.leave(one, gone=False)

    with desk.counted() as counts:
        desk.orders.look()

    assert counts == [0]


def test_a_request_that_says_nothing_usable_stops_nobody_and_is_logged_once(desk, events):
    one = desk.start()
    desk.client.hset(hosts_keys.stop_request("alpha"), "id", "x")

    for _ in range(3):
        desk.orders.look()

    assert one.abort.reason is None
    assert [e["event"] for e in events()].count("operator_stop_unreadable") == 1


class Losing:
    """A client whose nth script never arrives, or runs and its answer is lost on the way."""

    def __init__(self, client, nth, *, arrives):
        self._client, self._left, self._arrives = client, nth, arrives

    def register_script(self, text):
        script = self._client.register_script(text)

        def call(**options):
            self._left -= 1
            if self._left == 0 and not self._arrives:
                raise redis.exceptions.TimeoutError("lost")
            answer = script(**options)
            if self._left == 0:
                raise redis.exceptions.TimeoutError("lost")
            return answer

        return call

    def __getattr__(self, name):
        return getattr(self._client, name)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("nth", range(1, 6))
def test_an_order_survives_any_lost_answer_also_when_its_attempt_ends_meanwhile(desk, nth, arrives):
    orders = desk.new_orders(Losing(desk.client, nth, arrives=arrives))
    stopped, cancelled = desk.start("local-1"), desk.start("local-2")
    desk.ask()
    stops.ask_cancel(desk.client, "local-2", request_id="c1")

    for _ in range(6):
        with suppress(redis.exceptions.TimeoutError):
            orders.look()
        if stopped.abort.is_set() and stopped in desk.live.attempts():
            desk.leave(stopped)
            desk.leave(cancelled)

    assert (stopped.abort.is_set(), cancelled.abort.is_set()) == (True, True)
    assert desk.answer() == Answer("r1", {"pi-job-local-1": GONE, "pi-job-local-2": GONE})
    assert stops.cancel_answers(desk.client, ("local-2",)) == {"local-2": "alpha"}
    assert desk.client.exists(hosts_keys.cancel_request("local-2")) == 0


def test_a_restarted_server_that_kept_its_keys_is_answered_all_the_same(desk):
    desk.start()
    desk.ask()
    desk.orders.look()
    # What lives in memory only is gone with a restart: the scripts.
    desk.client.script_flush()
    desk.client.delete(hosts_keys.stop_answer("alpha"))

    desk.ask(request_id="r2")
    desk.orders.look()

    assert desk.answer().request_id == "r2"


def test_a_cancel_stops_its_job_only_and_is_answered_by_name(desk, events):
    one, other = desk.start("repeat:x:1"), desk.start("local-2")
    stops.ask_cancel(desk.client, "repeat:x:1", request_id="c1")

    for _ in range(3):
        desk.orders.look()

    assert (one.abort.reason, other.abort.reason) == (CANCEL, None)
    assert stops.cancel_answers(desk.client, ("repeat:x:1",)) == {"repeat:x:1": "alpha"}
    assert [e["jobId"] for e in events() if e["event"] == "operator_cancel"] == ["repeat:x:1"]
    assert desk.answer() is None


def test_a_cancelled_job_whose_attempt_had_failed_a_moment_before_is_not_tried_again(desk):
    one = desk.start()
    stops.ask_cancel(desk.client, "local-1", request_id="c1")
    desk.orders.look()

    desk.host.again(one.claimed)
    desk._holding.pop("local-1").close()
    desk.orders.look()

    assert queuekit.hash_of(desk.client, "local-1")["status"] == "finished"
    queuekit.assert_sound(desk.client, ["local-1"])
    last = queuekit.records(desk.client, desk.host.host_id)[-1]
    assert (last["reason"], last["final"], last["host"]) == (Reason.OPERATOR_CANCEL, True, "alpha")
    with desk.counted() as counts:
        desk.orders.look()
    assert counts == [0]


@pytest.mark.parametrize(
    ("order", "reason"), [("stop", Reason.OPERATOR_STOP), ("cancel", Reason.OPERATOR_CANCEL)]
)
@pytest.mark.parametrize(
    ("fields", "refunded"),
    [({"exit_code": 137}, False), ({"not_attempted": True}, True), ({"exit_code": None}, False)],
)
def test_the_record_says_who_stopped_it_and_what_was_spent(valkey, order, reason, fields, refunded):
    bench = Bench(valkey)
    owner, live = bench.host.owner, bench.host.live
    orders = Orders(valkey, host=owner.host, host_id=owner.host_id, live=live)

    def meanwhile():
        if order == "stop":
            stops.ask(valkey, ("alpha",), by="ann", reason="", request_id="r1")
        else:
            stops.ask_cancel(valkey, "local-1", request_id="c1")
        orders.look()
        (running,) = live.attempts()
        bench.containers.result = RunResult(container="", abort_reason=running.abort.reason, **fields)

    bench.containers.meanwhile = meanwhile
    bench.attempt()
    orders.look()

    record = bench.record()
    assert (record["outcome"], record["reason"], record["final"]) == ("policy", reason, True)
    assert (bench.standing(), bench.spent()) == ("finished", 0 if refunded else 1)
    assert valkey.hlen(keys.containers("aaaa")) == 0
    bench.assert_nothing_is_held()


@pytest.mark.parametrize("switch", ["fleet", "host"])
def test_what_is_in_hand_when_everything_is_stopped_goes_back_and_costs_nothing(valkey, switch):
    bench = Bench(valkey)
    only = "alpha" if switch == "host" else None
    bench.places.meanwhile = lambda: stops.ask(
        valkey, ("alpha",), by="ann", reason="", request_id="r1", only=only
    )
    bench.enqueue()

    attempt(bench.host, bench.claim())

    assert (bench.standing(), bench.spent(), bench.record()) == ("queued", 0, None)
    assert bench.containers.specs == []
    bench.assert_nothing_is_held()
