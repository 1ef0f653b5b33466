"""Every way out of the ladder, whatever breaks in which edge: what was held is free, nothing stays behind.

The rungs are taken from the ladder as it stands and the commands to Valkey are counted as they come, so that
a rung or a step that is added later is met here by itself.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from dispatch.effective import Spending
from dispatch.gates.available import AVAILABLE
from dispatch.jobs import JobData, local_job
from dispatch.ladder import LADDER
from dispatch.leases.boot_sweep import sweep_scopes
from dispatch.leases.leases import Leases
from dispatch.money.windows import Caps
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.overlay import Overlay
from dispatch.operator_files.scoped_limits import parse as parse_limits
from dispatch.queue.owner import Owner
from dispatch.queue.popper import Claimed
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer, Judging, Rung
from dispatch.waits.gate import WaitBounds
from dispatch.worker import attempt as attempt_module
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.host import Host
from dispatch.worker.live import LiveAttempt
from dispatch.worker.loop import PopLoop
from pidispatch_site.variables import CapAction
from runs.outcome import InfraFault, Reason, Refusal
from runs.reaper import Reaped
from runs.result import RunResult
from runs.workspace.scope import hash16
from tests.dispatch import job_samples, queuekit
from tests.dispatch.workerkit import COMPLETED, QUICK, Bench, wait_gate
from tests.harness.wire import FOR_EVER, Loss, Wire

JOB_ID = "job-1"
FOLDER = "/srv/site"
PLAIN = local_job(FOLDER, task="tidy up")
#: Waits for an instant that is over, and for a check.
HELD = replace(PLAIN, wait_for=({"after": "2026-01-01T00:00:00Z"}, {"profile": "ci"}))
FORGE = replace(job_samples.FULL_FORGE, wait_for=HELD.wait_for, replica=None, replicas=None)
PLAIN_FORGE = replace(FORGE, wait_for=None)
OWNER = Owner(boot="aaaa-00000001", host_id="aaaa", host="alpha")
HOUR_MS = 3_600_000
AT_ONCE = replace(QUICK, valkey_retry_max=0.001)
BOUNDS = WaitBounds(
    interval_ms=30_000,
    max_ms=HOUR_MS,
    after_max_ms=HOUR_MS,
    max_checks=9,
    max_faults=5,
    slots=2,
    check_timeout_ms=5_000,
)
SPENDS_TOKENS = replace(COMPLETED, tail=b'{"event":"exit","turns":1,"tokens":{"total":120,"input":1}}\n')
#: As if forge jobs were built already.
BUILT = tuple(replace(rung, read=lambda _: None) if rung is AVAILABLE else rung for rung in LADDER)
#: Slots of the fleet that a job of another host has: of the repository, and of the checks.
ELSEWHERE = (f"slot:s:{hash16(FORGE.repo)}:0", "wait:check:0")
#: What belongs to one attempt, or to one waiting.
PASSING = ("wait:", "waiters:", "containers:", "rq:wip:", "rq:execution", "rq:queue:", "rq:scheduled:")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What is taken of everything of which there is only so much."""

    slots: int = 0
    scopes: dict[str, int]
    checks: int = 0
    live: int = 0
    workspaces: int = 0
    of_the_fleet: int = 2


@dataclass(frozen=True, kw_only=True)
class Ends:
    """Where the job stands and what was written; each record: outcome, reason, final, budgetReserved."""

    standing: str
    reason: str | None = None
    attempt: int = 0
    records: tuple[Any, ...] = ()
    starts: int = 0
    starts_of_scope: int = 0
    grants: int = 0
    tokens: int = 0
    checks: int = 0


