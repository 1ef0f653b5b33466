"""Whether every worker has an operator's file: who has it, who has not, and what is said of that."""

from __future__ import annotations

import pytest

from dispatch.console.adoption import PATIENCE_MS, SETTINGS, TRIGGERS, WINDOWS, Step, Tone, digest_of, judge
from dispatch.operator_files.live import LiveFile
from tests.dispatch.fleetkit import row

HERE = digest_of(b"this")
OTHER = digest_of(b"that")


def host(name="alpha", *, has=HERE, **changes):
    return row(name, fp_triggers=has, **changes)


@pytest.mark.parametrize(
    ("rows", "own", "age_ms", "tone", "said"),
    [
        pytest.param([host()], "alpha", 0, "good", "The worker of alpha has taken", id="has it"),
        pytest.param([host(), host("bravo")], "alpha", 0, "good", "Every worker (2) has", id="all have it"),
        pytest.param([], "alpha", 0, "bad", "No worker is there", id="nobody"),
        pytest.param([host(age_ms=91_000)], "alpha", 0, "bad", "No worker is there", id="gone"),
        pytest.param([host(has=OTHER)], "alpha", PATIENCE_MS - 1, "calm", "give it half", id="in time"),
        pytest.param(
            [host(), host("bravo", has=OTHER), host("charlie", has=OTHER)],
            *("alpha", PATIENCE_MS - 1, "calm", "bravo, charlie have not said so yet."),
            id="others in time",
        ),
        pytest.param([host(has=OTHER)], "alpha", PATIENCE_MS, "bad", "over for 30 s. It reads", id="late"),
        pytest.param([host(has=OTHER)], "alpha", None, "bad", "version over. It reads", id="age unknown"),
        pytest.param([host(has=OTHER)], None, 2**40, "bad", "this host (alpha)", id="the only one is this"),
        pytest.param([host(has="")], "alpha", 2**40, "bad", "Set PI_TRIGGERS_FILE for it", id="no file"),
        pytest.param(
            [host(), host("bravo", has=OTHER), host("charlie", has=OTHER)],
            *("alpha", 2**40, "warn", "bravo, charlie have another version"),
            id="others differ",
        ),
        pytest.param(
            [host(), host("bravo", has="")], "alpha", 0, "warn", "bravo reads no such", id="no file"
        ),
        pytest.param([host("bravo")], "alpha", 0, "good", "worker of bravo has", id="only another has it"),
        pytest.param([host("bravo", has="x")], "alpha", 0, "calm", "(alpha) is not there", id="own is gone"),
        pytest.param([host(has="x"), host("bravo")], None, 2**40, "warn", "bravo has this", id="own unknown"),
    ],
)
def test_it_is_said_who_has_the_file(rows, own, age_ms, tone, said):
    found = judge(rows, HERE, TRIGGERS, own=own, age_ms=age_ms)

    assert (found.tone, said in " ".join(found.sentences)) == (tone, True), found.sentences
    assert found.is_complete is (tone == Tone.GOOD)


def test_of_schedules_of_several_hosts_it_is_said_that_they_come_a_little_later():
    rows = [host(fp_pause=HERE), host("bravo", fp_pause=HERE)]

    def said(rows, kind, age_ms):
        return judge(rows, HERE, kind, own="alpha", age_ms=age_ms).sentences[1:]

    assert said(rows, TRIGGERS, PATIENCE_MS - 1) == (TRIGGERS.soon,)
    assert said(rows, TRIGGERS, PATIENCE_MS) == said(rows[:1], TRIGGERS, 0) == said(rows, WINDOWS, 0) == ()


def test_each_kind_of_file_has_its_own_digest_and_none_is_one_state():
    found = judge([row("a", fp_settings="", fp_triggers=HERE)], "", SETTINGS, own=None, age_ms=None)

    assert [one.step for one in found.hosts] == [Step.HAS]


def test_a_worker_without_settings_has_not_read_the_new_file_yet():
    """It reads none only where nothing names one, and the settings file always has a name."""
    rows = [row("a", fp_settings="", fp_pause="")]

    steps = [judge(rows, HERE, kind, own=None, age_ms=None).hosts[0].step for kind in (SETTINGS, WINDOWS)]
    assert steps == [Step.OTHER, Step.NONE]


def test_the_digest_is_the_one_that_a_worker_publishes(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"some content")
    followed = LiveFile(path, bytes, label="triggers", count=len)
    followed.load()

    assert digest_of(b"some content") == followed.digest
