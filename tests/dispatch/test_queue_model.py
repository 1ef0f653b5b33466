"""Any sequence of steps by two hosts, against a model that knows contracts 3 and nothing of Valkey."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.dropping import Drop, drop
from dispatch.queue.moving import Moved, move
from dispatch.queue.popper import Claimed, Empty, Paused
from dispatch.queue.producer import Enqueued
from dispatch.queue.transitions import Step
from dispatch.queue.waiters import Waiters
from hosts import switches
from tests.dispatch.queuekit import (
    JOB,
    MOVES,
    QUEUE,
    Host,
    age_beat,
    assert_sound,
    hashes_of,
    listed,
    records,
)

# A queue that nobody takes from: jobs go there and come back.
ASIDE = "pi-jobs@gamma"
HOSTS = {"alpha": "aaaa", "beta": "bbbb"}
# From a state, what a move by its owner makes of a job.
LEADS = {
    ("in hand", "give back"): "queued",
    ("in hand", "put off"): "scheduled",
    ("in hand", "refuse"): "finished",
    ("in hand", "begin"): "started",
    ("in hand", "end failed"): "failed",
    ("in hand", "again"): "scheduled",
    ("started", "begin"): "started",
    ("started", "end"): "finished",
    ("started", "end failed"): "failed",
    ("started", "again"): "scheduled",
}
STATUS = {"in hand": "queued"}


@dataclass
class Model:
    """What one job should be: its state, whose claim it is, and what has left by which claim last."""

    state: str = "queued"
    token: str | None = None
    left: str | None = None
    put_backs: int = 0
    finals: int = 0
    begun: int = 0
    attempt: int = 0
    was_taken: bool = False
    queue: str = QUEUE


class Fleet(RuleBasedStateMachine):
    """Two hosts that pop, move, die, restart and sweep; old claims are kept and tried again later."""

    client = None
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        self.jobs: dict[str, Model] = {}
        self.boots = Counter()
        self.hosts = {name: self.boot(name) for name in HOSTS}
        self.paused = False

    def boot(self, name: str) -> Host:
        self.boots[name] += 1
        host = Host(self.client, name=name, host_id=HOSTS[name], boot_number=self.boots[name])
        host.beats._beat(())
        return host

    @rule(number=st.integers(0, 4))
    def enqueue(self, number):
        job_id = f"local-{number}"

        answer = self.hosts["alpha"].producer.enqueue(QUEUE, job_id, JOB)

        assert isinstance(answer, Enqueued) is (job_id not in self.jobs)
        self.jobs.setdefault(job_id, Model())

    @rule(target=claims, name=st.sampled_from(sorted(HOSTS)))
    def pop(self, name):
        popped = self.hosts[name].popper.pop()

        waiting = [job_id for job_id, job in self.jobs.items() if (job.state, job.queue) == ("queued", QUEUE)]
        if self.paused:
            assert popped == Paused()
            return None
        if not waiting:
            assert popped == Empty()
            return None
        assert isinstance(popped, Claimed)
        job = self.jobs[popped.job_id]
        assert popped.job_id in waiting
        assert (popped.put_backs, popped.attempt) == (job.put_backs, job.attempt)
        job.state, job.token, job.was_taken = "in hand", popped.token, True
        return self.hosts[name], popped

    @rule(claim=claims, move=st.sampled_from(sorted(MOVES)))
    def move(self, claim, move):
        if claim is None:
            return
        host, claimed = claim
        job = self.jobs.get(claimed.job_id, Model(state="gone"))

        answer = MOVES[move](host, claimed)

        owned = job.token == claimed.token
        lead = LEADS.get((job.state, move)) if owned else None
        if lead is None:
            # A begin never counts as landed because its job has left: a container would follow.
            landed = job.left == claimed.token and move != "begin"
            assert answer is (Step.DONE if landed else Step.LOST)
        elif move == "begin" and job.state == "in hand" and self.paused:
            assert answer is Step.HELD
        else:
            assert answer is Step.DONE
            self.land(job, move, lead, claimed)

    def land(self, job, move, lead, claimed):
        job.begun += move == "begin" and job.state == "in hand"
        job.finals += lead in {"finished", "failed"}
        job.attempt += move == "again"
        job.state = lead
        if lead != "started":
            job.token, job.left = None, claimed.token

    @rule(way=st.permutations([QUEUE, ASIDE]), numbers=st.lists(st.integers(0, 4), unique=True))
    def reroute(self, way, numbers):
        source, target = way
        raw_ids = {rq_id(f"local-{number}").encode(): f"local-{number}" for number in numbers}

        answers = move(self.client, list(raw_ids), source=source, target=target)

        assert answers == {raw_id: self.moved(job_id, source, target) for raw_id, job_id in raw_ids.items()}

    def moved(self, job_id, source, target):
        job = self.jobs.get(job_id)
        if job is None:
            return Moved.ABSENT
        if job.queue == source and job.state in {"queued", "scheduled"}:
            job.queue = target
        if job.queue == target:
            return Moved.MOVED
        return {"in hand": Moved.IN_HAND, "started": Moved.STARTED}.get(job.state, Moved.OVER)

    @rule()
    def promote(self):
        self.hosts["alpha"].promoter.promote([QUEUE, ASIDE])
        asleep = [
            (job.queue, rq_id(job_id).encode())
            for job_id, job in self.jobs.items()
            if job.state == "scheduled"
        ]
        waiters = Waiters(self.client)
        waiters.wake_some([QUEUE, ASIDE], "retry", after=-math.inf, most=len(self.jobs) + 1)
        waiters.wake_oldest([QUEUE, ASIDE], "scope-busy", "abcd")
        waiters.wake_these(asleep)
        self.hosts["beta"].promoter.promote([QUEUE, ASIDE])
        for job in self.jobs.values():
            if job.state == "scheduled":
                job.state = "queued"

    @rule(name=st.sampled_from(sorted(HOSTS)))
    def restart(self, name):
        dead = self.hosts[name].owner.boot
        self.hosts[name] = self.boot(name)

        swept = self.hosts[name].sweeper.at_boot([QUEUE])

        self.settle(lambda token: token.startswith(f"{HOSTS[name]}-"), swept)
        assert dead != self.hosts[name].owner.boot

    @rule(name=st.sampled_from(sorted(HOSTS)))
    def die_and_be_swept_by_the_other(self, name):
        other = "beta" if name == "alpha" else "alpha"
        mine = self.hosts[name].owner.boot
        held = {job.token for job in self.jobs.values() if job.token}
        for host in self.hosts.values():
            host.held = held
        # The other speaks now; only this one is silent.
        self.hosts[other].beats._beat(())
        age_beat(self.client, self.hosts[name], 1000)

        swept = self.hosts[other].sweeper.tick([QUEUE])

        self.settle(lambda token: token.startswith(f"{mine}/"), swept)

    def settle(self, is_dead, swept):
        put_back, failed = [], []
        for job_id, job in self.jobs.items():
            if not job.token or not is_dead(job.token):
                continue
            if job.state == "started" or job.put_backs == 5:
                job.state, job.finals, job.left = "failed", job.finals + 1, None
                failed.append(job_id)
            else:
                job.state, job.put_backs = "queued", job.put_backs + 1
                put_back.append(job_id)
            job.token = None
        assert sorted(swept.put_back) == sorted(put_back)
        assert sorted(one.job_id for one in swept.failed) == sorted(failed)

    @rule(number=st.integers(0, 4))
    def drop(self, number):
        job_id = f"local-{number}"
        job = self.jobs.get(job_id)

        answer = drop(self.client, job_id)

        if job is None:
            assert answer is Drop.ABSENT
        elif job.state == "started":
            assert answer is Drop.STARTED
        elif job.state in {"finished", "failed"}:
            assert answer is Drop.OVER
        else:
            assert answer is Drop.DROPPED
            if job.attempt:
                job.state, job.token, job.finals = "finished", None, job.finals + 1
            else:
                del self.jobs[job_id]

    @rule()
    def pause(self):
        switches.pause(self.client, [QUEUE], by="test", reason="")
        self.paused = True

    @rule()
    def resume(self):
        switches.resume_all(self.client)
        self.paused = False

    @invariant()
    def valkey_holds_what_the_model_says(self):
        finals = Counter(
            one.get("job") or one["jobId"]
            for host_id in HOSTS.values()
            for one in records(self.client, host_id)
            if one.get("final", True)
        )
        for (job_id, job), found in zip(self.jobs.items(), hashes_of(self.client, self.jobs), strict=True):
            assert found["status"] == STATUS.get(job.state, job.state)
            assert found.get("taker") == job.token
            assert found["putBacks"] == str(job.put_backs)
            assert found["attempt"] == str(job.attempt)
            assert finals[job_id] == job.finals <= 1
            assert job.begun <= job.attempt + 1
            assert found["origin"] == job.queue
        for queue in (QUEUE, ASIDE):
            there = [job_id for job_id, job in self.jobs.items() if job.queue == queue]
            assert_sound(self.client, there, queue)
            asleep = [one.decode() for one in self.client.zrange(keys.queue_keys(queue).scheduled, 0, -1)]
            assert {*listed(self.client, queue), *asleep} <= set(there)

    @invariant()
    def what_was_taken_before_goes_before_what_never_was(self):
        for queue in (QUEUE, ASIDE):
            line = [self.jobs[job_id].was_taken for job_id in listed(self.client, queue)]
            assert line == sorted(line, reverse=True)


@pytest.mark.parametrize("steps", [50])
def test_any_sequence_of_steps_keeps_to_the_table(valkey, steps):
    machine = type("FleetOnThisServer", (Fleet,), {"client": valkey})

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=steps,
            deadline=None,
            # Shrinking against a real server takes minutes; take Phase.shrink in to look into a failure.
            phases=(Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