class Stage:
    """A busy host: others hold a slot, a scope, a check and a workspace, and a job comes.

    One that waits for a check was there before: its check said "not yet", so that it has a hold, and a forge
    job the claim of its target. Now it says "go". `during` is called right before the attempt, in its thread.
    """

    def __init__(
        self,
        client: redis.Redis,
        url: str,
        folder: Path,
        patched: pytest.MonkeyPatch,
        *,
        job: JobData = HELD,
        **bench: Any,
    ) -> None:
        client.flushall()
        self.client, self.wire = client, Wire(url)
        self.during: Callable[[], object] = lambda: None
        self._check, self._patched = folder / "check", patched
        through = self.wire.client()
        for slot in ELSEWHERE:
            client.set(slot, "beta#gh-9#bbbb-00000001/1", px=HOUR_MS)
        leases = Leases(through, OWNER)
        waits = wait_gate(through, profiles={"ci": self._check}, bounds=BOUNDS, leases=leases)
        given = {"slots": 3, "waits": waits, "files": _files(folder), "leases": leases, "timings": AT_ONCE}
        self.bench = Bench(through, **{**given, **bench})
        self.bench.containers.result = SPENDS_TOKENS
        self._loop = PopLoop(self.bench.host, self.bench.popper, work=self._attempt)
        self.bench.enqueue(JOB_ID, job)
        if job.wait_for:
            self._wait_once()
        self._occupy()
        self.before = self.counts()

    def says(self, code: int) -> None:
        """Have its check say so from now on."""
        self._check.write_text(f"#!/bin/sh\nexit {code}\n")
        self._check.chmod(0o755)

    def _wait_once(self) -> None:
        self.says(3)
        self.go()
        assert self.counts() == Counts(scopes={})
        self.says(0)
        self.bench.host.waiters.wake_oldest([queuekit.QUEUE], WaitReason.WAIT)
        assert queuekit.Host(self.client, boot_number=9).promoter.promote([queuekit.QUEUE]) == 1

    def _occupy(self) -> None:
        host = self.bench.host
        assert host.slots.try_take()
        assert host.waits.slots.try_take()
        assert host.scopes.try_take("of another", 1)
        self.bench.places.standing += 1
        self._other = host.live.holding(LiveAttempt(claimed=OTHER))
        self._other.__enter__()

    def go(self, ladder: tuple[Rung[Any], ...] = BUILT) -> None:
        """Take the job as the pop loop does, and wait until its thread has given the slot back."""
        slots = self.bench.host.slots
        used = slots.used
        with self._patched.context() as patched:
            patched.setattr(attempt_module, "LADDER", ladder)
            self._loop.step()
            for thread in threading.enumerate():
                if thread.name == f"attempt {JOB_ID}":
                    thread.join(20)
            assert slots.used == used, "the attempt is over"

    def _attempt(self, host: Host, claimed: Claimed) -> None:
        self.during()
        attempt_module.attempt(host, claimed)

    def counts(self) -> Counts:
        host = self.bench.host
        return Counts(
            slots=host.slots.used,
            scopes=host.scopes.held,
            checks=host.waits.slots.used,
            live=len(host.live),
            workspaces=self.bench.places.standing,
            of_the_fleet=len(self.client.keys("slot:*")) + len(self.client.keys("wait:check:*")),
        )

    def ends(self) -> Ends:
        job, standing = queuekit.hash_of(self.client, JOB_ID), self.bench.standing(JOB_ID)
        return Ends(
            standing=standing,
            reason=job["reason"] if standing == "scheduled" else None,
            attempt=int(job["attempt"]),
            records=tuple(
                (one["outcome"], one["reason"], one["final"], one["budgetReserved"])
                for one in queuekit.records(self.client)
                if "outcome" in one
            ),
            starts=self._total("budget:20*"),
            starts_of_scope=self._total("budget:s:*:20*"),
            grants=len(self.client.keys("budget:r:*")),
            tokens=self._total("budget:t:*"),
            checks=int(self.client.hget(f"wait:job:{JOB_ID}", "checks") or 0),
        )

    def _total(self, pattern: str) -> int:
        return sum(int(self.client.get(key) or 0) for key in self.client.keys(pattern))

    def require_sound(self, *, but: str = "wait:done:", left_in_fleet: bool = False) -> None:
        """Nothing is held, and Valkey has of the job what its state says and nothing else.

        `left_in_fleet`: a slot there may be left to its time, or to the next boot.
        """
        counts = self.counts()
        of_the_fleet = self.before.of_the_fleet if left_in_fleet else counts.of_the_fleet
        assert replace(counts, of_the_fleet=of_the_fleet) == self.before
        queuekit.assert_sound(self.client, [JOB_ID])
        if self.bench.standing(JOB_ID) in {"finished", "failed"}:
            names = [key.decode() for key in self.client.keys("*")]
            passing = (name for name in names if name not in ELSEWHERE)
            found = [name for name in passing if name.startswith(PASSING) or ":taken:" in name]
            assert [name for name in found if not name.startswith(but)] == []

    def require_that_the_next_boot_settles_it(self) -> None:
        """A worker that comes after this one: what is paid for is counted once, and not paid for again."""
        self.wire.mend()
        heir = Bench(self.client, boot_number=2, waits=wait_gate(self.client, profiles={"ci": self._check}))
        queuekit.Host(self.client, boot_number=2).sweeper.at_boot([queuekit.QUEUE])
        limits = self.bench.host.rules.scoped_limits()
        sweep_scopes(Leases(self.client, heir.host.owner), Reaped(enumerated=True), limits)
        assert len(self.client.keys("slot:*")) == 1
        if queuekit.listed(self.client):
            attempt_module.attempt(heir.host, heir.claim())
        queuekit.assert_sound(self.client, [JOB_ID])
        ends = self.ends()
        assert ends.standing in {"finished", "failed", "scheduled"}
        assert ends.starts == ends.grants <= 1
        heir.assert_nothing_is_held()


