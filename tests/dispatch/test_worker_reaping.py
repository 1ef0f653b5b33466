"""The reaper in the worker's hands: when a container may be created, and which folders stay busy."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dispatch.gates.scopes import ScopeSlots
from dispatch.queue import containers
from dispatch.worker.attempt import attempt
from dispatch.worker.live import LiveAttempt, LiveAttempts
from dispatch.worker.reaping import Reaping, forget_gone
from runs import labels
from runs.protocols import ContainerFacts, EngineSilentError
from runs.reaper import Leftover, Reaped, Reaper
from runs.workspace.scope import hash16
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench
from tests.harness.null_runs import NullBackend

HOST, BOOT, OLDER = "aaaa", "aaaa-00000002", "aaaa-00000001"
SCOPE = hash16("/srv/site")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Engine(NullBackend):
    """An engine with containers of ours, which may be silent, or refuse to remove."""

    def __init__(self, *found: ContainerFacts, silent: bool = False, stuck: bool = False) -> None:
        self.found, self.silent, self.stuck = list(found), silent, stuck
        self.listings = 0

    def listing(self, labels):
        self.listings += 1
        if self.silent:
            raise EngineSilentError("engine-timeout")
        return list(self.found)

    def remove(self, container):
        if self.stuck:
            raise EngineSilentError("engine-timeout")
        self.found = [one for one in self.found if one.id != container]


def container(name: str = "pi-job-old", *, boot: str = OLDER, scope: str = SCOPE) -> ContainerFacts:
    marks = {labels.HOST: HOST, labels.BOOT: boot, labels.SCOPE: scope, labels.JOB: "old"}
    return ContainerFacts(id=name, name=name, status="running", labels=marks)


def reaping(engine: Engine, jobs_dir: Path, *, scopes: ScopeSlots | None = None) -> Reaping:
    return Reaping(
        Reaper(engine, host_id=HOST, boot=BOOT),
        live=LiveAttempts(),
        scopes=scopes or ScopeSlots(),
        jobs_dir=jobs_dir,
        boot=BOOT,
    )


def test_nothing_may_be_created_until_the_engine_has_listed_once(tmp_path):
    engine = Engine(silent=True)
    reaps = reaping(engine, tmp_path)
    reaps.reap()

    assert not reaps.is_clean()
    engine.silent = False
    assert reaps.is_clean()
    engine.silent = True
    assert reaps.is_clean()


def test_a_silent_engine_is_asked_once_for_all_who_wait_for_it(tmp_path):
    engine = Engine(silent=True)
    reaps = reaping(engine, tmp_path)
    entered, go_on = threading.Event(), threading.Event()
    ask = engine.listing

    def slow(wanted):
        entered.set()
        go_on.wait(10)
        return ask(wanted)

    engine.listing = slow
    first = threading.Thread(target=reaps.is_clean)
    first.start()
    entered.wait(10)
    others = [threading.Thread(target=reaps.is_clean) for _ in range(8)]
    for thread in others:
        thread.start()
    go_on.set()
    for thread in (first, *others):
        thread.join(10)

    # A thread that came after the end of the first pass asks for itself; those that waited do not.
    assert engine.listings < 9


def test_a_container_that_cannot_be_removed_keeps_its_folder_busy_until_it_is_gone(tmp_path):
    engine, scopes = Engine(container(), stuck=True), ScopeSlots()
    reaps = reaping(engine, tmp_path, scopes=scopes)

    for _ in range(3):
        reaps.reap()
        assert scopes.held == {SCOPE: 1}
    engine.stuck = False
    reaps.reap()

    assert scopes.held == {}


def test_an_engine_that_went_silent_says_nothing_about_busy_folders(tmp_path):
    engine, scopes = Engine(container(), stuck=True), ScopeSlots()
    reaps = reaping(engine, tmp_path, scopes=scopes)
    reaps.reap()

    engine.silent = True
    reaps.reap()

    assert scopes.held == {SCOPE: 1}


def test_a_folder_found_busy_by_the_first_listing_is_not_entered_by_the_job_that_asked_for_it(
    valkey, tmp_path
):
    """The boot's listing failed; a job's own look finds an older boot's container in that very folder."""
    bench = Bench(valkey)
    engine = Engine(container(), silent=True, stuck=True)
    reaps = reaping(engine, tmp_path, scopes=bench.host.scopes)
    reaps.reap()
    engine.silent = False
    object.__setattr__(bench.host, "work", replace(bench.host.work, engine_is_clean=reaps.is_clean))

    bench.attempt()

    assert queuekit.hash_of(valkey, "local-1")["reason"] == "scope-busy"
    assert bench.containers.specs == []
    assert bench.host.scopes.held == {SCOPE: 1}


