from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

import pytest

from runs.protocols import ContainerFacts, EngineSilentError
from runs.watcher import Watcher
from tests.runs.jobs import until


class News:
    """An event stream that a test speaks into."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.over = threading.Event()
        self._said: list[str] = []
        self._more = threading.Condition()

    def say(self, container: str) -> None:
        with self._more:
            self._said.append(container)
            self._more.notify()

    def __iter__(self) -> Iterator[str]:
        while not self.over.is_set():
            with self._more:
                self._more.wait_for(lambda: self._said or self.over.is_set())
                said, self._said = self._said, []
            yield from said

    def close(self) -> None:
        self.over.set()
        with self._more:
            self._more.notify()


class Containers:
    """A backend that lists what a test puts in, and counts how often it is asked."""

    def __init__(self) -> None:
        self.going: set[str] = set()
        self.ended: set[str] = set()
        self.asked = 0
        self.listened = 0
        self.silent = False
        self.deaf = False
        self.broken = False
        self.news = News()

    def listing(self, labels: Mapping[str, str]) -> list[ContainerFacts]:
        self.asked += 1
        if self.silent:
            raise EngineSilentError("engine-timeout")
        if self.broken:
            raise KeyError("a bug")
        found = [(container, "running") for container in self.going]
        found += [(container, "exited") for container in self.ended]
        return [ContainerFacts(id=each, name=each, status=status, labels={}) for each, status in found]

    def changes(self, labels: Mapping[str, str]) -> News:
        self.listened += 1
        if self.deaf:
            raise EngineSilentError("engine-unreachable")
        self.news = News()
        return self.news


@pytest.fixture
def containers() -> Containers:
    return Containers()


def watching(containers: Containers, **seconds: float) -> Watcher:
    return Watcher(containers, labels={}, **{"listened_seconds": 0.05, "deaf_seconds": 0.02, **seconds})


@pytest.fixture
def watcher(containers: Containers) -> Iterator[Watcher]:
    watcher = watching(containers)
    yield watcher
    watcher.close()


def test_nothing_is_asked_while_nothing_is_watched(containers, watcher):
    time.sleep(0.15)
    before = containers.asked
    containers.going.add("a")
    watcher.watch("a", lambda: None)
    until(lambda: containers.asked > 2)
    watcher.forget("a")
    time.sleep(0.1)
    after = containers.asked
    time.sleep(0.2)

    assert before == 0
    assert containers.asked == after


@pytest.mark.parametrize(
    "fate",
    [
        pytest.param(lambda containers: containers.ended.add("a"), id="has ended"),
        pytest.param(lambda containers: None, id="is gone"),
    ],
)
def test_a_container_that_is_over_rings_without_any_news(containers, watcher, fate):
    containers.deaf = True
    containers.going |= {"a", "b"}
    rung = []
    watcher.watch("a", lambda: rung.append("a"))
    watcher.watch("b", lambda: rung.append("b"))
    until(lambda: containers.asked > 3)
    rung_before = list(rung)

    containers.going.discard("a")
    fate(containers)
    until(lambda: rung)

    assert rung_before == []
    assert set(rung) == {"a"}


def test_news_ring_at_once_though_the_next_listing_is_far_away(containers):
    watcher = watching(containers, listened_seconds=60, deaf_seconds=60)
    containers.going.add("a")
    rung = threading.Event()
    watcher.watch("a", rung.set)
    until(lambda: containers.listened)

    until(lambda: containers.news.say("a") or rung.is_set(), seconds=2)
    containers.news.say("nobody we know")
    watcher.close()

    assert containers.asked == 0


def test_one_listing_serves_all_that_are_watched(containers):
    watcher = watching(containers, deaf_seconds=0.2)
    containers.ended |= {str(n) for n in range(50)}
    rung = set()
    for n in range(50):
        watcher.watch(str(n), lambda n=n: rung.add(str(n)))

    until(lambda: len(rung) == 50)
    watcher.close()

    assert containers.asked <= 2


def test_a_stream_that_ends_silently_is_opened_again_and_nothing_is_missed(containers, watcher):
    containers.going.add("a")
    rung = threading.Event()
    watcher.watch("a", rung.set)
    until(lambda: containers.listened == 1)

    containers.news.close()
    until(lambda: containers.listened == 2)
    containers.going.discard("a")

    assert rung.wait(2)


def test_an_end_that_the_news_kept_silent_about_makes_it_look_more_often(containers):
    watcher = watching(containers, listened_seconds=0.4, deaf_seconds=0.02)
    containers.going |= {"a", "b"}
    rung = []
    watcher.watch("a", lambda: rung.append("a"))
    watcher.watch("b", lambda: rung.append("b"))
    until(lambda: containers.news.say("b") or "b" in rung)

    until(lambda: _calls(containers, 0.2) <= 1)
    containers.going.discard("a")
    until(lambda: "a" in rung)
    often = _calls(containers, 0.3)
    watcher.close()

    assert often >= 5


def test_silence_is_told_once_and_its_end_once_and_nobody_rings_for_it(containers, watcher, capsys):
    containers.silent = True
    containers.going.add("a")
    rung = []
    watcher.watch("a", lambda: rung.append("a"))
    until(lambda: containers.asked > 4)
    containers.silent = False
    asked = containers.asked
    until(lambda: containers.asked > asked + 3)

    told = capsys.readouterr().out
    assert rung == []
    assert (told.count("engine_silent"), told.count("engine_back")) == (1, 1)


def test_a_bug_in_a_listing_does_not_end_the_watch(containers, watcher, capsys):
    containers.broken = True
    rung = threading.Event()
    watcher.watch("a", rung.set)
    until(lambda: containers.asked > 2)
    containers.broken = False

    assert rung.wait(2)
    assert "watcher_fault" in capsys.readouterr().out


def test_closing_ends_the_threads(containers):
    before = set(threading.enumerate())
    watcher = watching(containers)
    containers.going.add("a")
    watcher.watch("a", lambda: None)
    until(lambda: containers.listened and containers.asked)

    watcher.close()

    until(lambda: set(threading.enumerate()) <= before, seconds=2)


def _calls(containers: Containers, seconds: float) -> int:
    before = containers.asked
    time.sleep(seconds)
    return containers.asked - before