OTHER = Claimed(
    queue="other",
    raw_id=b"other",
    rq_id="other",
    job_id="other",
    attempt=0,
    attempts=1,
    put_backs=0,
    first_queued_ms=0,
    attempt_log=(),
    enqueued_at="",
    created_at="",
    scope=None,
    reason=None,
    since_ms=None,
    raw=b"",
    job=PLAIN,
    token="b/0",
    now_ms=0,
)


def _files(folder: Path) -> OperatorFiles:
    path = folder / "limits.json"
    rows = [{"scope": FOLDER, "day": 9}, {"scope": FORGE.repo, "day": 9, "concurrent": 2}]
    path.write_text(json.dumps({"version": 1, "limits": rows}))
    limits = LiveFile(path, partial(parse_limits, name="limits"), label="scoped_limits", count=len)
    limits.load()
    return OperatorFiles(limits=limits, read_overlay=lambda: Overlay(daily_token_cap=500))


@pytest.fixture
def stage(valkey, valkey_url, tmp_path, monkeypatch) -> Callable[..., Stage]:
    return partial(Stage, valkey, valkey_url, tmp_path, monkeypatch)


COMPLETES = Ends(
    standing="finished",
    records=(("completed", None, True, True),),
    starts=1,
    starts_of_scope=1,
    grants=1,
    tokens=120,
)
REFUSED = Ends(standing="finished", records=(("policy", "pi-too-large", True, False),))
FAILS = Ends(standing="failed", records=(("failed", None, True, False),))
AGAIN = Ends(standing="scheduled", reason="retry", attempt=1, records=(("failed", None, False, False),))


def defers(stage: Stage) -> Defer:
    return Defer(until=datetime.now(UTC) + timedelta(hours=1), reason=WaitReason.CAP)


def refuses(stage: Stage) -> Refusal:
    return Refusal(Reason.PI_TOO_LARGE)


def cannot_tell(stage: Stage) -> None:
    raise InfraFault(detail="silent")


def breaks(stage: Stage) -> None:
    raise RuntimeError("a bug")


def is_stopped(stage: Stage) -> None:
    stage.bench.stop()


def loses_valkey(stage: Stage) -> None:
    stage.wire.cut(Loss.COMMAND, times=3)


def loses_answers(stage: Stage) -> None:
    stage.wire.cut(Loss.ANSWER, times=3)


def loses_valkey_for_good(stage: Stage) -> None:
    stage.wire.cut(Loss.COMMAND, times=FOR_EVER)
    stage.bench.host.out_of_patience.set()


#: What may happen in a rung, and how the job stands then. Only a rung's last step can answer in its place.
OUTCOMES: tuple[tuple[Callable[[Stage], object], Ends], ...] = (
    (defers, Ends(standing="scheduled", reason="cap")),
    (refuses, REFUSED),
    (cannot_tell, AGAIN),
    (breaks, FAILS),
    (is_stopped, Ends(standing="queued")),
    (loses_valkey, COMPLETES),
    (loses_answers, COMPLETES),
    (loses_valkey_for_good, Ends(standing="in-hand")),
)
ANSWERS = {defers, refuses}
#: A check that a stop ends keeps its job waiting (Q 9.4).
OWN_ENDS = {("wait", is_stopped): Ends(standing="scheduled", reason="wait")}


