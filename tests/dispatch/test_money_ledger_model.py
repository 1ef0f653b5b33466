"""Any sequence of what workers do to three ledgers and the day's tokens, against a model of a few lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.instants import instant_of
from dispatch.money.ledger import Blocked, Granted, Ledger, NotHeld, ReserveRequest, ScopeCaps
from dispatch.money.tokens import TokenCounter
from dispatch.money.windows import (
    Caps,
    State,
    counter_key,
    grant_key,
    hold_above,
    scope_prefix,
    state_of,
    token_counter_key,
)
from runs.outcome import Reason

SCOPES = ("0" * 16, "1" * 16)
# Saturday; the month ends in two hours, the week a day later.
EVE = int(datetime.fromisoformat("2026-01-31T22:00:00Z").timestamp() * 1000)

jobs = st.sampled_from(["local-1", "local-2", "repeat:nightly:1"])
attempts = st.integers(0, 1)
# Seldom so low that nothing is ever granted.
cap = st.sampled_from([None, None, None, 3, 5, 8, 8, 13, 13, 2, 1, 0])
scoped = st.none() | st.builds(Caps, day=cap, week=cap, month=cap)
# The global caps, the hold, and the caps of each scope.
limits = st.tuples(
    st.builds(Caps, day=st.sampled_from([3, 5, 5, 8, 8, 8, 13, 13, 13, 2, 1, 0]), week=cap, month=cap),
    st.sampled_from([None, None, None, 99, 80, 67, 50, 1]),
    st.fixed_dictionaries(dict.fromkeys(SCOPES, scoped)),
)


@dataclass
class Grant:
    first_queued: int
    instant: int
    token: str
    token_at: int
    counters: tuple[str, ...]


class Model:
    """What contracts 4 says, without Valkey."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.grants: dict[tuple[str, int], Grant] = {}
        self.recorded: set[tuple[str, int]] = set()
        # Job to the token that has it in hand.
        self.in_hand: dict[str, str] = {}

    def reserve(self, request: ReserveRequest) -> Granted | Blocked | NotHeld:
        if request.job_key:
            if self.in_hand.get(request.job_id) != request.token:
                return NotHeld()
            self.forget_another_days(request)
        return self.answer(request)

    def answer(self, request: ReserveRequest) -> Granted | Blocked:
        known = self.grants.get((request.job_id, request.attempt))
        if known and known.first_queued == request.first_queued_ms:
            if request.now_ms >= known.token_at:
                known.token, known.token_at = request.token, request.now_ms
            return Granted(
                token=known.token, instant_ms=known.instant, counters=known.counters, repeated=True
            )
        ledgers = [("budget", request.caps, request.hold_percent)]
        if request.scope:
            ledgers.insert(0, (scope_prefix(request.scope.scope_hash), request.scope.caps, None))
        for prefix, caps, percent in ledgers:
            blocked = self.blocked(prefix, caps, percent, request.now_ms)
            if blocked:
                return blocked
        now = instant_of(request.now_ms)
        taken = tuple(
            counter_key(prefix, window, now) for prefix, caps, _ in ledgers for window, _ in caps.active()
        )
        for key in taken:
            self.counters[key] = self.counters.get(key, 0) + 1
        self.recorded.discard((request.job_id, request.attempt))
        self.grants[request.job_id, request.attempt] = Grant(
            request.first_queued_ms, request.now_ms, request.token, request.now_ms, taken
        )
        return Granted(token=request.token, instant_ms=request.now_ms, counters=taken, repeated=False)

    def blocked(self, prefix: str, caps: Caps, percent: int | None, now_ms: int) -> Blocked | None:
        found: dict[State, Blocked] = {}
        for window, cap in caps.active():
            used = self.counters.get(counter_key(prefix, window, instant_of(now_ms)), 0)
            state = state_of(used + 1, cap=cap, hold_percent=percent)
            reason = Reason.SOFT_HOLD if state is State.SOFT_HOLD else Reason.OVER_BUDGET
            if prefix != "budget":
                reason = Reason.SCOPE_CAP
            found.setdefault(state, Blocked(reason=reason, window=window, reserved=used, cap=cap))
        return found.get(State.OVER) or found.get(State.SOFT_HOLD)

    def forget_another_days(self, request: ReserveRequest) -> None:
        known = self.grants.get((request.job_id, request.attempt))
        is_its = known is not None and known.first_queued == request.first_queued_ms
        if known and is_its and day_of(known.instant) != day_of(request.now_ms):
            self.pay_back(request.job_id, request.attempt)

    def refund(self, job_id: str, attempt: int, token: str) -> bool:
        known = self.grants.get((job_id, attempt))
        return known is not None and known.token == token and self.pay_back(job_id, attempt)

    def refund_left(self, job_id: str, attempt: int, token: str, first_queued: int) -> bool:
        known = self.grants.get((job_id, attempt))
        is_ours = self.in_hand.get(job_id) == token
        return (
            known is not None
            and is_ours
            and known.first_queued == first_queued
            and self.pay_back(job_id, attempt)
        )

    def pay_back(self, job_id: str, attempt: int) -> bool:
        self.recorded.discard((job_id, attempt))
        for key in self.grants.pop((job_id, attempt)).counters:
            self.counters[key] -= 1
        return True

    def record(self, job_id: str, attempt: int, tokens: int, now_ms: int) -> bool:
        if (job_id, attempt) in self.recorded:
            return False
        self.recorded.add((job_id, attempt))
        key = token_counter_key("budget", instant_of(now_ms))
        self.counters[key] = self.counters.get(key, 0) + tokens
        return True


