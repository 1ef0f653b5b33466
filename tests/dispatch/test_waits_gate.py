from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.leases.leases import Leases
from dispatch.queue import keys
from dispatch.queue.owner import Owner
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Pass
from dispatch.waits.check import CheckResult, Verdict, run_check
from dispatch.waits.gate import WaitBounds, WaitGate, WaitingJob
from dispatch.waits.holds import Hold, Holds
from runs.outcome import Reason, Refusal
from tests.harness.wire import Loss, Wire

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
HOUR_MS = 3_600_000
BOUNDS = WaitBounds(
    interval_ms=60_000,
    max_ms=24 * HOUR_MS,
    after_max_ms=30 * 24 * HOUR_MS,
    max_checks=96,
    max_faults=5,
    slots=1,
    check_timeout_ms=10_000,
)
IDENTITY = "acme/web#5:triage#2"
CI = ({"profile": "ci"},)
JOB = WaitingJob(job_id="gh-1", token="b/1", conditions=CI, label="acme/web#5", identity=IDENTITY)
OTHER = replace(JOB, job_id="gh-2", token="b/99")
LOCAL = replace(JOB, job_id="local-1", label="local-1", identity=None)
CLAIM = f"wait:key:{IDENTITY}"
REFUSED = "the gate's own events: a refusal is logged by whoever settles it"


def waits_until(after: datetime) -> tuple[dict[str, str], ...]:
    return ({"after": after.isoformat()},)


@dataclass
class World:
    """One worker's gate, with real checks and a real Valkey; judging asserts what holds on every way out."""

    client: redis.Redis
    folder: Path
    events: Callable[[], list[dict[str, object]]]
    live: Callable[[str], bool | None] = lambda _: True
    concurrency: int = 4
    random: float = 0.0
    bounds: WaitBounds = BOUNDS
    profiles: dict[str, Path] = field(default_factory=dict)
    pops: int = 0

    def script(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        self.profiles[name] = path

    def gate(self, holds: type[Holds] = Holds, **changed: Any) -> WaitGate:
        return WaitGate(
            holds=holds(self.client),
            profiles=self.profiles,
            bounds=replace(self.bounds, **{k: v for k, v in changed.items() if k not in {"check", "leases"}}),
            environment={"PATH": "/usr/bin:/bin"},
            concurrency=lambda: self.concurrency,
            is_live=lambda job_id: self.live(job_id),
            random=lambda: self.random,
            check=changed.get("check", run_check),
            leases=changed.get("leases"),
        )

    def judge(
        self,
        gate: WaitGate,
        job: WaitingJob = JOB,
        *,
        now: datetime = NOW,
        again: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> Pass | Defer | Refusal:
        """Judge as a new pop of the job, or the same one `again`."""
        self.pops += not again
        if gate.leases:
            # As the pop does it: a slot of the fleet is for who has the job in hand.
            self.client.hset(keys.job(job.job_id.encode()), "taker", f"b/{self.pops}")
        before = gate.slots.used
        try:
            answer = gate.judge(replace(job, token=f"b/{self.pops}"), now=now, stop=stop)
        finally:
            assert gate.slots.used == before
            assert [key for key in self.client.keys("wait:*") if self.client.ttl(key) == -1] == []
        if isinstance(answer, Refusal):
            assert not self.client.exists(f"wait:job:{job.job_id}")
            assert self.client.get(CLAIM) != job.job_id.encode()
        return answer

    def hold(self, job: WaitingJob = JOB) -> Hold:
        return Holds(self.client).read(job.job_id)

    def told(self) -> list[str]:
        return [str(event["event"]) for event in self.events()]


@pytest.fixture
def world(valkey: redis.Redis, tmp_path: Path, events: Callable[[], list[dict[str, object]]]) -> World:
    return World(client=valkey, folder=tmp_path, events=events)


def sleep_ms(answer: object, now: datetime = NOW) -> int:
    assert isinstance(answer, Defer), answer
    assert answer.reason == WaitReason.WAIT
    return (answer.until - now) // timedelta(milliseconds=1)


def is_near(value: float, expected: float, *, earlier: float = 0, later: float = 5_000) -> bool:
    """What a real check's own time changes is no more than that."""
    return expected - earlier <= value <= expected + later


# 9.2: the order of the questions


@pytest.mark.parametrize("conditions", [None, ()])
def test_who_waits_for_nothing_asks_nobody(world, conditions):
    world.client = redis.Redis(port=1)

    assert (
        WaitGate.judge(world.gate(), replace(JOB, conditions=conditions), now=NOW, stop=lambda: False)
        == Pass()
    )


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(({"exclusive": True},), (Reason.WAIT_UNREADABLE, {"conditions": 1}), id="newer"),
        pytest.param(
            ({"after": "2026-09-01T09:00Z"}, {"after": "2026-09-02T09:00Z"}, *CI),
            (Reason.WAIT_UNREADABLE, {"conditions": 3}),
            id="two instants",
        ),
        pytest.param(
            ({"profile": "a b"}, {"profile": "nobody"}),
            (Reason.WAIT_UNREADABLE, {"conditions": 1}),
            id="charset",
        ),
        pytest.param(
            ({"after": "2027-09-01T09:00Z"}, {"profile": "nobody"}, *CI),
            (Reason.WAIT_PROFILE_UNKNOWN, {"profile": "nobody"}),
            id="undeclared, before the far instant",
        ),
        pytest.param(
            waits_until(NOW + timedelta(days=30, milliseconds=1)),
            (Reason.WAIT_AFTER_BEYOND_MAX, {"delayMs": 30 * 24 * HOUR_MS + 1}),
            id="beyond the furthest instant",
        ),
    ],
)
def test_what_no_waiting_can_mend_is_refused_for_free(world, conditions, expected):
    world.script("ci", "touch ran")

    answer = world.judge(world.gate(), replace(JOB, conditions=conditions))

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.said) == expected
    assert world.client.keys() == []
    assert world.told() == [], REFUSED


