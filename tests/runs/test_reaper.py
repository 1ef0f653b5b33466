from __future__ import annotations

import json
from typing import Any

import pytest

from runs import labels
from runs.engine import Engine
from runs.reaper import Leftover, Reaped, Reaper
from tests.harness.engine_proxy import Act, EngineProxy
from tests.runs.jobs import Jobs

pytestmark = pytest.mark.docker


@pytest.fixture
def reaper(docker_backend: Engine, jobs: Jobs) -> Reaper:
    return Reaper(docker_backend, host_id=jobs.host_id, boot=jobs.boot)


def nobody(name: str) -> bool:
    return False


def everybody(name: str) -> bool:
    return True


def names(engine: Any, jobs: Jobs) -> set[str]:
    found = engine.api.containers(all=True, filters={"label": [f"{labels.HOST}={jobs.host_id}"]})
    return {name.removeprefix("/") for container in found for name in container["Names"]}


def leave(backend: Engine, jobs: Jobs, job: str, *, boot: str | None = None, running: bool = False) -> str:
    spec = jobs.spec(job, {"delay": "60"}, boot=boot)
    backend.create(spec)
    if running:
        backend.start(spec.name)
    return spec.name


def test_containers_of_other_boots_are_removed_running_or_not(reaper, docker_backend, jobs, engine):
    old = f"{jobs.host_id}-00000000"
    first = leave(docker_backend, jobs, "first", boot=old)
    second = leave(docker_backend, jobs, "second", boot=old, running=True)

    reaped = reaper.reap(is_live=everybody)

    assert reaped.enumerated
    assert {left.name for left in reaped.removed} == {first, second}
    assert reaped.remaining == ()
    assert names(engine, jobs) == set()


def test_of_this_boot_only_what_no_run_claims_is_removed(reaper, docker_backend, jobs, engine):
    live = leave(docker_backend, jobs, "live", running=True)
    lost = leave(docker_backend, jobs, "lost", running=True)

    reaped = reaper.reap(is_live=lambda name: name == live)

    assert reaped.removed == (Leftover(name=lost, job_id="lost", boot=jobs.boot, scope_hash="scope-lost"),)
    assert names(engine, jobs) == {live}


def test_what_only_looks_like_ours_is_never_touched(reaper, engine, jobs, docker_backend):
    def foreign(name: str, *, host: str) -> str:
        found = {labels.HOST: host, labels.BOOT: "old"} if host else {}
        body = {"Image": jobs.image, "Labels": found, "Entrypoint": ["sleep", "60"]}
        return engine.api.create_container_from_config(body, name)["Id"]

    alike = [
        foreign(f"pi-job-{jobs.host_id}-operators-own", host=""),
        foreign(f"pi-job-{jobs.host_id}-neighbour", host=f"{jobs.host_id}x"),
        foreign(f"my-pi-job-{jobs.host_id}", host=jobs.host_id),
    ]
    engine.api.start(alike[0])
    try:
        reaped = reaper.reap(is_live=nobody)
        states = [engine.api.inspect_container(container)["State"]["Status"] for container in alike]
    finally:
        for container in alike:
            engine.api.remove_container(container, force=True)

    assert reaped == Reaped(enumerated=True)
    assert states == ["running", "created", "created"]


def test_an_engine_that_does_not_list_has_told_nothing(proxied, proxy: EngineProxy, jobs, capsys):
    proxy.next("^GET /containers/json", Act.FAIL)

    reaped = Reaper(proxied, host_id=jobs.host_id, boot=jobs.boot).reap(is_live=nobody)

    assert reaped == Reaped(enumerated=False)
    assert json.loads(capsys.readouterr().out)["event"] == "reaper_skipped"


def test_what_could_not_be_removed_keeps_its_scope_busy_until_the_next_pass(
    proxied, proxy, docker_backend, jobs, capsys
):
    old = f"{jobs.host_id}-00000000"
    stuck = leave(docker_backend, jobs, "stuck", boot=old, running=True)
    proxy.next("^DELETE /containers/", Act.FAIL)
    reaper = Reaper(proxied, host_id=jobs.host_id, boot=jobs.boot)

    first = reaper.reap(is_live=nobody)
    second = reaper.reap(is_live=nobody)

    assert [left.name for left in first.remaining] == [stuck]
    assert (first.enumerated, first.removed, first.busy_scopes) == (True, (), {"scope-stuck"})
    assert [left.name for left in second.removed] == [stuck]
    assert second.busy_scopes == frozenset()
    told = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["reap_unconfirmed", "reaped_container"]


def test_a_pass_ends_after_its_time_and_reports_the_rest(docker_backend, jobs, engine):
    left = {leave(docker_backend, jobs, f"job{n}", boot="old") for n in range(3)}

    reaped = Reaper(docker_backend, host_id=jobs.host_id, boot=jobs.boot, budget_seconds=0).reap(
        is_live=nobody
    )

    assert {each.name for each in reaped.remaining} == left
    assert names(engine, jobs) == left


def test_networks_go_with_their_containers(reaper, docker_backend, jobs, engine):
    name = leave(docker_backend, jobs, "old", boot="old", running=True)
    network = _network(engine, jobs, name, boot="old")
    engine.api.connect_container_to_network(name, network)

    reaper.reap(is_live=everybody)

    assert _networks(engine, jobs) == []


def test_a_network_is_taken_from_a_proxy_but_not_from_a_live_job(reaper, docker_backend, jobs, engine):
    live = leave(docker_backend, jobs, "live", running=True)
    used = _network(engine, jobs, f"pi-job-{jobs.host_id}-used", boot="old")
    engine.api.connect_container_to_network(live, used)
    unused = _network(engine, jobs, f"pi-job-{jobs.host_id}-unused", boot="old")
    body = {"Image": jobs.image, "Labels": {labels.HOST: jobs.host_id}, "Entrypoint": ["sleep", "60"]}
    proxy = engine.api.create_container_from_config(body, f"proxy-{jobs.host_id}")["Id"]
    engine.api.connect_container_to_network(proxy, unused)
    engine.api.start(proxy)

    reaper.reap(is_live=everybody)

    assert _networks(engine, jobs) == [used]
    assert engine.api.inspect_container(proxy)["State"]["Running"]


def test_networks_of_others_and_of_live_jobs_stay(reaper, jobs, engine):
    live = _network(engine, jobs, f"pi-job-{jobs.host_id}-live", boot=jobs.boot)
    named_otherwise = _network(engine, jobs, f"x-pi-job-{jobs.host_id}", boot="old")

    reaper.reap(is_live=everybody)

    assert sorted(_networks(engine, jobs)) == sorted([live, named_otherwise])


def test_networks_that_cannot_be_listed_do_not_hold_up_the_boot(proxied, proxy, jobs, docker_backend):
    leave(docker_backend, jobs, "old", boot="old")
    proxy.next("^GET /networks", Act.FAIL)

    reaped = Reaper(proxied, host_id=jobs.host_id, boot=jobs.boot).reap(is_live=nobody)

    assert (reaped.enumerated, len(reaped.removed)) == (True, 1)


def _network(engine: Any, jobs: Jobs, name: str, *, boot: str) -> str:
    ours = {labels.HOST: jobs.host_id, labels.BOOT: boot}
    return engine.api.create_network(name, internal=True, labels=ours, check_duplicate=True)["Id"]


def _networks(engine: Any, jobs: Jobs) -> list[str]:
    found = engine.api.networks(filters={"label": [f"{labels.HOST}={jobs.host_id}"]})
    return [network["Id"] for network in found]
