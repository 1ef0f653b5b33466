"""What only a container engine can be asked for: isolation, images, names of others, networks, errors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from runs import labels
from runs.engine import Engine
from runs.protocols import EngineAnsweredError, EngineNotFoundError, EngineSilentError
from tests.harness.engine_proxy import Act, EngineProxy
from tests.runs.jobs import Jobs, exit_line, until

pytestmark = pytest.mark.docker

CREATE = "^POST /containers/create"


@pytest.fixture
def running(docker_backend: Engine, jobs: Jobs) -> str:
    """A job that lasts."""
    container = docker_backend.create(jobs.spec(orders={"delay": "60"}, environment={"PI_MODEL": "m"}))
    docker_backend.start(container)
    return container


def test_a_running_job_is_held_by_exactly_this(engine: Any, jobs: Jobs, running: str):
    inspection = engine.api.inspect_container(running)
    host, config = inspection["HostConfig"], inspection["Config"]

    assert {
        "Privileged": host["Privileged"],
        "AutoRemove": host["AutoRemove"],
        "Init": host["Init"],
        "CapAdd": host["CapAdd"],
        "CapDrop": host["CapDrop"],
        "SecurityOpt": host["SecurityOpt"],
        "PidsLimit": host["PidsLimit"],
        "ShmSize": host["ShmSize"],
        "Memory": host["Memory"],
        "MemorySwap": host["MemorySwap"],
        "NanoCpus": host["NanoCpus"],
        "ReadonlyRootfs": host["ReadonlyRootfs"],
        "Tmpfs": host.get("Tmpfs"),
        "Binds": host["Binds"],
        "Devices": host["Devices"] or [],
        "PortBindings": host["PortBindings"],
        "PublishAllPorts": host["PublishAllPorts"],
        "IpcMode": host["IpcMode"],
        "PidMode": host["PidMode"],
        "NetworkMode": host["NetworkMode"],
        "RestartPolicy": host["RestartPolicy"]["Name"],
        "LogConfig": host["LogConfig"],
    } == {
        "Privileged": False,
        "AutoRemove": False,
        "Init": True,
        "CapAdd": None,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "PidsLimit": 512,
        "ShmSize": 1 << 30,
        "Memory": 4 << 30,
        "MemorySwap": 4 << 30,
        "NanoCpus": 2 * 10**9,
        "ReadonlyRootfs": False,
        "Tmpfs": None,
        "Binds": None,
        "Devices": [],
        "PortBindings": None,
        "PublishAllPorts": False,
        "IpcMode": "private",
        "PidMode": "",
        "NetworkMode": "default",
        "RestartPolicy": "no",
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "2"}},
    }
    assert (config["Tty"], config["OpenStdin"], config["AttachStdin"]) == (False, False, False)
    assert inspection["NetworkSettings"]["Ports"] == {}
    assert sorted((m["Type"], m["Destination"], m["RW"], m["Source"]) for m in inspection["Mounts"]) == [
        ("bind", "/job", False, str(jobs.folder / "one" / "job")),
        ("bind", "/workspace", True, str(jobs.workspace("one"))),
    ]


INSIDE = {
    "touch /job/x": "touch: /job/x: Read-only file system",
    "grep CapEff /proc/self/status": "CapEff:\t0000000000000000",
    "grep CapBnd /proc/self/status": "CapBnd:\t0000000000000000",
    "grep NoNewPrivs /proc/self/status": "NoNewPrivs:\t1",
    "id -u; id -g": "1001\n1001",
    "grep /dev/shm /proc/mounts | tr ' ,' '\n' | grep size": "size=1048576k",
    "ps -o comm | sed -n 2p": "docker-init",
    "ls /dev | grep -c -E '^(sd|vd|kmsg|mem)'": "0",
    "ls /var/run/docker.sock /run/docker.sock 2>/dev/null | wc -l": "0",
}


def test_the_job_itself_finds_no_way_out(docker_backend: Engine, jobs: Jobs):
    script = "\n".join(f"{command}\necho ---" for command in INSIDE)
    container = docker_backend.create(jobs.spec(orders={"command": script}))
    docker_backend.start(container)
    until(lambda: docker_backend.inspect(container).ended)

    printed = (jobs.workspace("one") / ".fake" / "command.out").read_text().split("\n---\n")

    assert dict(zip(INSIDE, printed, strict=False)) == INSIDE


def test_the_environment_is_the_given_one_and_nothing_of_ours(docker_backend, jobs, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-of-the-worker")
    monkeypatch.setenv("HTTP_PROXY", "http://canary.invalid")
    container = docker_backend.create(jobs.spec(orders={"env-dump": ""}, environment={"PI_MODEL": "a=b c"}))
    docker_backend.start(container)
    until(lambda: docker_backend.inspect(container).ended)

    dump = (jobs.workspace("one") / ".fake" / "env-dump").read_text()
    names = {line.partition("=")[0] for line in dump.splitlines()}

    assert "PI_MODEL=a=b c" in dump.splitlines()
    assert "canary" not in dump
    assert names - {"PATH", "HOSTNAME", "HOME", "PWD", "SHLVL", "OLDPWD"} == {"PI_JOB_ID", "PI_MODEL"}


def test_a_passed_user_runs_the_job(docker_backend, jobs):
    spec = replace(jobs.spec(orders={"command": "id -u; id -g"}), user="23456:23457")
    container = docker_backend.create(spec)
    docker_backend.start(container)
    until(lambda: docker_backend.inspect(container).ended)

    assert (jobs.workspace("one") / ".fake" / "command.out").read_text() == "23456\n23457\n"


def test_the_source_of_a_mount_is_never_made(docker_backend, jobs):
    spec = jobs.spec()
    missing = jobs.folder / "missing"
    mount = replace(spec.mounts[0], source=str(missing), target="/missing")

    with pytest.raises(EngineAnsweredError, match="mount-source-missing"):
        docker_backend.create(replace(spec, mounts=(*spec.mounts, mount)))

    assert not missing.exists()


def test_an_image_is_described_by_its_labels(docker_backend, fake_image):
    facts = docker_backend.image(fake_image)

    assert facts.id.startswith("sha256:")
    assert (facts.pi_version, facts.forges, facts.user) == ("fake", None, "1001:1001")
    assert facts.capabilities == {"commands", "replicas", "anyUid"}


@pytest.fixture
def impatient(proxy: EngineProxy) -> Iterator[Engine]:
    """Our edge to the engine behind the proxy, for what ends in silence however long one waits."""
    backend = Engine(environment=proxy.environment, quick_seconds=0.3, slow_seconds=0.3)
    yield backend
    backend.close()


def test_a_missing_image_is_never_pulled(proxied, proxy, jobs):
    assert proxied.image("pi-dispatch-none:none") is None
    with pytest.raises(EngineAnsweredError, match="image-missing"):
        proxied.create(replace(jobs.spec(), image="pi-dispatch-none:none"))

    assert proxy.seen("/images/create") == 0


def test_an_image_that_the_engine_fails_to_inspect_is_missing_if_it_answers_a_ping(proxied, proxy):
    proxy.next("^GET /images/", Act.FAIL)
    pinged = proxy.seen("^GET /_ping")

    assert proxied.image("pi-job:latest") is None
    assert proxy.seen("^GET /_ping") == pinged + 1


def test_an_image_that_the_engine_fails_to_inspect_is_unknown_if_it_fails_a_ping_too(impatient, proxy):
    proxy.next("^GET /images/", Act.FAIL)
    proxy.next("^GET /_ping", Act.LOSE_REQUEST)

    with pytest.raises(EngineSilentError):
        impatient.image("pi-job:latest")


@pytest.mark.parametrize("act", [Act.LOSE_REQUEST, Act.CUT])
def test_an_image_that_nobody_answers_for_is_unknown(impatient, proxy, act):
    proxy.next("^GET /images/", act)

    with pytest.raises(EngineSilentError):
        impatient.image("pi-job:latest")


@pytest.mark.parametrize(
    ("act", "token"),
    [
        pytest.param(Act.LOSE_REQUEST, "engine-timeout", id="lost on the way"),
        pytest.param(Act.LOSE_ANSWER, "engine-timeout", id="lost on the way back"),
        pytest.param(Act.CUT, "engine-connection-lost", id="cut off"),
    ],
)
def test_a_create_without_an_answer_is_silence_of_a_reached_engine(
    impatient, proxied, proxy, jobs, act, token
):
    proxy.next(CREATE, act)

    with pytest.raises(EngineSilentError) as silence:
        impatient.create(jobs.spec())

    assert (silence.value.token, silence.value.unreachable) == (token, False)
    if act is not Act.LOSE_REQUEST:
        until(lambda: proxied.listing({labels.HOST: jobs.host_id}))


def test_a_create_that_is_answered_with_an_error_is_answered(proxied, proxy, jobs):
    proxy.next(CREATE, Act.FAIL)

    with pytest.raises(EngineAnsweredError) as answer:
        proxied.create(jobs.spec())

    assert (answer.value.token, answer.value.conflict) == ("engine-500", False)


def test_other_errors_than_not_found_are_no_answer_to_a_question(proxied, proxy, jobs):
    proxy.next("^GET /containers/", Act.FAIL)

    with pytest.raises(EngineSilentError, match="engine-500") as silence:
        proxied.inspect("whatever")

    assert not silence.value.unreachable


def test_a_quiet_container_is_followed_for_longer_than_an_answer_may_take(docker_backend, jobs):
    impatient = Engine(environment=os.environ, quick_seconds=0.6)
    container = docker_backend.create(jobs.spec(orders={"delay": "1"}))
    docker_backend.start(container)
    output = impatient.follow(container)

    read = b""
    while data := output.read():
        read += data
    output.close()
    impatient.close()

    assert exit_line(read)["code"] == 0


def test_an_engine_that_is_not_there_is_unreachable_and_found_when_it_comes(tmp_path, proxy, jobs):
    proxy.down()
    backend = Engine(environment=proxy.environment)

    with pytest.raises(EngineSilentError) as silence:
        backend.create(jobs.spec())
    proxy.listen()
    with pytest.raises(EngineNotFoundError):
        backend.inspect("nobody")
    proxy.down()
    with pytest.raises(EngineSilentError) as again:
        backend.create(jobs.spec())
    backend.close()

    assert silence.value.unreachable
    assert again.value.unreachable


def test_the_address_comes_from_the_given_environment_only(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")

    Engine(environment={}).ping()
    with pytest.raises(EngineSilentError):
        Engine(environment={"DOCKER_HOST": f"unix://{tmp_path}/nobody.sock"}).ping()


def test_many_threads_share_one_engine(docker_backend, jobs):
    specs = [jobs.spec(f"job{n}") for n in range(24)]

    with ThreadPoolExecutor(12) as pool:
        ids = list(pool.map(docker_backend.create, specs))
        names = [facts.name for facts in pool.map(docker_backend.inspect, ids)]
        list(pool.map(docker_backend.remove, ids))

    assert names == [spec.name for spec in specs]
    assert docker_backend.listing({labels.HOST: jobs.host_id}) == []


def test_connections_are_used_again_instead_of_piling_up(proxied, proxy):
    for _ in range(30):
        proxied.listing({})

    assert proxy.connections <= 3


def test_a_network_in_use_is_freed_of_its_containers_and_removed(docker_backend, jobs, engine):
    found = _network(engine, jobs, f"pi-job-{jobs.host_id}-one")
    stranger = engine.api.create_container_from_config(
        {"Image": jobs.image, "Labels": {labels.HOST: jobs.host_id}, "Entrypoint": ["sleep", "60"]},
        f"proxy-{jobs.host_id}",
    )["Id"]
    engine.api.connect_container_to_network(stranger, found)
    engine.api.start(stranger)

    [facts] = docker_backend.networks({labels.HOST: jobs.host_id})
    docker_backend.remove_network(found)
    docker_backend.remove_network(found)

    assert facts.attached == (f"proxy-{jobs.host_id}",)
    assert docker_backend.networks({labels.HOST: jobs.host_id}) == []
    assert engine.api.inspect_container(stranger)["State"]["Running"]


def _network(engine: Any, jobs: Jobs, name: str, extra: Mapping[str, str] | None = None) -> str:
    ours = {labels.HOST: jobs.host_id, labels.BOOT: jobs.boot, **(extra or {})}
    return engine.api.create_network(name, internal=True, labels=ours, check_duplicate=True)["Id"]