@pytest.mark.parametrize(
    ("ahead", "sleeps"),
    [
        pytest.param(timedelta(days=-400), False, id="long past"),
        pytest.param(timedelta(seconds=1), False, id="near enough"),
        pytest.param(timedelta(seconds=1, milliseconds=1), True, id="a little more"),
        pytest.param(timedelta(days=29, hours=5, milliseconds=7), True, id="weeks"),
        pytest.param(timedelta(days=30), True, id="the furthest"),
    ],
)
def test_an_instant_is_waited_for_exactly(world, ahead, sleeps):
    world.random = 0.9
    after = NOW + ahead
    job = replace(JOB, conditions=waits_until(after))

    answer = world.judge(world.gate(), job)

    if not sleeps:
        assert answer == Pass()
        assert world.client.keys() == []
        return
    until = after.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    label = f"after {after.isoformat()}"
    assert answer == Defer(until=after, reason=WaitReason.WAIT, said={"until": until, "label": label})
    lifetime_ms = max(300_000, ahead // timedelta(milliseconds=1) + HOUR_MS)
    for key in ("wait:job:gh-1", CLAIM, "wait:held"):
        assert is_near(-world.client.pttl(key), -lifetime_ms)
    assert world.told() == []


def test_a_hold_that_is_met_is_told_with_its_time_and_marks_its_target(world):
    after = NOW + timedelta(hours=2)
    job = replace(JOB, conditions=waits_until(after))
    world.judge(world.gate(), job)

    answers = [world.judge(world.gate(), job, now=after) for _ in range(2)]
    sibling = world.judge(world.gate(), replace(OTHER, conditions=waits_until(after)), now=after)
    elsewhere = world.judge(
        world.gate(), replace(job, job_id="gh-3", identity="acme/web#6:triage#2"), now=after
    )

    assert answers == [Pass(), Pass()]
    assert sibling == Refusal(Reason.WAIT_SUPERSEDED, said={"satisfiedBy": "gh-1"})
    assert elsewhere == Pass()
    assert world.client.keys() == [f"wait:done:{IDENTITY}".encode()]
    (cleared,) = world.events()
    assert is_near(cleared.pop("heldForMs"), 2 * HOUR_MS, earlier=5_000)
    assert cleared == {"event": "wait_cleared", "jobId": "gh-1", "label": f"after {after.isoformat()}"}


# 9.4: profiles


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("exit 0", Pass(), id="go"),
        pytest.param(
            "exit 2", Refusal(Reason.WAIT_REFUSED, said={"profile": "ci", "heldForMs": None}), id="refused"
        ),
        pytest.param("exit 3", False, id="not yet"),
        pytest.param("exit 1", True, id="could not tell"),
        pytest.param("exit 77", True, id="unknown code"),
        pytest.param("kill -9 $$", True, id="killed"),
        pytest.param("exec sleep 30", True, id="hangs"),
    ],
)
@pytest.mark.parametrize("job", [JOB, LOCAL], ids=["forge", "local"])
def test_what_a_check_says_is_what_becomes_of_the_job(world, job, body, expected):
    world.script("ci", body)
    gate = world.gate(check_timeout_ms=300 if "sleep" in body else 10_000)

    answer = world.judge(gate, job)

    if isinstance(expected, bool):
        delay = sleep_ms(answer)
        assert is_near(delay, 60_000)
        said = {"profile": "ci", "fault": expected, "heldForMs": 0, "delayMs": 60_000}
        assert answer.said == said
        held = world.hold(job)
        assert (held.checks, held.faults, held.throttles) == (1, int(expected), 0)
        # What a check takes is part of neither the sleep nor the hold.
        assert is_near(held.since_ms, NOW_MS + delay - 60_000, later=0)
        assert world.client.get(CLAIM) == (b"gh-1" if job.identity else None)
    else:
        assert answer == expected
        assert world.client.keys() == []
    (told,) = world.events()
    assert (told["event"], told["jobId"], told["profile"]) == ("wait_check", job.job_id, "ci")


