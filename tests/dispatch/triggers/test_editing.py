"""Edits of the raw file: places, what stays untouched, and how a one-shot stands."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.triggers import editing, entry_places, one_shots
from dispatch.triggers.one_shots import Armed, Changed, Spent
from dispatch.triggers.parse import parse
from pidispatch_site.errors import ConfigurationError
from runs.oneshot import OneShot, slot_hash
from tests.dispatch.triggers.one_shots import ONCE, SPENT_BY, cron, entry

FILE = {"comment": "kept", "triggers": [cron("a"), entry(), cron("7"), cron("b.c")], "z": 1}
NEW = cron("new")


@pytest.mark.parametrize(
    ("place", "index"),
    [("0", 0), ("1", 1), ("a", 0), ("b.c", 3), ("index:3", 3), ("id:b.c", 3), ("7", 2), ("id:7", 2)],
)
def test_an_entry_is_named_by_its_index_or_by_its_id(place, index):
    before = copy.deepcopy(FILE)

    changed, removed = editing.edit(FILE, place, NEW), editing.remove(FILE, place)

    assert [one for one in changed["triggers"] if one not in before["triggers"]] == [NEW]
    assert changed["triggers"][index] == NEW
    assert removed["triggers"] == before["triggers"][:index] + before["triggers"][index + 1 :]
    assert before == FILE
    for found in (changed, removed):
        assert list(found) == list(FILE)


def test_an_entry_is_added_behind_the_others():
    assert editing.add(FILE, NEW)["triggers"] == [*FILE["triggers"], NEW]
    assert editing.add(editing.EMPTY, NEW) == {"triggers": [NEW]}
    assert editing.EMPTY == {"triggers": []}


@pytest.mark.parametrize(
    ("document", "place", "says"),
    [
        (FILE, "4", "there is no entry '4': the file has 4; name"),
        (FILE, "-1", "there is no schedule '-1'"),
        (FILE, "٣", "there is no schedule"),
        (FILE, "index:7", "there is no entry '7'"),
        (FILE, "index:x", "there is no entry 'x'"),
        (FILE, "1" * 10_000, "there is no schedule"),
        (FILE, "issue", "there is no schedule 'issue'"),
        (FILE, "", "there is no schedule ''"),
        (
            {"triggers": [cron("1"), cron("x")]},
            "1",
            "1 is an index and the id of a schedule; write index:1 or",
        ),
        ({"triggers": [cron("x"), cron("x")]}, "x", "several schedules; name one of index:0 and index:1"),
        ({"triggers": []}, "0", "the file has none"),
        ({"triggers": {}}, "0", 'the file holds no list of triggers, as {"triggers": []} does'),
        ([], "0", "mend it by hand first"),
    ],
)
def test_a_place_that_names_no_entry_is_refused(document, place, says):
    with pytest.raises(ConfigurationError) as error:
        entry_places.find(document, place)

    assert says in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("found", "stands"),
    [
        pytest.param(entry(), Armed(), id="armed"),
        pytest.param(entry(disarmed=SPENT_BY), Spent("gh-9"), id="spent"),
        pytest.param(entry(disarmed={"at": "x"}), Spent(None), id="spent by hand"),
        pytest.param(entry(disarmed={"at": "x", "jobId": 5}), Spent(None), id="spent by rubbish"),
        pytest.param(entry(number=8), Changed("another-number"), id="another number"),
        pytest.param(entry(flow="other"), Changed("another-flow"), id="another flow"),
        pytest.param(entry(once=False), Changed("not-one-shot"), id="not once"),
        pytest.param(entry(number=True), Changed("not-one-shot"), id="no number"),
        pytest.param(cron("a"), Changed("not-one-shot"), id="a schedule"),
        pytest.param({"on": [], "run": {}}, Changed("not-one-shot"), id="no entry"),
        pytest.param(None, Changed("not-one-shot"), id="null"),
    ],
)
def test_how_a_one_shot_stands_is_read_off_its_place(found, stands):
    assert one_shots.standing({"triggers": [found]}, ONCE) == stands


def test_a_command_is_told_from_a_flow_of_the_same_name():
    found = {"triggers": [{**entry(), "run": {"kind": "github", "command": "fix"}}]}

    assert one_shots.standing(found, ONCE) == Changed("another-flow")
    ours = OneShot(index=0, number=7, slot=slot_hash(flow=None, command="fix"))
    assert one_shots.standing(found, ours) == Armed()


@settings(max_examples=50)
@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_no_document_is_beyond_judging(document):
    for one in (document, {"triggers": document}, {"triggers": [document]}):
        assert isinstance(one_shots.standing(one, ONCE), Changed)


def test_a_disarm_notes_job_and_instant_and_the_loader_takes_it():
    document = {"triggers": [entry(), cron("a")]}

    found = one_shots.disarmed(document, ONCE, job_id="gh-9", at=SPENT_BY["at"])

    assert found == {"triggers": [entry(disarmed=SPENT_BY), cron("a")]}
    assert document == {"triggers": [entry(), cron("a")]}
    loaded = parse(json.dumps(found).encode(), name="t")
    assert (loaded.entries[0].on.at, loaded.entries[0].on.job_id) == (SPENT_BY["at"], "gh-9")
