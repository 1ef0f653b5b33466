"""Which jobs spend an entry of the triggers file, and what their records say of it."""

from __future__ import annotations

import json

import pytest

from dispatch.ids import slot_of
from runs.oneshot import OneShot, one_shot_of, read, slot_hash
from runs.recording import facts_of
from runs.shape import ShapeError
from runs.workspace.scope import hash16
from tests.harness.records import a_record

SPENT = OneShot(index=3, number=7, slot=hash16("fix"))


def job(*, flow: object = "fix", command: object = None, **matched: object) -> dict[str, object]:
    matched = {"index": 3, "type": "issue", "once": True, "number": 7, **matched}
    return {"kind": "github", "flow": flow, "command": command, "trigger": {"matched": matched}}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(job(), SPENT, id="a flow"),
        pytest.param(
            job(flow=None, command="tidy up"),
            OneShot(index=3, number=7, slot=hash16("cmd:tidy up")),
            id="a command",
        ),
        pytest.param(job(once=False), None, id="not once"),
        pytest.param(job(once=None), None, id="does not say"),
        pytest.param(job(once=1), None, id="once is no truth"),
        pytest.param(job(index=None), None, id="nowhere"),
        pytest.param(job(index=True), None, id="no position"),
        pytest.param(job(number="7"), None, id="no number"),
        pytest.param({"kind": "local", "trigger": {"id": "nightly"}}, None, id="a schedule's"),
        pytest.param({"trigger": [1]}, None, id="rubbish"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_a_job_spends_the_entry_that_it_matched_if_that_is_for_once(data, found):
    assert one_shot_of(data) == found
    assert facts_of("gh-1", data).once == found


@pytest.mark.parametrize("which", [{"flow": "fix"}, {"command": "fix it"}, {}])
def test_the_digest_is_of_the_words_that_ids_are_made_of(which):
    given = {"flow": None, "command": None, **which}

    assert slot_hash(**given) == hash16(slot_of(**given))


def test_only_a_record_of_such_a_job_has_the_key():
    assert "once" not in a_record().to_json()
    assert a_record(once=SPENT).to_json()["once"] == {"index": 3, "number": 7, "slot": SPENT.slot}


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"index": 3, "number": 7},
        {"index": -1, "number": 7, "slot": SPENT.slot},
        {"index": 3, "number": 7, "slot": SPENT.slot + "\n"},
        {"index": 3, "number": 2**60, "slot": SPENT.slot},
    ],
)
def test_what_is_not_of_this_shape_is_none(value):
    with pytest.raises(ShapeError):
        read(json.loads(json.dumps(value)))