def test_a_check_that_takes_long_moves_the_sleep_and_not_the_wake_into_the_past(world):
    world.script("ci", "sleep 0.5; exit 3")

    assert is_near(sleep_ms(world.judge(world.gate())), 60_500)


def test_profiles_are_asked_in_their_order_up_to_the_first_that_is_not_go(world):
    world.script("a", 'echo "a $1" >> "$(dirname "$0")/asked"')
    world.script("b", 'echo "b $1" >> "$(dirname "$0")/asked"; exit 3')
    world.script("c", 'echo "c $1" >> "$(dirname "$0")/asked"')
    conditions = tuple({"profile": name} for name in "abc")

    answer = world.judge(world.gate(), replace(JOB, conditions=conditions))
    world.script("b", 'echo "b $1" >> "$(dirname "$0")/asked"')
    world.judge(world.gate(), replace(JOB, conditions=conditions))

    assert answer.said["profile"] == "b"
    asked = (world.folder / "asked").read_text().split("\n")
    assert asked == [f"{name} acme/web#5" for name in "ababc"] + [""]
    assert world.told() == ["wait_check"] * 5 + ["wait_cleared"]


def test_a_profile_whose_program_is_gone_is_refused(world):
    world.script("ci", "exit 3")
    gate = world.gate()
    world.judge(gate)
    world.profiles["ci"].chmod(0o644)

    assert world.judge(gate) == Refusal(Reason.WAIT_PROFILE_UNKNOWN, said={"profile": "ci"})
    assert world.told() == ["wait_check"] * 2


@pytest.mark.parametrize("label", ["", "-rf", "a\0b"])
def test_a_target_that_no_check_can_be_given_is_refused(world, label):
    world.script("ci", "exit 0")

    answer = world.judge(world.gate(), replace(JOB, label=label))

    assert answer == Refusal(Reason.WAIT_UNREADABLE, said={"profile": "ci"})
    assert world.events() == [{"event": "wait_check_target_unusable", "jobId": "gh-1", "profile": "ci"}]


def test_an_aborted_check_is_not_counted(world):
    world.script("ci", 'touch "$(dirname "$0")/started"; exec sleep 30')
    world.judge(world.gate(check_timeout_ms=1))
    before = world.hold()

    answer = world.judge(world.gate(), stop=(world.folder / "started").exists)

    assert is_near(sleep_ms(answer), 11_000)
    assert world.hold() == before
    assert world.told()[-2:] == ["wait_check", "wait_check_aborted"]


