"""A scope's slot in the fleet: who needs one, who is denied one, and that it outlives no attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from dispatch.ids import Kind
from dispatch.jobs import JobData
from dispatch.leases import order
from dispatch.leases.leases import Leases
from dispatch.money.ledger import valkey_now
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.scoped_limits import parse
from dispatch.queue import keys
from dispatch.queue.owner import Owner
from dispatch.queue.waiters import Waiters, WaitReason
from dispatch.worker.attempt import attempt
from dispatch.worker.followed import OperatorFiles
from hosts import keys as hosts_keys
from pidispatch_site import clients
from runs.outcome import Reason, Refusal
from runs.workspace.scope import hash16
from tests.dispatch import job_samples, queuekit
from tests.dispatch.workerkit import Bench, Fault
from tests.harness.wire import FOR_EVER, Loss, Wire

REPOSITORY = "org/proj/repo"
FORGE = replace(job_samples.FULL_FORGE, replica=None, replicas=None)
OWNER = Owner(boot="aaaa-00000001", host_id="aaaa", host="alpha")
ELSEWHERE = "beta#gh-9#bbbb-00000001/1"
SLOT = f"{order.scope(hash16(REPOSITORY))}:0"
FULL = '{"scope": "org/proj/repo", "concurrent": 1}, {"scope": "/srv/site", "concurrent": 1}'


@pytest.fixture
def bench(valkey, tmp_path) -> Callable[..., Bench]:
    """Make a host of a fleet with these limits; the one slot of the repository is `SLOT`."""

    def make(limits: str = FULL, client: Any = valkey, **fields: Any) -> Bench:
        path: Path = tmp_path / "limits.json"
        path.write_text(f'{{"version": 1, "limits": [{limits}]}}')
        followed = LiveFile(path, partial(parse, name="limits"), label="scoped_limits", count=len)
        followed.load()
        given = {"leases": Leases(client, OWNER), "kinds": Kind, "files": OperatorFiles(limits=followed)}
        return Bench(client, **{**given, **fields})

    return make


def while_it_runs(bench: Bench, look: Callable[[], Any], job: JobData = FORGE) -> list[Any]:
    seen: list[Any] = []
    bench.containers.meanwhile = lambda: seen.append(look())
    bench.attempt(job=job)
    return seen


@pytest.mark.parametrize(
    ("limits", "job", "fields", "claimed"),
    [
        pytest.param(FULL, FORGE, {}, True, id="a repository with a limit"),
        pytest.param('{"scope": "org/proj/repo", "day": 5}', FORGE, {}, False, id="limited in money alone"),
        pytest.param('{"scope": "acme/api", "concurrent": 1}', FORGE, {}, False, id="without a limit"),
        pytest.param(FULL, queuekit.JOB, {}, False, id="a folder"),
        pytest.param(FULL, FORGE, {"leases": None}, False, id="no fleet"),
    ],
)
def test_what_the_fleet_bounds_is_claimed_while_its_container_may_run(
    valkey, bench, limits, job, fields, claimed
):
    (during,) = while_it_runs(
        bench(limits, **fields), lambda: (valkey.keys("slot:*"), valkey.get(SLOT), valkey.pttl(SLOT)), job
    )

    if claimed:
        assert during[:2] == ([SLOT.encode()], b"alpha#local-1#aaaa-00000001/1")
        assert 2_095_000 < during[2] <= 2_100_000
    else:
        assert during[0] == []
    assert valkey.keys("slot:*") == []


def test_a_job_that_the_fleet_denies_is_put_off_and_said_once(valkey, bench, events):
    valkey.set(SLOT, ELSEWHERE, px=60_000)
    host = bench()

    claimed = host.attempt(job=FORGE)
    host.host.waiters.wake_oldest([queuekit.QUEUE], WaitReason.SCOPE_BUSY_FLEET, hash16(REPOSITORY))
    queuekit.Host(valkey, boot_number=9).promoter.promote([queuekit.QUEUE])
    again = host.claim()
    attempt(host.host, again)

    job = queuekit.hash_of(valkey, "local-1")
    assert (host.standing(), job["reason"], job["scope"]) == (
        "scheduled",
        "scope-busy-fleet",
        hash16(REPOSITORY),
    )
    assert job["attempt"] == "0"
    assert 4_000 <= int(job["until"]) - again.now_ms <= 10_000
    waiting = keys.waiters(claimed.queue, "scope-busy-fleet", hash16(REPOSITORY))
    assert valkey.zrange(waiting, 0, -1) == [b"local-1"]
    assert (host.record(), host.places.prepared, host.spent()) == (None, 0, 0)
    assert valkey.get(SLOT) == ELSEWHERE.encode()
    host.assert_nothing_is_held()
    (said,) = events()
    assert 4_000 <= said.pop("delayMs") <= 10_000
    assert said == {"event": "scope_busy_deferred", "jobId": "local-1", "kind": "forge", "where": "fleet"}


# Right before the money


def is_still_ours(client: Any) -> None:
    client.pexpire(SLOT, 1_000)


def is_gone(client: Any) -> None:
    client.delete(SLOT)


def is_anothers(client: Any) -> None:
    client.set(SLOT, ELSEWHERE, px=60_000)


def is_rubbish(client: Any) -> None:
    client.delete(SLOT)
    client.rpush(SLOT, "x" * 10_000)


@pytest.mark.parametrize("loss", [None, *Loss])
@pytest.mark.parametrize(
    ("meanwhile", "ends"),
    [
        (is_still_ours, "finished"),
        (is_gone, "finished"),
        (is_anothers, "scheduled"),
        (is_rubbish, "scheduled"),
    ],
)
def test_right_before_the_money_the_slot_is_made_sure_of(
    valkey, valkey_url, bench, events, meanwhile, ends, loss
):
    """Also where its taking was granted without an answer (`loss`)."""
    wire = Wire(valkey_url)
    client = wire.client()
    client.ping()
    host = bench(leases=Leases(client, OWNER))
    if loss:
        wire.cut(loss)
    host.places.meanwhile = lambda: meanwhile(valkey)

    during = while_it_runs(host, lambda: (valkey.get(SLOT), valkey.pttl(SLOT) > 2_000_000))

    assert host.standing() == ends
    assert [one["event"] for one in events()].count("fleet_lease_unavailable") == bool(loss)
    if ends == "finished":
        assert during == [(b"alpha#local-1#aaaa-00000001/1", True)]
        assert not valkey.exists(SLOT)
    else:
        assert queuekit.hash_of(valkey, "local-1")["reason"] == "scope-busy-fleet"
        assert (during, host.spent(), host.record()) == ([], 0, None)
        assert valkey.exists(SLOT)
    host.assert_nothing_is_held()


def test_who_lost_the_job_while_it_climbed_gets_neither_slot_nor_money(valkey, bench, events):
    host = bench()

    def loses() -> None:
        valkey.hset(keys.job(b"local-1"), "taker", "bbbb-00000001/1")
        valkey.set(SLOT, "beta#local-1#bbbb-00000001/1", px=60_000)

    host.places.meanwhile = loses

    host.attempt(job=FORGE)

    assert valkey.get(SLOT) == b"beta#local-1#bbbb-00000001/1"
    assert (host.spent(), host.containers.specs) == (0, [])
    assert events()[-1] == {"event": "transition_lost", "jobId": "local-1", "transition": "put off"}


# While it begins


@pytest.mark.parametrize(
    ("meanwhile", "ends"),
    [
        (is_still_ours, "finished"),
        (is_gone, "finished"),
        (is_anothers, "queued"),
        (is_rubbish, "queued"),
    ],
)
def test_a_lease_that_ran_out_after_the_money_is_taken_again_or_nothing_begins(
    valkey, bench, events, meanwhile, ends
):
    host = bench(delays=lambda point: meanwhile(valkey) if point == "before begin" else None)

    during = while_it_runs(host, lambda: (valkey.get(SLOT), valkey.pttl(SLOT) > 2_000_000))

    assert host.standing() == ends
    if ends == "finished":
        assert during == [(b"alpha#local-1#aaaa-00000001/1", True)]
    else:
        assert (during, host.spent(), host.record(), valkey.exists(SLOT)) == ([], 0, None, 1)
        assert events() == [{"event": "job_given_back", "jobId": "local-1", "reason": "fleet-slot"}]
    host.assert_nothing_is_held()


def test_where_the_server_refuses_to_tell_of_slots_a_job_begins(valkey, valkey_server, bench):
    valkey.execute_command("ACL", "SETUSER", "half", "on", "nopass", "+@all", "~[^s]*")
    client = clients.state_client(f"unix://half:any@{valkey_server}")
    host = bench(client=client)

    host.attempt(job=FORGE)

    assert host.standing() == "finished"
    valkey.execute_command("ACL", "DELUSER", "half")


# Giving it back, and who waits for that


def is_due(client: Any, job_id: str) -> bool:
    return int(queuekit.hash_of(client, job_id)["until"]) <= valkey_now(client)


def test_who_leaves_wakes_the_oldest_of_those_that_wait_for_it(valkey, bench):
    host = bench('{"scope": "org/proj/repo", "concurrent": 2}')
    valkey.set(f"{order.scope(hash16(REPOSITORY))}:1", ELSEWHERE, px=60_000)
    for job_id in ("gh-1", "gh-2", "gh-3"):
        host.enqueue(job_id, FORGE)
    first, *others = (host.claim() for _ in range(3))
    host.containers.meanwhile = lambda: [attempt(host.host, replace(one, job=FORGE)) for one in others]
    object.__setattr__(host.host, "scopes", _Roomy())

    attempt(host.host, first)

    assert [host.standing(one) for one in ("gh-1", "gh-2", "gh-3")] == ["finished", "scheduled", "scheduled"]
    assert [is_due(valkey, one) for one in ("gh-2", "gh-3")] == [True, False]


THEIRS = "pi-jobs@beta"


@pytest.mark.parametrize("known", [True, False], ids=["known", "unreadable"])
def test_who_leaves_leaves_its_slot_to_who_waits_longest_on_any_host(valkey, bench, known):
    host, beta = bench(), queuekit.Host(valkey, "beta", "bbbb", queue=THEIRS)
    scope_hash = hash16(REPOSITORY)
    beta.producer.enqueue(THEIRS, "gh-9", FORGE)
    theirs = beta.claim()

    def meanwhile() -> None:
        beta.steps.put_off(theirs, until_ms=1 << 42, reason="scope-busy-fleet", scope_hash=scope_hash)
        if not known:
            valkey.delete(hosts_keys.QUEUES_KNOWN)
            valkey.set(hosts_keys.QUEUES_KNOWN, "x")

    host.containers.meanwhile = meanwhile
    host.attempt(job=FORGE)

    assert host.standing() == "finished"
    assert is_due(valkey, "gh-9") is known
    assert valkey.get(SLOT) == (b"alpha#gh-9#heir" if known else None)
    beta.promoter.promote([THEIRS])
    taken = (
        Leases(valkey, beta.owner).take(
            order.scope(scope_hash), job_id="gh-9", token=beta.claim().token, slots=1, ttl_ms=9_000
        )
        if known
        else True
    )
    assert taken


class _Roomy:
    """The host's own slots, of which there are enough: its jobs meet at the fleet's."""

    @property
    def held(self) -> dict[str, int]:
        return {}

    def try_take(self, scope_hash: str, limit: int | None) -> bool:
        return True

    def give_back(self, scope_hash: str) -> bool:
        return False


def test_a_slot_that_comes_free_while_its_waiter_falls_asleep_wakes_it(valkey, bench):
    valkey.set(SLOT, ELSEWHERE, px=60_000)
    host = bench(delays=lambda point: valkey.delete(SLOT) if point == "before put off" else None)

    host.attempt(job=FORGE)

    assert host.standing() == "scheduled"
    assert is_due(valkey, "local-1")


def test_a_slot_that_was_kept_for_a_job_on_its_way_to_sleep_wakes_it(valkey, bench):
    """Its host denied it between the waking and the freeing: nobody else may have the slot."""
    valkey.set(SLOT, ELSEWHERE, px=60_000)
    kept = "beta#local-1#heir"
    host = bench(delays=lambda point: valkey.set(SLOT, kept) if point == "before put off" else None)

    host.attempt(job=FORGE)

    assert host.standing() == "scheduled"
    assert is_due(valkey, "local-1")


def test_who_is_woken_too_soon_and_sleeps_again_is_woken_once_the_slot_is_free(valkey, bench):
    host, beta = bench(), queuekit.Host(valkey, "beta", "bbbb", queue=THEIRS)
    scope_hash = hash16(REPOSITORY)
    beta.producer.enqueue(THEIRS, "gh-9", FORGE)
    asleep = {"until_ms": 1 << 42, "reason": "scope-busy-fleet", "scope_hash": scope_hash}
    beta.steps.put_off(beta.claim(), **asleep)
    woken: list[str] = []

    def denied_at_once(point: str) -> None:
        if point == "after wake" and not woken:
            woken.append(point)
            beta.promoter.promote([THEIRS])
            beta.steps.put_off(beta.claim(), **asleep)

    object.__setattr__(host.host, "waiters", Waiters(valkey, delays=denied_at_once))
    host.attempt(job=FORGE)

    assert (woken, valkey.get(SLOT)) == (["after wake"], b"alpha#gh-9#heir")
    assert is_due(valkey, "gh-9")


def test_what_stops_a_job_after_the_slot_gives_it_back(valkey, bench):
    host = bench()
    host.places.answer = Refusal(Reason.PI_TOO_LARGE)

    host.attempt(job=FORGE)

    assert (host.standing(), valkey.keys("slot:*")) == ("finished", [])


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("gives_up", [False, True])
def test_a_slot_is_given_back_once_valkey_answers_and_a_stop_waits_for_nothing(
    valkey, valkey_url, bench, events, loss, gives_up
):
    wire = Wire(valkey_url)
    host = bench(leases=Leases(wire.client(), OWNER))

    def cut() -> None:
        wire.cut(loss, times=FOR_EVER if gives_up else 5)
        if gives_up:
            host.host.out_of_patience.set()

    host.containers.meanwhile = cut
    host.attempt(job=FORGE)

    assert host.standing() == "finished"
    host.assert_nothing_is_held()
    left = [one for one in events() if one["event"] == "fleet_lease_left"]
    if gives_up:
        assert left == [{"event": "fleet_lease_left", "jobId": "local-1", "reason": "shutdown"}]
    else:
        assert (left, valkey.exists(SLOT)) == ([], 0)


def test_a_waking_that_fails_breaks_nothing(valkey, bench, events):
    fault = Fault("before wake", redis.exceptions.ConnectionError("lost"), times=9)
    host = bench(delays=fault)

    host.attempt(job=FORGE)

    assert "before wake" in fault.reached
    assert (host.standing(), valkey.exists(SLOT)) == ("finished", 0)
    assert "release_failed" not in [one["event"] for one in events()]
