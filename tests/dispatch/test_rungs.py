from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from dispatch.rungs import Defer, Held, Judging, Pass, Taking, climb
from runs.outcome import InfraFault, Reason, Refusal

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
LATER = Defer(until=NOW, reason="scope-busy", scope_hash="ab")
NEVER = Refusal(Reason.JOB_IMAGE_MISSING)


def asking(name: str, answer: object, seen: list[str]) -> Judging[None]:
    return Judging(name=name, read=lambda _: seen.append(name), judge=lambda _facts, _now: answer)


def never_stopped() -> bool:
    return False


@pytest.mark.parametrize("answer", [pytest.param(LATER, id="defer"), pytest.param(NEVER, id="refuse")])
def test_the_first_rung_that_objects_decides_and_later_ones_are_not_read(answer):
    seen: list[str] = []
    rungs = (asking("a", Pass(), seen), asking("b", answer, seen), asking("c", Pass(), seen))

    with ExitStack() as held:
        got = climb(rungs, None, held, now=NOW, stop_asked=never_stopped)

    assert got == answer
    assert seen == ["a", "b"]


def test_what_was_held_is_released_in_reverse_order_when_the_attempt_ends():
    released: list[str] = []

    def holding(name: str) -> Taking[None]:
        return Taking(name=name, take=lambda _: Held(lambda: released.append(name)))

    with ExitStack() as held:
        got = climb((holding("slot"), holding("folder")), None, held, now=NOW, stop_asked=never_stopped)
        assert released == []

    assert got == Pass()
    assert released == ["folder", "slot"]


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(lambda _: LATER, id="defers"),
        pytest.param(lambda _: NEVER, id="refuses"),
        pytest.param(lambda _: (_ for _ in ()).throw(InfraFault(detail="silent")), id="cannot tell"),
        pytest.param(lambda _: (_ for _ in ()).throw(ValueError("a bug")), id="breaks"),
    ],
)
def test_every_way_off_the_ladder_releases_what_was_held(ending):
    released: list[str] = []
    rungs = (
        Taking(name="folder", take=lambda _: Held(lambda: released.append("folder"))),
        Taking(name="x", take=ending),
    )

    try:
        with ExitStack() as held:
            climb(rungs, None, held, now=NOW, stop_asked=never_stopped)
    except (InfraFault, ValueError):
        pass

    assert released == ["folder"]


def test_a_stop_asked_in_between_ends_the_climb_without_an_answer():
    seen: list[str] = []
    rungs = (asking("a", Pass(), seen), asking("b", Pass(), seen))

    with ExitStack() as held:
        got = climb(rungs, None, held, now=NOW, stop_asked=lambda: bool(seen))

    assert got is None
    assert seen == ["a"]


def test_a_stop_asked_during_the_last_rung_counts_too():
    seen: list[str] = []

    with ExitStack() as held:
        got = climb((asking("a", Pass(), seen),), None, held, now=NOW, stop_asked=lambda: bool(seen))

    assert got is None
