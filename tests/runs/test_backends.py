"""The contract that every backend keeps (`runs.protocols.Backend`)."""

from __future__ import annotations

import threading

import pytest

from pidispatch_site.errors import ConfigurationError
from runs import labels
from runs.engine import Engine
from runs.protocols import Backend, EngineAnsweredError, EngineNotFoundError
from runs.result import TAIL_BYTES
from tests.runs.jobs import Jobs, exit_line, until


@pytest.fixture(params=[pytest.param("engine", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.getfixturevalue({"engine": "docker_backend"}[request.param])


def ended(backend: Backend, container: str) -> bool:
    return backend.inspect(container).ended


def test_a_container_goes_from_created_over_running_to_exited_and_is_removed(backend, jobs: Jobs):
    spec = jobs.spec(orders={"delay": "0.3", "exit-code": "2"})

    container = backend.create(spec)
    created = backend.inspect(spec.name)
    backend.start(container)
    running = backend.inspect(container)
    until(lambda: ended(backend, container))
    exited = backend.inspect(container)
    backend.remove(container)

    assert (created.id, created.name, created.status) == (container, spec.name, "created")
    assert spec.labels.items() <= created.labels.items()
    assert (created.exit_code, running.status, running.exit_code) == (None, "running", None)
    assert (exited.status, exited.exit_code, exited.oom_killed) == ("exited", 2, False)
    with pytest.raises(EngineNotFoundError):
        backend.inspect(container)


def test_a_name_can_be_taken_once_and_again_right_after_the_removal(backend, jobs: Jobs):
    spec = jobs.spec()
    backend.create(spec)

    with pytest.raises(EngineAnsweredError) as refused:
        backend.create(spec)
    backend.remove(spec.name)

    assert refused.value.conflict
    assert backend.create(spec)


def test_what_is_not_there_is_not_found_stopped_and_removed(backend, jobs: Jobs):
    name = jobs.spec().name

    backend.stop(name, grace_seconds=1)
    backend.remove(name)

    assert backend.discard(name)
    for question in (backend.inspect, backend.tail, backend.follow):
        with pytest.raises(EngineNotFoundError):
            question(name)


def test_a_running_container_is_not_discarded_and_an_ended_one_is(backend, jobs: Jobs):
    container = backend.create(jobs.spec(orders={"delay": "60"}))
    backend.start(container)

    discarded_while_running = backend.discard(container)
    backend.stop(container, grace_seconds=2)
    discarded_after_its_end = backend.discard(container)

    assert (discarded_while_running, discarded_after_its_end) == (False, True)
    with pytest.raises(EngineNotFoundError):
        backend.inspect(container)


def test_stopping_asks_first_and_may_be_repeated(backend, jobs: Jobs):
    container = backend.create(jobs.spec(orders={"delay": "60"}))
    backend.start(container)
    until(lambda: jobs.has_said_something(backend, container))

    backend.stop(container, grace_seconds=5)
    backend.stop(container, grace_seconds=5)

    assert backend.inspect(container).exit_code == 2
    assert exit_line(backend.tail(container))["reason"] == "aborted"


def test_a_running_container_is_removed_by_force(backend, jobs: Jobs):
    container = backend.create(jobs.spec(orders={"delay": "60", "ignore-term": ""}))
    backend.start(container)

    backend.remove(container)

    with pytest.raises(EngineNotFoundError):
        backend.inspect(container)


def test_a_listing_finds_what_carries_all_labels_in_any_state(backend, jobs: Jobs):
    first, second = jobs.spec("first"), jobs.spec("second", boot="other-boot")
    backend.create(first)
    backend.create(second)

    of_the_host = backend.listing({labels.HOST: jobs.host_id})
    of_the_boot = backend.listing({labels.HOST: jobs.host_id, labels.BOOT: jobs.boot})

    assert {facts.name for facts in of_the_host} == {first.name, second.name}
    assert [(facts.name, facts.status) for facts in of_the_boot] == [(first.name, "created")]
    assert {first.name, second.name} <= {facts.name for facts in backend.listing({})}
    assert backend.listing({labels.HOST: "nobody"}) == []


@pytest.mark.parametrize(
    "orders",
    [
        pytest.param({"output-bytes": "300000"}, id="many lines"),
        pytest.param({"line-bytes": "300000"}, id="one long line"),
    ],
)
def test_the_tail_is_the_end_of_the_output_and_bounded(backend, jobs: Jobs, orders):
    container = backend.create(jobs.spec(orders=orders))
    backend.start(container)
    until(lambda: ended(backend, container))

    tail = backend.tail(container)

    assert len(tail) <= TAIL_BYTES
    assert exit_line(tail)["event"] == "exit"


def test_following_gives_the_whole_output_and_ends_with_the_container(backend, jobs: Jobs):
    container = backend.create(jobs.spec(orders={"delay": "0.3", "output-bytes": "100000"}))
    backend.start(container)
    output = backend.follow(container)

    read = b""
    while data := output.read():
        read += data
    output.close()
    output.close()

    assert read.count(b"a line of the fake runner") >= 100000 // 26
    assert read.endswith(backend.tail(container))


def test_closing_wakes_a_reader_that_waits(backend, jobs: Jobs):
    container = backend.create(jobs.spec(orders={"delay": "60"}))
    backend.start(container)
    until(lambda: jobs.has_said_something(backend, container))
    output = backend.follow(container)
    read = []

    def reading() -> None:
        while data := output.read():
            read.append(data)

    reader = threading.Thread(target=reading)
    reader.start()
    until(lambda: read)
    output.close()
    reader.join(2)

    assert not reader.is_alive()


def test_news_name_the_container_that_ended_and_no_other(backend, jobs: Jobs):
    news = backend.changes({labels.HOST: jobs.host_id, labels.BOOT: jobs.boot})
    heard = []
    listener = threading.Thread(target=lambda: heard.extend(news))
    listener.start()
    foreign = backend.create(jobs.spec("foreign", boot="other-boot"))
    ours = backend.create(jobs.spec("ours"))
    until(lambda: _ended_after_start(backend, foreign))
    until(lambda: _ended_after_start(backend, ours))
    until(lambda: _closed(news, listener))

    assert heard == [ours]


def test_an_image_that_is_not_there_is_none(backend, jobs: Jobs):
    assert backend.image("pi-dispatch-none:none") is None


def test_networks_of_nobody_are_none(backend, jobs: Jobs):
    assert backend.networks({labels.HOST: jobs.host_id}) == []


def _ended_after_start(backend: Backend, container: str) -> bool:
    if backend.inspect(container).status == "created":
        backend.start(container)
    return ended(backend, container)


def _closed(news, listener: threading.Thread) -> bool:
    news.close()
    listener.join(1)
    return not listener.is_alive()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"DOCKER_CERT_PATH": "/nonexistent"}, id="no certificates"),
        pytest.param({"DOCKER_CERT_PATH": "/nonexistent", "DOCKER_TLS_VERIFY": "1"}, id="none to verify by"),
    ],
)
def test_an_encrypted_engine_without_its_certificates_is_a_matter_of_configuration(settings):
    with pytest.raises(ConfigurationError, match=r"DOCKER_CERT_PATH must name a folder with ca\.pem"):
        Engine(environment={"DOCKER_HOST": "tcp://127.0.0.1:1", **settings})