def exits(*names: str, of: Callable[[Ends], bool] = lambda _: True) -> Iterator[Any]:
    for rung in BUILT:
        for part in ("read", "judge") if isinstance(rung, Judging) else ("take",):
            for act, ends in OUTCOMES:
                if (part != "read" or act not in ANSWERS) and (not names or rung.name in names) and of(ends):
                    own = OWN_ENDS.get((rung.name, act), ends)
                    yield pytest.param(rung.name, part, act, own, id=f"{rung.name}, {part}: {act.__name__}")


def altered(name: str, part: str, act: Callable[[], object]) -> tuple[Rung[Any], ...]:
    """The ladder, but for one edge of one rung: what `act` answers or raises comes before its own answer."""

    def alter(rung: Rung[Any]) -> Rung[Any]:
        own = getattr(rung, part)

        def edge(*args: Any) -> Any:
            answer = act()
            return own(*args) if answer is None else answer

        return replace(rung, **{part: edge})

    return tuple(alter(rung) if rung.name == name else rung for rung in BUILT)


@pytest.mark.parametrize(("name", "part", "act", "ends"), list(exits()))
def test_whatever_an_edge_does_nothing_stays_held_and_nothing_behind(stage, name, part, act, ends):
    on = stage(job=FORGE if name == "fleet scope" else HELD)

    on.go(altered(name, part, lambda: act(on)))

    on.wire.mend()
    assert replace(on.ends(), checks=0) == ends
    on.require_sound(left_in_fleet=ends.standing == "in-hand")
    if ends.standing == "in-hand":
        on.require_that_the_next_boot_settles_it()


@pytest.mark.parametrize(
    ("name", "part", "act", "ends"),
    list(exits("pause window", "wait", "engine", of=lambda ends: ends is not COMPLETES)),
)
def test_a_target_stays_claimed_while_its_job_waits_and_no_longer(stage, name, part, act, ends):
    on = stage(job=FORGE)

    on.go(altered(name, part, lambda: act(on)))

    on.wire.mend()
    assert replace(on.ends(), checks=0) == ends
    on.require_sound()
    claims = [on.client.get(key) for key in on.client.keys("wait:key:*")]
    still_waits = name != "engine" and ends.standing not in {"finished", "failed"}
    assert claims == [JOB_ID.encode()] * still_waits


# Where an attempt leads to: made so right before it begins.


def completes(stage: Stage) -> None:
    """Leave everything as it is."""


def is_not_to_go(stage: Stage) -> None:
    stage.says(3)


def has_no_image(stage: Stage) -> None:
    stage.bench.engine.image_facts = None


def is_too_many(stage: Stage) -> None:
    object.__setattr__(stage.bench.host, "spending", Spending(caps=Caps(day=0)))


def is_parked(stage: Stage) -> None:
    is_too_many(stage)
    object.__setattr__(stage.bench.host, "cap_action", CapAction.PARK)


def never_starts(stage: Stage) -> None:
    stage.bench.containers.result = RunResult(container="", never_started=True)


def fails(stage: Stage) -> None:
    stage.bench.containers.result = replace(SPENDS_TOKENS, exit_code=1)


def is_paused_late(stage: Stage) -> None:
    stage.bench.places.meanwhile = lambda: stage.client.hset("pause:*", mapping={"by": "op", "until": ""})


def has_company(stage: Stage) -> None:
    """Somebody was denied its folder."""
    for scope in (FOLDER, FORGE.repo):
        assert not stage.bench.host.scopes.try_take(hash16(scope), 0)


def is_busy_in_the_fleet(stage: Stage) -> None:
    """Other hosts have all that there may be."""
    stage.client.copy(ELSEWHERE[0], ELSEWHERE[0][:-1] + "1")
    stage.before = stage.counts()


WAYS = [
    *((completes, HELD), (is_not_to_go, HELD), (completes, PLAIN), (has_no_image, PLAIN)),
    *((is_too_many, PLAIN), (is_parked, PLAIN), (never_starts, PLAIN), (fails, PLAIN)),
    *((is_paused_late, PLAIN), (has_company, PLAIN)),
    *((completes, PLAIN_FORGE), (is_busy_in_the_fleet, PLAIN_FORGE)),
]


