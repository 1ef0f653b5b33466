from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.ids import rq_id
from dispatch.leases import order
from dispatch.leases.boot_sweep import sweep_scopes
from dispatch.leases.leases import Lease, Leases
from dispatch.operator_files.scoped_limits import ScopedLimit, ScopedLimits
from dispatch.queue import keys
from dispatch.queue.owner import Owner
from pidispatch_site import clients
from pidispatch_site.clients import VALKEY_FAULTS
from runs.reaper import Leftover, Reaped
from runs.workspace.scope import hash16
from tests.dispatch import queuekit
from tests.harness.wire import FOR_EVER, Loss, Wire
from tests.harness.worker_process import until

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "lease-start.json").read_text())["cases"]
PREFIX = order.scope("0123456789abcdef")
TTL_MS = 60_000
ALPHA = Owner(boot="aaaa-00000001", host_id="aaaa", host="alpha")
BETA = Owner(boot="bbbb-00000001", host_id="bbbb", host="beta")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_slots_are_named_and_tried_as_the_vectors_say(case):
    given_, out = case["in"], case["out"]
    if given_["op"] == "key":
        assert given_["lease"] == "wait-check"
        assert order.keys(order.CHECKS, (given_["slot"],)) == (out["key"],)
    else:
        numbers = order.order(given_["id"], given_["slots"])
        assert numbers == tuple(out.get("order", ()))
        assert bool(numbers) == out["lease"]


@given(job_id=st.text(), slots=st.one_of(st.none(), st.integers(-3, 3000), st.just(2**53)))
def test_every_slot_is_tried_once_and_never_more_than_can_be_looked_at(job_id, slots):
    numbers = order.order(job_id, slots)

    assert sorted(numbers) == list(range(min(max(slots or 0, 0), order.MOST_SLOTS)))


def test_not_everybody_begins_at_the_same_slot():
    begins = {order.order(f"gh-{number}", 4)[0] for number in range(40)}

    assert begins == {0, 1, 2, 3}