# 9.4 and 9.5: bounds and clocks


def test_the_clock_and_the_counters_outlive_the_worker(world):
    world.script("ci", "exit 3")
    world.judge(world.gate())
    since = world.hold().since_ms

    later = NOW + timedelta(minutes=25)
    answer = world.judge(world.gate(), now=later)

    assert is_near(sleep_ms(answer, later), 240_000)
    assert is_near(answer.said["heldForMs"], 25 * 60_000, earlier=5_000)
    assert (world.hold().since_ms, world.hold().checks) == (since, 2)


@pytest.mark.parametrize(
    ("codes", "bounds", "expected"),
    [
        pytest.param(
            "111", {"max_faults": 3}, (Reason.WAIT_UNANSWERABLE, {"profile": "ci", "faults": 3}), id="faults"
        ),
        pytest.param("11311", {"max_faults": 3}, None, id="faults not in a row"),
        pytest.param(
            "333",
            {"max_checks": 3},
            (Reason.WAIT_EXPIRED, {"reason": "max-checks", "checks": 3}),
            id="checks",
        ),
        pytest.param("33", {"max_checks": 3}, None, id="one check left"),
        pytest.param("330", {"max_checks": 3}, Pass(), id="the last check decides"),
        pytest.param(
            "33", {"max_ms": 3_600_000}, (Reason.WAIT_EXPIRED, {"reason": "max-wait", "checks": 2}), id="time"
        ),
        pytest.param("33", {"max_ms": 3_620_000}, None, id="time left"),
        pytest.param("30", {"max_ms": 3_600_000}, Pass(), id="met on the last wake"),
        pytest.param(
            "11",
            {"max_faults": 2, "max_checks": 2, "max_ms": 1},
            (Reason.WAIT_UNANSWERABLE, {}),
            id="faults first",
        ),
        pytest.param(
            "33",
            {"max_checks": 2, "max_ms": 1},
            (Reason.WAIT_EXPIRED, {"reason": "max-checks"}),
            id="then checks",
        ),
    ],
)
def test_waiting_ends_at_its_bounds_after_the_check(world, codes, bounds, expected):
    """One check an hour, each of them with the code given."""
    gate = world.gate(**bounds)
    for index, code in enumerate(codes):
        world.script("ci", f"exit {code}")
        # Past the hour by what the first check itself may have taken.
        answer = world.judge(gate, now=NOW + index * timedelta(hours=1, seconds=5))
        assert isinstance(answer, Defer) == (index + 1 < len(codes) or expected is None)

    if isinstance(expected, tuple):
        assert answer.reason == expected[0]
        assert expected[1].items() <= answer.said.items()
        assert world.client.keys() == []
    elif expected:
        assert answer == expected


def test_no_sleep_is_as_short_as_that_of_a_busy_folder(world):
    world.script("ci", "exit 3")
    gate = world.gate(max_ms=HOUR_MS)
    world.judge(gate)

    later = NOW + timedelta(hours=1, seconds=-1)

    assert is_near(sleep_ms(world.judge(gate, now=later), later), 6_000)


def test_the_sleep_until_an_instant_is_no_time_of_its_checks(world):
    world.script("ci", "exit 3")
    after = NOW + timedelta(days=7)
    job = replace(JOB, conditions=waits_until(after) + CI)
    gate = world.gate(max_ms=HOUR_MS)
    world.judge(gate, job)

    first = world.judge(gate, job, now=after)
    last = world.judge(gate, job, now=after + timedelta(hours=1))

    assert is_near(sleep_ms(first, after), 60_000)
    assert last.said["reason"] == "max-wait"
    assert is_near(last.said["heldForMs"], HOUR_MS)