class Workers:
    """Workers of a fleet, their crashes and their clocks, on one server that was empty before."""

    def __init__(self, client: redis.Redis, data: st.DataObject) -> None:
        client.flushall()
        self.client = client
        self.draw = data.draw
        self.ledger = Ledger(client)
        self.tokens = TokenCounter(client)
        self.model = Model()
        self.now_ms = EVE
        self.pops = 0
        self.first_queued = 1
        self.sent: list[ReserveRequest] = []
        self.the_operator_sets_caps()

    def the_operator_sets_caps(self) -> None:
        self.caps, self.percent, self.scope_caps = self.draw(limits)

    def a_worker_pops_a_job_and_reserves(self) -> None:
        """Also the repeat with another token, when an earlier worker died holding the job."""
        self.pops += 1
        job_id, token = self.draw(jobs), f"boot/{self.pops}"
        self.model.in_hand[job_id] = token
        self.client.hset(job_key(job_id), mapping={"status": "queued", "taker": token})
        scope_hash = self.draw(st.sampled_from(SCOPES))
        caps = self.scope_caps[scope_hash]
        self.send(
            ReserveRequest(
                job_id=job_id,
                attempt=self.draw(attempts),
                token=token,
                first_queued_ms=self.first_queued,
                now_ms=self.now_ms,
                caps=self.caps,
                hold_percent=self.percent,
                scope=ScopeCaps(scope_hash=scope_hash, caps=caps) if caps else None,
                job_key=self.draw(st.sampled_from([job_key(job_id), job_key(job_id), None])),
            )
        )

    def a_job_is_begun_and_in_no_hand_any_more(self) -> None:
        job_id = self.draw(jobs)
        self.model.in_hand.pop(job_id, None)
        self.client.hset(job_key(job_id), "status", "started")

    def an_answer_was_lost_and_the_call_is_repeated_or_delivered_late(self) -> None:
        if self.sent:
            self.send(self.draw(st.sampled_from(self.sent)))

    def the_same_pop_asks_again_later(self) -> None:
        if self.sent:
            request = self.draw(st.sampled_from(self.sent))
            self.send(replace(request, now_ms=self.now_ms, caps=self.caps))

    def send(self, request: ReserveRequest) -> None:
        before = dict(self.model.counters)
        expected = self.model.reserve(request)

        answer = self.ledger.reserve(request)

        assert answer == expected
        self.sent.append(request)
        is_new = isinstance(answer, Granted) and not answer.repeated
        if is_new:
            assert all(int(self.client.get(key)) <= most for key, most in allowed(request).items())
        if request.job_key is None and not is_new:
            assert self.model.counters == before
        elif isinstance(answer, Granted) and request.job_key:
            assert day_of(answer.instant_ms) == day_of(request.now_ms)
        elif isinstance(answer, Blocked):
            assert not self.ledger.is_reserved(
                request.job_id, request.attempt, first_queued_ms=request.first_queued_ms
            )

    def a_pop_gives_its_reservation_back_or_one_that_lost_the_job_tries(self) -> None:
        granted = [one for one in self.sent if (one.job_id, one.attempt) in self.model.grants]
        if self.sent:
            request = self.draw(st.sampled_from(granted or self.sent))
            expected = self.model.refund(request.job_id, request.attempt, request.token)

            assert self.ledger.refund(request.job_id, request.attempt, token=request.token) is expected

    def a_pop_leaves_without_a_reservation_and_pays_back_what_an_earlier_one_left(self) -> None:
        granted = [one for one in self.sent if (one.job_id, one.attempt) in self.model.grants]
        if self.sent:
            request = self.draw(st.sampled_from(granted or self.sent))
            job_id, attempt = request.job_id, request.attempt
            token = self.draw(st.sampled_from([self.model.in_hand.get(job_id, "nobody"), request.token]))
            first_queued = self.draw(st.sampled_from([request.first_queued_ms, self.first_queued]))
            expected = self.model.refund_left(job_id, attempt, token, first_queued)

            assert expected is self.ledger.refund_left(
                job_id, attempt, token=token, job_key=job_key(job_id), first_queued_ms=first_queued
            )

    def a_container_says_what_it_used_perhaps_twice(self) -> None:
        job_id, attempt, tokens = self.draw(jobs), self.draw(attempts), self.draw(st.integers(1, 1000))
        expected = self.model.record(job_id, attempt, tokens, self.now_ms)

        assert self.tokens.record(job_id, attempt, tokens, now=instant_of(self.now_ms)) is expected

    def time_passes_perhaps_over_midnight(self) -> None:
        self.now_ms += self.draw(st.integers(1, 30)) * 3_600_000

    def the_job_is_queued_anew(self) -> None:
        self.first_queued += 1

    def check(self) -> None:
        """Compare everything that is stored with the model."""
        keys = sorted(key.decode() for key in self.client.scan_iter("budget:*"))
        grants = {grant_key(*at) for at in (*self.model.grants, *self.model.recorded)}
        assert {key for key in keys if key.startswith("budget:r:")} == grants
        with self.client.pipeline() as pipeline:
            for key in keys:
                pipeline.ttl(key)
                pipeline.hget(key, "token") if key in grants else pipeline.get(key)
            answers = pipeline.execute()
        stored = dict(zip(keys, answers[1::2], strict=True))
        counted = {key: int(value) for key, value in stored.items() if key not in grants}
        assert counted == self.model.counters
        assert all(count >= 0 for count in counted.values())
        assert {at: stored[grant_key(*at)].decode() for at in self.model.grants} == {
            at: grant.token for at, grant in self.model.grants.items()
        }
        assert all(lifetime > 0 for lifetime in answers[::2])