class Fleet:
    """Jobs in the hands of hosts, without the hosts."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.tokens: dict[str, str] = {}

    def in_hand(self, owner: Owner, *job_ids: str) -> None:
        """A new pop of these jobs, by this host."""
        for job_id in job_ids:
            self.tokens[job_id] = owner.next_token()
            self.client.hset(keys.job(rq_id(job_id).encode()), "taker", self.tokens[job_id])

    def take(self, owner: Owner, job_id: str, *, slots: int | None = 2, **more: Any) -> Lease | None:
        options = {"token": self.tokens.get(job_id, "none/1"), "ttl_ms": TTL_MS, **more}
        client = options.pop("client", self.client)
        return Leases(client, owner).take(PREFIX, job_id=job_id, slots=slots, **options)

    def claims(self) -> dict[str, str]:
        """Whose the slots are: number to claim."""
        return {
            key.decode().removeprefix(f"{PREFIX}:"): self.client.get(key).decode()
            for key in self.client.keys(f"{PREFIX}:*")
        }


@pytest.fixture
def fleet(valkey) -> Fleet:
    return Fleet(valkey)


def test_a_slot_says_who_has_it_and_ends_by_itself(fleet):
    fleet.in_hand(ALPHA, "gh-1#2")

    lease = fleet.take(ALPHA, "gh-1#2")

    assert fleet.claims() == {"0": f"alpha#gh-1#2#{fleet.tokens['gh-1#2']}"}
    assert TTL_MS - 5_000 < fleet.client.pttl(f"{PREFIX}:0") <= TTL_MS
    assert not lease.is_degraded
    Leases(fleet.client, ALPHA).release(lease)
    assert fleet.claims() == {}


def test_no_more_than_the_slots_are_taken_by_whichever_hosts(fleet):
    jobs = [f"gh-{number}" for number in range(6)]
    for owner, job_id in zip([ALPHA, BETA] * 3, jobs, strict=True):
        fleet.in_hand(owner, job_id)
    taken = [fleet.take(owner, job, slots=3) for owner, job in zip([ALPHA, BETA] * 3, jobs, strict=True)]

    assert [lease is not None for lease in taken] == [True] * 3 + [False] * 3
    assert not Leases(fleet.client, ALPHA).has_room(PREFIX, 3)
    Leases(fleet.client, ALPHA).release(taken[0])
    assert Leases(fleet.client, BETA).has_room(PREFIX, 3)
    assert fleet.take(BETA, "gh-5", slots=3)


@pytest.mark.parametrize("slots", [None, 0, -1])
def test_what_is_not_limited_has_no_key_and_asks_nobody(fleet, slots):
    unreachable = clients.state_client("redis://127.0.0.1:1")
    lease = fleet.take(ALPHA, "gh-1", slots=slots, client=unreachable)

    assert not lease.is_degraded
    leases = Leases(unreachable, ALPHA)
    assert leases.keep(lease) is lease
    leases.release(lease)


# Fencing


def expire(fleet: Fleet) -> None:
    for number in fleet.claims():
        fleet.client.delete(f"{PREFIX}:{number}")


def test_who_gives_back_late_changes_nothing(fleet):
    fleet.in_hand(ALPHA, "gh-1")
    fleet.in_hand(BETA, "gh-2")
    late = fleet.take(ALPHA, "gh-1", slots=1)
    expire(fleet)
    fleet.take(BETA, "gh-2", slots=1)
    before = fleet.claims()

    Leases(fleet.client, ALPHA).release(late)

    assert list(before.values()) == [f"beta#gh-2#{fleet.tokens['gh-2']}"] == list(fleet.claims().values())
    assert Leases(fleet.client, ALPHA).keep(late) is None


@pytest.mark.parametrize("owner", [ALPHA, BETA], ids=["by the same worker", "by another"])
@pytest.mark.parametrize("is_taken", [True, False], ids=["and has its slot", "and has none yet"])
def test_a_job_that_was_popped_again_has_the_slot_of_its_earlier_pop_and_that_pop_has_lost_it(
    fleet, owner, is_taken
):
    fleet.in_hand(ALPHA, "gh-1")
    earlier, stale = fleet.take(ALPHA, "gh-1", slots=1), fleet.tokens["gh-1"]
    fleet.in_hand(owner, "gh-1")
    now = fleet.take(owner, "gh-1", slots=1) if is_taken else None
    before = fleet.claims()

    leases = Leases(fleet.client, ALPHA)
    assert leases.keep(earlier) is None
    assert fleet.take(ALPHA, "gh-1", slots=1, token=stale) is None
    assert fleet.claims() == before
    leases.release(earlier)

    assert fleet.claims() == (before if is_taken else {})
    assert not is_taken or Leases(fleet.client, owner).keep(now) == now


def test_who_has_no_job_in_hand_gets_no_slot(fleet):
    fleet.client.set(keys.job(b"gh-3"), "of the wrong type")

    assert [fleet.take(ALPHA, job_id) for job_id in ("gh-1", "gh-3")] == [None, None]
    assert fleet.claims() == {}


def test_a_lease_that_is_kept_has_its_whole_time_and_one_that_was_lost_is_taken_again(fleet):
    fleet.in_hand(ALPHA, "gh-1")
    lease, leases = fleet.take(ALPHA, "gh-1"), Leases(fleet.client, ALPHA)
    (number,) = fleet.claims()
    fleet.client.pexpire(f"{PREFIX}:{number}", 1_000)

    assert leases.keep(lease) == lease
    assert list(fleet.claims()) == [number]
    assert fleet.client.pttl(f"{PREFIX}:{number}") > 50_000

    expire(fleet)
    fleet.client.set(f"{PREFIX}:{number}", f"beta#gh-9#{BETA.boot}/9", px=TTL_MS)
    assert leases.keep(lease) == lease
    assert len(fleet.claims()) == 2


def test_a_job_never_has_two_slots(fleet):
    """As after a change of the number of slots."""
    fleet.in_hand(ALPHA, "gh-1")
    for number in range(3):
        fleet.client.set(f"{PREFIX}:{number}", f"alpha#gh-1#old/{number}", px=TTL_MS)

    fleet.take(ALPHA, "gh-1", slots=4)

    assert list(fleet.claims().values()) == [f"alpha#gh-1#{fleet.tokens['gh-1']}"]


def test_a_limit_that_was_lowered_counts_who_has_a_number_beyond_it(fleet):
    fleet.in_hand(ALPHA, "gh-1", "gh-2", "gh-3")
    fleet.client.set(f"{PREFIX}:1", f"beta#gh-9#{BETA.boot}/9", px=TTL_MS)
    leases = Leases(fleet.client, ALPHA)

    assert not leases.has_room(PREFIX, 1)
    assert fleet.take(ALPHA, "gh-1", slots=1) is None
    earlier = fleet.take(ALPHA, "gh-2", slots=2)
    assert leases.keep(earlier) == earlier, "it has it by the limit of then"

    fleet.in_hand(BETA, "gh-2")
    assert fleet.take(BETA, "gh-2", slots=1) is None
    assert list(fleet.claims()) == ["1"], "what its earlier pop has left keeps nobody out"
    fleet.client.delete(f"{PREFIX}:1")
    fleet.client.set(f"{PREFIX}:1", f"alpha#gh-3#{ALPHA.boot}/0", px=TTL_MS)
    assert fleet.take(ALPHA, "gh-3", slots=1)
    assert list(fleet.claims()) == ["0"]


@pytest.mark.parametrize("is_full", [False, True])
def test_a_slot_is_kept_for_an_heir_alone_and_not_for_long(fleet, is_full):
    fleet.in_hand(ALPHA, "gh-1")
    fleet.in_hand(BETA, "gh-2", "gh-3")
    lease, leases = fleet.take(ALPHA, "gh-1", slots=1), Leases(fleet.client, ALPHA)
    if is_full:
        fleet.client.config_set("maxmemory", 1)
    for _ in range(2):
        leases.give_back(lease, heir="gh-3", heir_ms=5_000)
    fleet.client.config_set("maxmemory", 0)

    assert leases.has_room(PREFIX, 1) == is_full
    assert is_full or fleet.client.pttl(f"{PREFIX}:0") <= 5_000
    assert (fleet.take(BETA, "gh-2", slots=1) is None) != is_full
    assert bool(fleet.take(BETA, "gh-3", slots=1)) != is_full
    assert fleet.client.pttl(f"{PREFIX}:0") > 50_000


# What does not come from us

HOSTILE = {
    "empty": lambda client, key: client.set(key, ""),
    "no claim": lambda client, key: client.set(key, "hello"),
    "of another version": lambda client, key: client.set(key, "alpha#gh-1"),
    "only marks": lambda client, key: client.set(key, "#" * 300),
    "binary": lambda client, key: client.set(key, bytes(range(256))),
    "10 kB": lambda client, key: client.set(key, b"alpha#gh-1#" + b"x" * 10_000),
    "a list": lambda client, key: client.rpush(key, "a"),
    "a hash": lambda client, key: client.hset(key, "a", "b"),
}


@pytest.mark.parametrize("put", HOSTILE.values(), ids=list(HOSTILE))
def test_what_is_no_claim_of_ours_takes_its_slot_until_it_ends_and_never_for_ever(fleet, put):
    fleet.in_hand(ALPHA, "gh-1")
    leases, key = Leases(fleet.client, ALPHA), f"{PREFIX}:0"
    put(fleet.client, key)
    before = queuekit.everything(fleet.client)

    assert fleet.take(ALPHA, "gh-1", slots=1) is None
    assert not leases.has_room(PREFIX, 1)
    assert queuekit.everything(fleet.client) == before
    assert 0 < fleet.client.pttl(key) <= TTL_MS
    other = fleet.take(ALPHA, "gh-1", slots=2)
    assert leases.keep(other) == other
    leases.release(other)
    fleet.client.pexpire(key, 1_000)
    fleet.take(ALPHA, "gh-1", slots=1)
    assert fleet.client.pttl(key) <= 1_000, "whoever has given it a time is believed"

    fleet.client.delete(key)
    assert fleet.take(ALPHA, "gh-1", slots=1)


# Valkey away

CALLS = {
    "take": lambda fleet, client, _: fleet.take(ALPHA, "gh-1", client=client),
    "keep": lambda _, client, lease: Leases(client, ALPHA).keep(lease),
    "give back": lambda _, client, lease: Leases(client, ALPHA).give_back(lease),
    "release": lambda _, client, lease: Leases(client, ALPHA).release(lease),
}


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("call", CALLS)
def test_a_lost_answer_is_mended_by_asking_again(fleet, valkey_url, events, call, loss):
    fleet.in_hand(ALPHA, "gh-1")
    wire, leases, lease = Wire(valkey_url), Leases(fleet.client, ALPHA), fleet.take(ALPHA, "gh-1")
    if call == "take":
        leases.release(lease)
    client = wire.client()
    client.ping()
    wire.cut(loss)

    if call in {"keep", "give back"}:
        with pytest.raises(VALKEY_FAULTS):
            CALLS[call](fleet, client, lease)
    answer = CALLS[call](fleet, client, lease)

    if call == "take":
        assert answer.is_degraded
        assert [(one["event"], one["jobId"]) for one in events()] == [("fleet_lease_unavailable", "gh-1")]
        assert len(fleet.claims()) == (loss is Loss.ANSWER)
        assert leases.keep(answer) == lease
    assert len(fleet.claims()) == (call in {"take", "keep"})
    leases.release(answer or lease)
    assert fleet.claims() == {}, "what was taken without our hearing of it is given back too"


def test_who_cannot_be_told_anything_is_granted_and_never_hears_an_error(fleet, valkey_url, events):
    wire = Wire(valkey_url)
    wire.cut(Loss.COMMAND, times=FOR_EVER)
    client = wire.client()

    lease = fleet.take(ALPHA, "gh-1", client=client)
    Leases(client, ALPHA).release(lease)

    assert [(one["event"], one["reason"]) for one in events()] == [
        ("fleet_lease_unavailable", "ConnectionError"),
        ("fleet_lease_left", "ConnectionError"),
    ]


def test_a_server_that_forbids_us_the_keys_keeps_nobody_from_working(fleet, valkey_server, events):
    """Asked again and again it would say the same: to wait for it would be to wait for ever."""
    fleet.client.execute_command("ACL", "SETUSER", "half", "on", "nopass", "+@all", "~rq:*")
    client = clients.state_client(f"unix://half:any@{valkey_server}")
    fleet.in_hand(ALPHA, "gh-1")
    leases = Leases(client, ALPHA)

    lease = fleet.take(ALPHA, "gh-1", client=client)
    assert leases.keep(lease).is_degraded
    leases.release(lease)
    sweep_scopes(leases, Reaped(enumerated=True), LIMITS)

    fleet.client.execute_command("ACL", "DELUSER", "half")
    assert [(one["event"], one["reason"]) for one in events()] == [
        ("fleet_lease_unavailable", "NoPermissionError"),
        ("fleet_lease_unavailable", "NoPermissionError"),
        ("fleet_lease_left", "NoPermissionError"),
        ("scope_claims_sweep_skipped", "NoPermissionError"),
    ]


# The sweep of a boot

REPOSITORY, SPARED, FOLDER = "acme/web", "acme/api", "/srv/site"
LIMITS = ScopedLimits(
    (
        ScopedLimit(scope=REPOSITORY, concurrent=2),
        ScopedLimit(scope=SPARED, concurrent=1),
        ScopedLimit(scope=FOLDER, concurrent=1),
        ScopedLimit(scope="acme/free", day=3),
    )
)
AGAIN = Owner(boot="aaaa-00000002", host_id="aaaa", host="alpha")


def container_of(scope: str) -> Leftover:
    return Leftover(name="pi-job-x", job_id="x", boot=ALPHA.boot, scope_hash=hash16(scope))


@pytest.mark.parametrize("number", [1, 7], ids=["within", "beyond the limit"])
@pytest.mark.parametrize(
    ("claim", "is_swept"),
    [
        pytest.param(f"alpha#gh-1#{ALPHA.boot}/7", True, id="an earlier boot of ours"),
        pytest.param(f"old-name#gh-1#{ALPHA.boot}/7", True, id="of ours under an earlier name"),
        pytest.param("alpha#gh-1", True, id="our name without a token"),
        pytest.param(f"alpha#gh-1#{AGAIN.boot}/7", False, id="this boot"),
        pytest.param(f"alpha#gh-1#{BETA.boot}/7", False, id="our name on another machine"),
        pytest.param(f"beta#gh-1#{BETA.boot}/7", False, id="another host"),
        pytest.param(f"alphabet#gh-1#{BETA.boot}/7", False, id="a longer name"),
        pytest.param("alpha", False, id="no claim"),
        pytest.param(b"\xff\x00#", False, id="binary"),
        pytest.param("x" * 10_000, False, id="10 kB"),
    ],
)
def test_a_boot_frees_what_its_earlier_ones_have_left(valkey, events, claim, is_swept, number):
    slot = f"{order.scope(hash16(REPOSITORY))}:{number}"
    valkey.set(slot, claim, px=TTL_MS)
    others = [
        f"{order.scope(hash16(scope))}:{number}"
        for scope, number in ((REPOSITORY, 2 + order.BEYOND), (SPARED, 0), (FOLDER, 0), ("acme/free", 0))
    ]
    for key in others:
        valkey.set(key, f"alpha#gh-2#{ALPHA.boot}/8", px=TTL_MS)
    valkey.rpush(f"{order.scope(hash16(REPOSITORY))}:0", "of the wrong type")

    for _ in range(2):
        sweep_scopes(
            Leases(valkey, AGAIN), Reaped(enumerated=True, remaining=(container_of(SPARED),)), LIMITS
        )

    assert valkey.exists(slot) == (not is_swept)
    assert valkey.exists(*others, f"{order.scope(hash16(REPOSITORY))}:0") == 5
    assert events() == [{"event": "scope_claims_swept", "count": 1}] * is_swept


def test_nothing_is_freed_while_nobody_knows_what_runs(valkey, events):
    key = f"{order.scope(hash16(REPOSITORY))}:0"
    valkey.set(key, f"alpha#gh-1#{ALPHA.boot}/7", px=TTL_MS)

    sweep_scopes(Leases(valkey, AGAIN), Reaped(enumerated=False), LIMITS)

    assert valkey.exists(key)
    assert events() == [{"event": "scope_claims_sweep_skipped", "reason": "reaper-skipped"}]


def test_a_sweep_waits_for_a_valkey_that_is_away(valkey_url):
    wire = Wire(valkey_url)
    wire.cut(Loss.COMMAND)

    with pytest.raises(VALKEY_FAULTS):
        sweep_scopes(Leases(wire.client(), AGAIN), Reaped(enumerated=True), LIMITS)


# Any way at all


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["pop", "take", "keep", "release", "expire"]), st.integers(0, 3)),
        max_size=25,
    )
)
def test_whatever_comes_in_whatever_order_a_slot_has_one_job_and_a_job_one_slot(fleet, steps):
    """Nobody is denied beside a free slot; each new pop of a job is the other host's."""
    fleet.client.flushall()
    jobs, owners = [f"gh-{number}" for number in range(4)], [ALPHA, BETA, ALPHA, BETA]
    fleet.in_hand(ALPHA, *jobs)
    granted: list[tuple[Owner, Lease]] = []

    def step(kind: str, number: int) -> None:
        job_id, before = jobs[number], fleet.claims()
        match kind:
            case "pop":
                owners[number] = BETA if owners[number] is ALPHA else ALPHA
                fleet.in_hand(owners[number], job_id)
            case "take":
                has = {claim.split("#")[1] for claim in before.values()}
                lease = fleet.take(owners[number], job_id)
                assert (lease is not None) == (job_id in has or len(has) < 2)
                granted.extend([(owners[number], lease)] if lease else [])
            case "keep" | "release" if granted:
                owner, lease = granted[number % len(granted)]
                getattr(Leases(fleet.client, owner), kind)(lease)
                others = {slot: one for slot, one in before.items() if f"#{lease.job_id}#" not in one}
                assert others.items() <= fleet.claims().items()
            case "expire":
                fleet.client.delete(f"{PREFIX}:{number}")

    for kind, number in steps:
        step(kind, number)
        of_jobs = [claim.split("#")[1] for claim in fleet.claims().values()]
        assert len(of_jobs) == len(set(of_jobs)) <= 2