@pytest.mark.parametrize("obstacle", ["silent", "stuck"])
def test_older_boots_job_folders_go_once_none_of_their_containers_can_have_one(tmp_path, obstacle):
    old, ours = tmp_path / f"job-{OLDER}-x", tmp_path / f"job-{BOOT}-x"
    old.mkdir()
    ours.mkdir()
    engine = Engine(container(), **{obstacle: True})
    reaps = reaping(engine, tmp_path)

    reaps.reap()
    assert old.exists()
    setattr(engine, obstacle, False)
    reaps.reap()
    assert not old.exists()
    assert ours.exists()


def test_only_what_the_engine_shows_to_be_gone_leaves_the_hosts_list(valkey):
    for name in ("gone", "standing", "live"):
        valkey.hset("containers:aaaa", f"pi-job-{name}", "{}")
    left = Leftover(name="pi-job-standing", job_id=None, boot=None, scope_hash=None)

    silent = forget_gone(valkey, HOST, Reaped(enumerated=False), is_live=lambda _: False, now=NOW)
    told = forget_gone(
        valkey,
        HOST,
        Reaped(enumerated=True, remaining=(left,)),
        is_live=lambda name: name == "pi-job-live",
        now=NOW,
    )

    assert (silent, told) == (0, 1)
    assert [one.name for one in containers.begun(valkey, HOST)] == ["pi-job-live", "pi-job-standing"]


@pytest.mark.parametrize("enumerated", [False, True])
def test_what_has_outlived_its_deadline_leaves_the_list_also_while_the_engine_is_silent(valkey, enumerated):
    """A container that the engine shows, or that a run claims, stays listed however old it is."""
    ages = {"fresh": 0, "late": 299, "outlived": 301, "live": 9999, "standing": 9999}
    for name, seconds in ages.items():
        deadline = round(NOW.timestamp() * 1000) - seconds * 1000
        entry = {"job": "j", "attempt": 0, "token": "t", "deadline": deadline}
        valkey.hset("containers:aaaa", name, json.dumps(entry))
    standing = tuple(
        Leftover(name=name, job_id=None, boot=None, scope_hash=None)
        for name in ("fresh", "late", "standing")
        if enumerated
    )

    forget_gone(
        valkey,
        HOST,
        Reaped(enumerated=enumerated, remaining=standing),
        is_live=lambda name: name == "live",
        now=NOW,
    )

    left = [one.name for one in containers.begun(valkey, HOST)]
    assert left == ["fresh", "late", "live", *(["standing"] if enumerated else [])]


def test_a_live_attempt_claims_its_container_before_it_is_asked_for(valkey):
    bench = Bench(valkey)
    seen: list[bool] = []
    bench.containers.meanwhile = lambda: seen.append(bench.host.live.has_container("pi-job-local-1"))

    bench.attempt()

    assert seen == [True]
    assert not bench.host.live.has_container("pi-job-local-1")


def test_an_attempt_that_asked_for_no_container_claims_none(valkey):
    bench = Bench(valkey)
    bench.enqueue()
    live = LiveAttempts()
    with live.holding(LiveAttempt(claimed=bench.claim())):
        assert not live.has_container("pi-job-local-1")


def test_the_list_of_containers_names_each_that_began(valkey):
    bench = Bench(valkey)
    bench.containers.tells_gone = False
    bench.enqueue()
    attempt(bench.host, bench.claim())

    (one,) = containers.begun(valkey, HOST)

    assert (one.name, one.job_id, one.attempt) == ("pi-job-local-1", "local-1", 0)