def job_key(job_id: str) -> str:
    return f"rq:job:{job_id}"


def day_of(at_ms: int) -> date:
    return instant_of(at_ms).date()


def allowed(request: ReserveRequest) -> dict[str, int]:
    """Counter to the most that it may hold once this request was granted."""
    now = instant_of(request.now_ms)
    found = {
        counter_key("budget", window, now): hold_above(most, request.hold_percent)
        for window, most in request.caps.active()
    }
    if request.scope:
        prefix = scope_prefix(request.scope.scope_hash)
        found |= {counter_key(prefix, window, now): most for window, most in request.scope.caps.active()}
    return found


# As often as they are listed.
WHAT_HAPPENS = (
    *[Workers.a_worker_pops_a_job_and_reserves] * 8,
    *[Workers.a_pop_gives_its_reservation_back_or_one_that_lost_the_job_tries] * 3,
    *[Workers.a_pop_leaves_without_a_reservation_and_pays_back_what_an_earlier_one_left] * 2,
    *[Workers.the_job_is_queued_anew] * 3,
    Workers.a_job_is_begun_and_in_no_hand_any_more,
    *[Workers.an_answer_was_lost_and_the_call_is_repeated_or_delivered_late] * 2,
    *[Workers.the_same_pop_asks_again_later] * 2,
    *[Workers.a_container_says_what_it_used_perhaps_twice] * 2,
    *[Workers.time_passes_perhaps_over_midnight] * 2,
    Workers.the_operator_sets_caps,
)


@settings(max_examples=80, suppress_health_check=list(HealthCheck), database=None)
@given(st.data(), st.lists(st.sampled_from(WHAT_HAPPENS), min_size=50, max_size=60))
def test_any_sequence_of_reservations_and_refunds_is_the_models(valkey, data, happenings):
    workers = Workers(valkey, data)
    for happening in happenings:
        happening(workers)
        workers.check()
