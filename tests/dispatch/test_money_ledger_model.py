"""Any sequence of what workers do to three ledgers and the day's tokens, against a model of a few lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from dispatch.money.ledger import Blocked, Granted, Ledger, ReserveRequest, ScopeCaps
from dispatch.money.tokens import TokenCounter
from dispatch.money.windows import (
    Caps,
    State,
    counter_key,
    grant_key,
    hold_above,
    instant_of,
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
cap = st.none() | st.integers(0, 4)
scoped = st.none() | st.builds(Caps, day=cap, week=cap, month=cap)
# The global caps, the hold, and the caps of each scope.
limits = st.tuples(
    st.builds(Caps, day=st.integers(0, 4), week=cap, month=cap),
    st.none() | st.integers(1, 99),
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

    def reserve(self, request: ReserveRequest) -> Granted | Blocked:
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

    def refund(self, job_id: str, attempt: int, token: str) -> bool:
        known = self.grants.get((job_id, attempt))
        if known is None or known.token != token:
            return False
        del self.grants[job_id, attempt]
        self.recorded.discard((job_id, attempt))
        for key in known.counters:
            self.counters[key] -= 1
        return True

    def record(self, job_id: str, attempt: int, tokens: int, now_ms: int) -> bool:
        if (job_id, attempt) in self.recorded:
            return False
        self.recorded.add((job_id, attempt))
        key = token_counter_key("budget", instant_of(now_ms))
        self.counters[key] = self.counters.get(key, 0) + tokens
        return True


class Workers(RuleBasedStateMachine):
    """Workers of a fleet, their crashes and their clocks, on one server that was empty before."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        client.flushall()
        self.client = client
        self.ledger = Ledger(client)
        self.tokens = TokenCounter(client)
        self.model = Model()
        self.now_ms = EVE
        self.pops = 0
        self.first_queued = 1
        self.sent: list[ReserveRequest] = []

    @initialize(wanted=limits)
    def a_worker_starts(self, wanted):
        self.caps, self.percent, self.scope_caps = wanted

    @rule(wanted=limits)
    def the_operator_sets_caps(self, wanted):
        self.caps, self.percent, self.scope_caps = wanted

    @rule(job_id=jobs, attempt=attempts, scope_hash=st.sampled_from(SCOPES))
    def a_worker_pops_a_job_and_reserves(self, job_id, attempt, scope_hash):
        """Also the repeat with another token, when an earlier worker died holding the job."""
        self.pops += 1
        caps = self.scope_caps[scope_hash]
        self.send(
            ReserveRequest(
                job_id=job_id,
                attempt=attempt,
                token=f"boot/{self.pops}",
                first_queued_ms=self.first_queued,
                now_ms=self.now_ms,
                caps=self.caps,
                hold_percent=self.percent,
                scope=ScopeCaps(scope_hash=scope_hash, caps=caps) if caps else None,
            )
        )

    @rule(data=st.data())
    def an_answer_was_lost_and_the_call_is_repeated_or_delivered_late(self, data):
        if self.sent:
            self.send(data.draw(st.sampled_from(self.sent)))

    @rule(data=st.data())
    def the_same_pop_asks_again_later(self, data):
        if self.sent:
            self.send(replace(data.draw(st.sampled_from(self.sent)), now_ms=self.now_ms, caps=self.caps))

    def send(self, request: ReserveRequest) -> None:
        before = dict(self.model.counters)
        expected = self.model.reserve(request)

        answer = self.ledger.reserve(request)

        assert answer == expected
        self.sent.append(request)
        if isinstance(answer, Blocked) or answer.repeated:
            assert self.model.counters == before
        else:
            assert all(int(self.client.get(key)) <= most for key, most in allowed(request).items())

    @rule(data=st.data())
    def a_pop_gives_its_reservation_back(self, data):
        if self.sent:
            request = data.draw(st.sampled_from(self.sent))
            expected = self.model.refund(request.job_id, request.attempt, request.token)

            assert self.ledger.refund(request.job_id, request.attempt, token=request.token) is expected

    @rule(job_id=jobs, attempt=attempts, tokens=st.integers(1, 1000))
    def a_container_says_what_it_used_perhaps_twice(self, job_id, attempt, tokens):
        expected = self.model.record(job_id, attempt, tokens, self.now_ms)

        assert self.tokens.record(job_id, attempt, tokens, now=instant_of(self.now_ms)) is expected

    @rule(hours=st.integers(1, 30))
    def time_passes_perhaps_over_midnight(self, hours):
        self.now_ms += hours * 3_600_000

    @rule()
    def the_job_is_queued_anew(self):
        self.first_queued += 1

    @invariant()
    def the_counters_are_the_models(self):
        stand = {
            key.decode(): int(self.client.get(key))
            for key in self.client.keys("budget:*")
            if not key.startswith(b"budget:r:")
        }
        assert stand == self.model.counters
        assert all(count >= 0 for count in stand.values())

    @invariant()
    def the_grants_are_the_models(self):
        stored = {key.decode() for key in self.client.keys("budget:r:*")}
        assert stored == {grant_key(*at) for at in (*self.model.grants, *self.model.recorded)}
        for at, grant in self.model.grants.items():
            assert self.client.hget(grant_key(*at), "token").decode() == grant.token

    @invariant()
    def no_key_stays_for_ever(self):
        assert all(self.client.ttl(key) > 0 for key in self.client.scan_iter())


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


def test_any_sequence_of_reservations_and_refunds_is_the_models(valkey):
    run_state_machine_as_test(
        lambda: Workers(valkey),
        settings=settings(
            max_examples=120,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