# Real processes

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


DYING_TTL_MS = 1_000


def contend(url: str, name: str, rounds: float) -> None:
    """Be one worker that takes and gives back; with endless rounds it keeps the first slot that it gets.

    It notes from when to when it surely has one, by the server's clock.
    """
    client, pause = clients.state_client(url, socket_timeout=30), threading.Event()
    leases = Leases(client, Owner(boot=f"{name}-00000001", host_id=name, host=name))
    ttl_ms = DYING_TTL_MS if math.isinf(rounds) else TTL_MS
    while rounds:
        asked_ms = queuekit.now_ms(client)
        lease = leases.take(PREFIX, job_id=f"job-{name}", token=f"token-{name}", slots=2, ttl_ms=ttl_ms)
        if lease is None:
            pause.wait(0.002)
            continue
        from_ms = queuekit.now_ms(client)
        if math.isinf(rounds):
            client.rpush("held", f"{from_ms} {asked_ms + ttl_ms}")
            pause.wait()
        pause.wait(0.002)
        client.rpush("held", f"{from_ms} {queuekit.now_ms(client)}")
        leases.give_back(lease)
        rounds -= 1


def test_processes_that_race_hold_no_more_than_there_are_and_the_slots_of_the_dead_come_back_by_time_alone(
    valkey, valkey_url
):
    names = ["dies", "dies-too", *(f"lives-{number}" for number in range(4))]
    for name in names:
        valkey.hset(keys.job(rq_id(f"job-{name}").encode()), "taker", f"token-{name}")
    dying, living = (
        [PROCESSES.Process(target=contend, args=(valkey_url, name, rounds)) for name in some]
        for some, rounds in ((names[:2], math.inf), (names[2:], 15))
    )

    for process in dying:
        process.start()
    until(lambda: valkey.llen("held") == 2, seconds=20, what="both slots are taken")
    for process in dying:
        os.kill(process.pid, signal.SIGKILL)
    for process in living:
        process.start()
    for process in dying + living:
        process.join(60)

    assert [process.exitcode for process in dying + living] == [-signal.SIGKILL] * 2 + [0] * 4
    spans = [tuple(map(int, one.split())) for one in valkey.lrange("held", 0, -1)]
    assert len(spans) == 2 + 4 * 15
    for begin, _ in spans:
        assert sum(other <= begin < end for other, end in spans) <= 2
    assert min(begin for begin, _ in spans[2:]) >= min(end for _, end in spans[:2])