def after_each_loss(stage: Callable[..., Stage], way: Any, job: JobData, cut: Callable[..., Any]) -> Any:
    """The stage of an attempt whose nth command is lost, for each command that it sends."""
    for nth in itertools.count():
        on = stage(job=job)
        way(on)
        on.during = partial(cut, on, nth)
        on.go()
        if not on.wire.has_lost:
            assert nth
            return
        on.wire.mend()
        yield on


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize(("way", "job"), WAYS)
def test_a_command_that_is_lost_changes_nothing_about_where_an_attempt_leads(stage, way, job, loss):
    undisturbed = stage(job=job)
    way(undisturbed)
    undisturbed.go()
    undisturbed.require_sound()
    ends = undisturbed.ends()

    for on in after_each_loss(stage, way, job, lambda on, nth: on.wire.cut(loss, nth=nth)):
        assert on.ends() == ends
        on.require_sound()


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize(
    ("way", "job"),
    [
        (completes, PLAIN),
        (is_not_to_go, HELD),
        (never_starts, PLAIN),
        (is_parked, PLAIN),
        (completes, PLAIN_FORGE),
    ],
)
def test_who_loses_valkey_for_good_frees_what_it_holds_and_the_next_boot_settles_the_job(
    stage, way, job, loss
):
    def cut(on: Stage, nth: int) -> None:
        on.wire.cut(loss, nth=nth, times=FOR_EVER)
        on.bench.host.out_of_patience.set()

    for on in after_each_loss(stage, way, job, cut):
        on.require_sound(left_in_fleet=True)
        on.require_that_the_next_boot_settles_it()


@pytest.mark.parametrize("act", [breaks, cannot_tell, is_stopped])
@pytest.mark.parametrize("way", [completes, never_starts, is_paused_late, is_parked])
def test_whatever_happens_between_two_steps_nothing_stays_held_and_what_is_paid_is_kept(stage, way, act):
    reached: list[str] = []
    noting = stage(job=PLAIN, delays=reached.append)
    way(noting)
    noting.go()

    for point in dict.fromkeys(reached):
        once = _Once(point)
        on = stage(job=PLAIN, delays=once)
        once.act = partial(act, on)
        way(on)
        on.go()
        assert once.point is None
        # A container that was begun is listed until the engine says that there is none.
        on.require_sound(but="containers:")
        ends = on.ends()
        assert ends.standing in {"finished", "failed", "scheduled", "queued"}
        paid = [reserved for *_, reserved in ends.records].count(True)
        assert ends.starts == ends.starts_of_scope == ends.grants
        # Of a bug of ours between the ledger's answer and our hearing it the record cannot know.
        assert ends.grants == paid or (point in {"after reserve", "after refund"} and act is not is_stopped)
        assert [final for *_, final, _ in ends.records].count(True) <= 1


class _Once:
    """Acts when its point is reached for the first time."""

    def __init__(self, point: str) -> None:
        self.point: str | None = point
        self.act: Callable[[], object] = lambda: None

    def __call__(self, reached: str) -> None:
        if reached == self.point:
            self.point = None
            self.act()


def test_what_is_held_goes_in_the_promised_order(stage):
    """The record first, then the workspace, the fleet's slot, the scope, the attempt, the slot (Q 3.7)."""
    seen: list[tuple[str, list[Any], Counts]] = []

    def look(point: str) -> None:
        if point in {"after end", "clean up", "before wake"}:
            seen.append((point, queuekit.records(on.client), on.counts()))

    on = stage(job=PLAIN_FORGE, delays=look)
    has_company(on)
    work = on.bench.host.work

    def cleanup(prepared: Any) -> None:
        look("clean up")
        work.cleanup(prepared)

    object.__setattr__(on.bench.host, "work", replace(work, cleanup=cleanup))
    on.go()

    scopes = {**on.before.scopes, hash16(FORGE.repo): 1}
    held = replace(on.before, slots=2, live=2, scopes=scopes, workspaces=2, of_the_fleet=3)
    cleaned = replace(held, workspaces=1, of_the_fleet=2)
    assert [(point, len(records), counts) for point, records, counts in seen] == [
        ("after end", 1, held),
        ("clean up", 1, held),
        # Who is to have the fleet's slot is woken before it is left to it, and if that is nobody, after it.
        ("before wake", 1, replace(cleaned, of_the_fleet=3)),
        ("before wake", 1, cleaned),
        ("before wake", 1, replace(cleaned, scopes=on.before.scopes)),
    ]
    on.require_sound()