@pytest.mark.parametrize("bounds", [{"max_faults": 2}, {"max_checks": 2}, {"max_ms": HOUR_MS}])
def test_what_is_not_literally_go_starts_nothing_and_does_not_wait_for_ever(world, bounds):
    world.profiles["ci"] = world.folder
    gate = world.gate(**bounds, check=lambda *_, **__: CheckResult("yes", 0, "exit"))  # type: ignore[arg-type]

    first = world.judge(gate)
    second = world.judge(gate, now=NOW + timedelta(hours=2))

    assert is_near(sleep_ms(first), 60_000)
    assert first.said["fault"] is True
    assert second.reason in (Reason.WAIT_UNANSWERABLE, Reason.WAIT_EXPIRED)
    assert world.told() == ["wait_check", "wait_check_unintelligible"] * 2


# 9.4: slots


def test_without_a_slot_the_job_is_held_and_starving_is_said_once(world):
    world.script("ci", "exit 0")
    gate = world.gate()
    gate.slots.try_take()

    answers = [world.judge(gate, now=NOW + timedelta(seconds=index)) for index in range(7)]

    assert [sleep_ms(answer, NOW + timedelta(seconds=i)) // 1000 for i, answer in enumerate(answers)] == [
        15
    ] * 7
    assert (world.hold().throttles, world.hold().checks) == (7, 0)
    assert world.hold().since_ms is not None
    (said,) = [event for event in world.events() if event["event"] == "wait_capacity_exceeded"]
    assert {"jobId": "gh-1", "denials": 5, "slots": 1}.items() <= said.items()
    assert world.told().count("wait_check_throttled") == 7
    assert world.told()[4] == "wait_capacity_exceeded"


def test_a_slot_that_was_got_starts_the_count_of_denials_again(world):
    world.script("ci", "exit 3")
    gate = world.gate()
    gate.slots.try_take()
    world.judge(gate)
    gate.slots.give_back()

    world.judge(gate)

    assert (world.hold().throttles, world.hold().checks) == (0, 1)


def test_a_job_that_only_starves_expires(world):
    world.script("ci", "exit 0")
    gate = world.gate(max_ms=HOUR_MS)
    gate.slots.try_take()
    world.judge(gate)

    answer = world.judge(gate, now=NOW + timedelta(hours=1, seconds=5))

    assert answer.reason is Reason.WAIT_EXPIRED
    assert (answer.said["reason"], answer.said["checks"]) == ("max-wait-unchecked", 0)


def test_of_twenty_jobs_at_once_one_is_checked(world):
    world.script(
        "ci", 'echo x >> "$(dirname "$0")/ran"; until [ -e "$(dirname "$0")/go" ]; do sleep 0.02; done'
    )
    gate, barrier, answers = world.gate(), threading.Barrier(20), []

    def work(number: int) -> None:
        job = replace(JOB, job_id=f"gh-{number}", token=f"b/{number}", identity=f"acme/web#{number}:x#0")
        barrier.wait(10)
        answers.append(gate.judge(job, now=NOW, stop=lambda: False))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 20
    while len(answers) < 19 and time.monotonic() < deadline:
        time.sleep(0.01)
    used = gate.slots.used
    (world.folder / "go").touch()
    for thread in threads:
        thread.join(20)

    assert (used, gate.slots.used) == (1, 0)
    assert sorted(type(answer).__name__ for answer in answers) == ["Defer"] * 19 + ["Pass"]
    assert (world.folder / "ran").read_text() == "x\n"
    assert len(Holds(world.client).held()) == 19


# 9.4: slots of the fleet


OWNER = Owner(boot="aaaa-00000001", host_id="aaaa", host="alpha")
ELSEWHERE = "beta#gh-9#bbbb-00000001/1"


def checks_of_the_fleet(world: World) -> list[bytes]:
    return sorted(world.client.get(key) for key in world.client.keys("wait:check:*"))


@pytest.mark.parametrize("code", [0, 3, 2, "raises"])
def test_a_check_holds_one_of_the_fleets_slots_inside_its_hosts(world, code):
    seen: list[Any] = []

    def look(*_: Any, **__: Any) -> CheckResult:
        (key,) = world.client.keys("wait:check:*")
        seen.append((world.client.get(key), 25_000 < world.client.pttl(key) <= 30_000))
        if code == "raises":
            raise OSError("broken")
        verdict = {0: Verdict.GO, 3: Verdict.HOLD, 2: Verdict.REFUSE}[code]
        return CheckResult(verdict, code, "exit")

    world.profiles = {"a": world.folder, "b": world.folder}
    gate = world.gate(check=look, leases=Leases(world.client, OWNER))
    give_back = gate.slots.give_back
    gate.slots.give_back = lambda: (seen.append(checks_of_the_fleet(world)), give_back())
    job = replace(JOB, conditions=({"profile": "a"}, {"profile": "b"}))

    with suppress(OSError):
        world.judge(gate, job)

    assert seen == [(b"alpha#gh-1#b/1", True)] * (1 + (code == 0)) + [[]], "given back before the host's"


