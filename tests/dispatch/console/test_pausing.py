"""What is said of a pause and a resume, to people of a terminal and of a page alike."""

from __future__ import annotations

import pytest

from dispatch.console.pause_shown import about, in_short
from dispatch.console.pausing import Resumed
from hosts.switches import PauseFlag, Switches

NOW = 1_800_000_000_000
ANN = PauseFlag(by="ann", reason="fire", since_ms=NOW, until_ms=NOW + 60_000)
NOBODY = PauseFlag(by="", reason="", since_ms=0, until_ms=None)
A, B = "pi-jobs@a", "pi-jobs@b"


@pytest.mark.parametrize(
    ("fleet", "own", "on", "refusal", "remedy"),
    [
        (None, {A: None, B: None}, "", "", None),
        (
            ANN,
            {A: None, B: None},
            " on URL",
            f"Still paused on URL: {A}, {B}, because the whole fleet is paused.",
            "That ends that.",
        ),
        (
            None,
            {A: None, B: ANN},
            "",
            f"Still paused: {B}, because somebody paused them again.",
            "Resuming them again ends that.",
        ),
    ],
    ids=["free", "fleet", "again"],
)
def test_a_resume_says_what_holds_the_queues_all_the_same(fleet, own, on, refusal, remedy):
    found = Resumed(queues=(A, B), ended=(B,), held=Switches(now_ms=NOW, fleet=fleet, queues=own))

    assert found.refusal(on=on) == refusal
    assert not refusal or found.remedy(of_fleet="That") == remedy
    assert found.said(on=on) == f"Resumed {B}; {A} had no pause of its own{on and f',{on}'}."


def test_a_pause_says_who_why_and_until_when_as_far_as_is_known():
    assert about(ANN) == "by ann since 2027-01-15 08:00:00 UTC until 2027-01-15 08:01:00 UTC: fire"
    assert (about(NOBODY), about(NOBODY, ended="undrained")) == ("until resumed", "until undrained")
    assert (in_short(ANN, NOW), in_short(NOBODY, NOW)) == ("paused by ann: fire (ends in 1 min)", "paused")