def test_without_a_slot_of_the_fleet_the_job_is_held_as_without_one_of_its_host(world):
    world.script("ci", "exit 0")
    world.client.set("wait:check:0", ELSEWHERE, px=60_000)
    gate = world.gate(leases=Leases(world.client, OWNER), max_ms=HOUR_MS)

    answers = [world.judge(gate, now=NOW + timedelta(seconds=index)) for index in range(6)]
    late = world.judge(gate, now=NOW + timedelta(hours=1, seconds=5))

    assert [sleep_ms(answer, NOW + timedelta(seconds=i)) // 1000 for i, answer in enumerate(answers)] == [
        15
    ] * 6
    assert (late.reason, late.said["reason"]) == (Reason.WAIT_EXPIRED, "max-wait-unchecked")
    throttled = {"event": "wait_check_throttled", "jobId": "gh-1", "delayMs": 15_000, "slots": 1}
    said = [{**throttled, "where": "fleet"}] * 6
    exceeded = {"event": "wait_capacity_exceeded", "jobId": "gh-1", "denials": 5, "slots": 1}
    said.insert(4, {**exceeded, "hint": "PI_WAIT_CHECK_SLOTS", "where": "fleet"})
    assert world.events() == said
    assert checks_of_the_fleet(world) == [ELSEWHERE.encode()]


def test_two_hosts_check_no_more_at_once_than_the_fleet_may(world):
    """The second asks while the first one's check runs; with the host's own slots it would have one."""
    answers = []

    def other(*_: Any, **__: Any) -> CheckResult:
        answers.append(world.judge(second, OTHER))
        return CheckResult(Verdict.HOLD, 3, "not-yet")

    world.profiles["ci"] = world.folder
    beta = Owner(boot="bbbb-00000001", host_id="bbbb", host="beta")
    second = world.gate(leases=Leases(world.client, beta))
    first = world.gate(check=other, leases=Leases(world.client, OWNER))

    world.judge(first)

    assert [sleep_ms(answer) // 1000 for answer in answers] == [15]
    assert world.told()[0] == "wait_check_throttled"


@pytest.mark.parametrize("loss", Loss)
def test_a_job_is_checked_though_nobody_can_tell_of_the_fleets_slots(world, valkey_url, loss):
    world.script("ci", "exit 3")
    wire = Wire(valkey_url)
    client = wire.client()
    client.ping()
    wire.cut(loss, times=2)

    answer = world.judge(world.gate(leases=Leases(client, OWNER)))

    assert is_near(sleep_ms(answer), 60_000)
    assert world.told() == ["fleet_lease_unavailable", "wait_check"]
    assert checks_of_the_fleet(world) == []


# 9.6: superseding


def expires(world: World) -> bool:
    world.client.delete(CLAIM)
    return False


def is_taken_by_a_third(world: World) -> bool:
    world.client.set(CLAIM, "gh-3", px=60_000)
    return False


@pytest.mark.parametrize("conditions", [waits_until(NOW + timedelta(hours=1)), CI], ids=["after", "profile"])
@pytest.mark.parametrize(
    ("holder", "live", "outcome", "told"),
    [
        pytest.param(None, None, "holds", None, id="won"),
        pytest.param("gh-1", None, "holds", None, id="ours"),
        pytest.param("gh-2", lambda _: True, "superseded", None, id="live"),
        pytest.param(
            "gh-2", lambda _: False, "holds", ("wait_lease_taken_over", {"from": "gh-2"}), id="gone"
        ),
        pytest.param(
            "gh-2",
            lambda _: None,
            "asks later",
            ("wait_supersede_unverified", {"heldBy": "gh-2"}),
            id="unverifiable",
        ),
        pytest.param(
            "gh-2", expires, "holds", ("wait_lease_taken_over", {"from": "gh-2"}), id="expired meanwhile"
        ),
        pytest.param(
            "gh-2",
            is_taken_by_a_third,
            "asks later",
            ("wait_supersede_unverified", {"heldBy": "gh-3"}),
            id="another came first",
        ),
    ],
)
def test_of_several_jobs_that_wait_for_a_target_one_goes_on(world, conditions, holder, live, outcome, told):
    world.script("ci", 'touch "$(dirname "$0")/ran"; exit 3')
    if holder:
        world.client.set(CLAIM, holder, px=60_000)
    asked: list[str] = []
    world.live = lambda job_id: asked.append(job_id) or live(world)

    answer = world.judge(world.gate(), replace(JOB, conditions=conditions))

    assert asked == ([holder] if live else [])
    assert (world.folder / "ran").exists() == (outcome == "holds" and conditions == CI)
    if outcome == "superseded":
        assert answer == Refusal(Reason.WAIT_SUPERSEDED, said={"heldBy": "gh-2"})
        assert world.client.keys() == [CLAIM.encode()]
    elif outcome == "holds":
        assert sleep_ms(answer) >= 60_000
        assert world.client.get(CLAIM) == b"gh-1"
        assert world.client.pttl(CLAIM) > HOUR_MS
    else:
        assert is_near(sleep_ms(answer), 15_000)
        assert world.client.keys() == [CLAIM.encode()]
    events = [event for event in world.events() if event["event"] != "wait_check"]
    assert [event["event"] for event in events] == ([told[0]] if told else [])
    assert all(told[1].items() <= event.items() for event in events)


def test_jobs_without_an_identity_coalesce_with_nobody(world):
    world.script("ci", "exit 3")
    world.live = lambda _: pytest.fail("nobody is asked")

    answers = [world.judge(world.gate(), replace(LOCAL, job_id=f"local-{number}")) for number in range(2)]

    assert [type(answer) for answer in answers] == [Defer, Defer]
    assert world.client.keys("wait:key:*") == []


# every edge may break


def breaking(method: str, *, after: bool) -> type[Holds]:
    """Holds of which one method raises once: before its command is sent, or after it has landed."""

    class Breaking(Holds):
        def __init__(self, client: redis.Redis) -> None:
            super().__init__(client)
            self.is_broken = True

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            return (lambda *args, **kwargs: self.attempt(found, *args, **kwargs)) if name == method else found

        def attempt(self, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if not self.is_broken:
                return whole(*args, **kwargs)
            self.is_broken = False
            if after:
                whole(*args, **kwargs)
            raise redis.exceptions.ConnectionError("lost")

    return Breaking


# Each method of Holds that the gate calls, with what the check says when it is called.
CALLS = [
    *((name, "exit 3") for name in ("satisfied_by", "read", "claim", "forget_denials", "count_check")),
    ("record", "exit 3"),
    *((name, "exit 1") for name in ("count_check", "claim")),
    *((name, "exit 0") for name in ("count_check", "clear")),
    ("count_denial", "denied"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after it has landed"])
@pytest.mark.parametrize(("method", "says"), CALLS)
def test_a_fault_of_valkey_holds_nothing_and_asking_again_counts_nothing_twice(world, method, says, after):
    world.script("ci", says if says != "denied" else "exit 3")
    world.live = lambda _: False

    def steps(holds: type[Holds], job: WaitingJob) -> tuple[object, Hold]:
        gate = world.gate()
        gate.slots.try_take()
        world.judge(gate, job)
        gate = world.gate(holds)
        if says == "denied":
            gate.slots.try_take()
        if holds is not Holds:
            with pytest.raises(redis.exceptions.ConnectionError):
                world.judge(gate, job)
            return type(world.judge(gate, job, again=True)), world.hold(job)
        return type(world.judge(gate, job)), world.hold(job)

    undisturbed = steps(Holds, replace(OTHER, identity="acme/web#6:triage#2"))
    disturbed = steps(breaking(method, after=after), JOB)

    assert disturbed[0] == undisturbed[0]
    assert replace(disturbed[1], since_ms=None) == replace(undisturbed[1], since_ms=None)


def test_a_go_that_could_not_be_kept_stands(world):
    world.script("ci", "exit 0")
    gate = world.gate(breaking("clear", after=False))
    with pytest.raises(redis.exceptions.ConnectionError):
        world.judge(gate)
    world.script("ci", "exit 1")

    assert world.judge(gate, again=True) == Pass()
    assert world.told() == ["wait_check"]


def test_a_cleared_job_is_not_asked_about_again_within_one_interval(world):
    world.script("ci", "exit 0")
    gate = world.gate()
    world.judge(gate)
    world.script("ci", "exit 3")

    within = world.judge(gate, now=NOW + timedelta(milliseconds=world.bounds.interval_ms - 1000))
    other = world.judge(gate, OTHER, now=NOW)
    later = world.judge(gate, now=NOW + timedelta(milliseconds=world.bounds.interval_ms + 1000))

    assert within == Pass()
    assert isinstance(other, Defer | Refusal)
    assert isinstance(later, Defer | Refusal)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after it has landed"])
def test_a_refusal_stands_though_its_release_fails(world, after):
    world.script("ci", "exit 3")
    gate = world.gate(breaking("release", after=after), max_checks=1)

    answer = gate.judge(JOB, now=NOW, stop=lambda: False)

    assert answer.reason is Reason.WAIT_EXPIRED
    assert gate.slots.used == 0
    assert world.events()[-1] == {
        "event": "wait_release_failed",
        "jobId": "gh-1",
        "error": "ConnectionError",
    }


@pytest.mark.parametrize("edge", ["check", "liveness"])
def test_an_edge_that_breaks_leaves_no_slot_taken(world, edge):
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("broken")

    world.script("ci", "exit 3")
    world.client.set(CLAIM, "gh-2", px=60_000)
    world.live = broken if edge == "liveness" else lambda _: False

    with pytest.raises(OSError, match="broken"):
        world.judge(world.gate(check=broken))


# any way at all


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["hold", "fault", "denied", "aborted", "lost hold", "lost fault"]),
            st.integers(1, 430).map(lambda number: 7 * number),
        ),
        max_size=14,
    )
)
def test_any_way_of_waiting_counts_as_a_model_does(world, steps):
    """No sum of sevens is the hour of the bound, where the gate's own milliseconds would decide."""
    world.client.flushall()
    world.profiles["ci"] = world.folder
    verdict = Verdict.HOLD
    check = lambda *_, **__: CheckResult(verdict, None, "exit")  # noqa: E731
    bounds = {"max_faults": 3, "max_checks": 6, "max_ms": HOUR_MS, "check": check}
    now, since, checks, faults, throttles = NOW, None, 0, 0, 0
    for kind, seconds in steps:
        gate = world.gate(breaking("count_check", after=True) if "lost" in kind else Holds, **bounds)
        verdict = Verdict.ABORTED if kind == "aborted" else Verdict.FAULT if "fault" in kind else Verdict.HOLD
        if kind == "denied":
            gate.slots.try_take()
            throttles += 1
        else:
            throttles = 0
        if "lost" in kind:
            with pytest.raises(redis.exceptions.ConnectionError):
                world.judge(gate, now=now)
        answer = world.judge(gate, now=now, again="lost" in kind)
        is_late = since is not None and now - since >= timedelta(hours=1)
        if kind in ("denied", "aborted"):
            ends = is_late and kind == "denied"
        else:
            checks, faults = checks + 1, faults + 1 if "fault" in kind else 0
            ends = is_late or faults >= 3 or checks >= 6
        assert isinstance(answer, Refusal) == ends, (kind, since, checks, faults)
        if ends:
            return
        assert sleep_ms(answer, now) > 5_000
        since = since if kind == "aborted" else since or now
        hold = world.hold()
        assert (hold.checks, hold.faults, hold.throttles) == (checks, faults, throttles)
        assert (hold.since_ms is None) == (since is None)
        now += timedelta(seconds=seconds)
