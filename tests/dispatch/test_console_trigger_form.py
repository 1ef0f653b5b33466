"""The form of a schedule and its entry: what the form has no field for stays, and who may change what."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.console.trigger_form import FIELDS, entry_of, has_form, of_entry, of_texts, with_problems
from dispatch.console.trigger_privilege import PRIVILEGED, touched
from dispatch.jobs import local_job, unavailable_field
from dispatch.operator_files.problems import OperatorFileError
from dispatch.triggers.parse import parse

LINE = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("C", "Z")), min_size=1
)
VALUES = {"text": LINE, "lines": LINE, "number": st.integers(0, 10**11), "flag": st.just(True)}
ON = st.fixed_dictionaries(
    {"type": st.just("cron")}, optional={f.key: VALUES[f.kind] for f in FIELDS if f.part == "on"}
)
RUN = st.fixed_dictionaries(
    {"kind": st.just("local")},
    optional={f.key: VALUES[f.kind] for f in FIELDS if f.part == "run"} | {"image": LINE, "odd": st.none()},
)
ENTRIES = st.fixed_dictionaries({"on": ON, "run": RUN}, optional={"note": LINE})


def sent(form):
    """The form as a browser sends it."""
    return {one.name: one.value.replace("\n", "\r\n") for one in form if one.value}


@settings(max_examples=60)
@given(ENTRIES)
def test_a_form_that_is_sent_as_it_was_shown_changes_nothing(entry):
    assert has_form(entry)
    assert json.dumps(entry_of(of_texts(sent(of_entry(entry))), entry)) == json.dumps(entry)


def test_what_is_needed_is_what_no_schedule_is_read_without():
    texts = {"id": "a", "pattern": "@daily", "tz": "UTC", "folder": "/srv", "command": "do it"}
    texts |= {"provider": "p", "model": "m", "max_turns": "3", "github": "on"}

    def is_read_without(name):
        entry = entry_of(of_texts({key: text for key, text in texts.items() if key != name}))
        try:
            parse(json.dumps({"triggers": [entry]}).encode(), name="f")
        except OperatorFileError:
            return False
        return True

    assert is_read_without(None)
    assert {one.name for one in FIELDS if one.is_needed} == {
        name for name in texts.keys() - {"command"} if not is_read_without(name)
    }


def test_the_box_for_a_token_says_what_becomes_of_its_jobs():
    (box,) = (one for one in FIELDS if one.name == "github")

    job = replace(local_job("/srv", task="x"), github=True)

    assert unavailable_field(job, kinds=[job.kind]) == "github"
    assert "refused (not-available)" in box.help


def test_what_is_typed_goes_into_the_entry_as_it_is():
    before = {
        "on": {"type": "cron", "id": "a", "pattern": "1 * * * *", "tz": "UTC"},
        "run": {"github": False},
    }
    before["run"] |= {"kind": "local", "secrets": {"A": "b"}, "maxTurns": 4}

    made = entry_of(
        of_texts({"id": " b ", "pattern": "@daily", "task": "x\r\ny", "max_turns": "many"}), before
    )

    assert made == {
        "on": {"type": "cron", "id": "b", "pattern": "@daily"},
        "run": {
            "github": False,
            "kind": "local",
            "secrets": {"A": "b"},
            "maxTurns": "many",
            "task": "x\ny",
        },
    }


@pytest.mark.parametrize(
    "entry",
    [
        *(7, {}, {"on": [], "run": {}}, {"on": {"type": "issue"}, "run": {}}),
        *(
            {"on": {"type": "cron", "tz": None}, "run": {}},
            {"on": {"type": "cron"}, "run": {"maxTurns": True}},
        ),
    ],
)
def test_an_entry_that_the_form_cannot_hold_has_none(entry):
    assert not has_form(entry)


def test_what_is_wrong_stands_beside_its_field():
    entry = entry_of(of_texts({"id": "a:b", "pattern": "x", "folder": "/", "max_turns": "0", "flow": "f"}))
    with pytest.raises(OperatorFileError) as refused:
        parse(json.dumps({"triggers": [entry, {"on": 1}]}).encode(), name="/a: trigger at index 9: on.id is")

    fields, rest = with_problems(of_entry(entry), refused.value.problems)

    assert {one.name for one in fields if one.problem} == {"id", "pattern", "max_turns", "task"}
    assert next(one for one in fields if one.name == "id").problem.startswith(
        "It is 'a:b'; allowed is a name"
    )
    assert all("trigger at index 1" in one for one in rest)


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        (None, {"run": {"image": "x", "flow": "a"}}, ("run.image",)),
        ({"run": {"flow": "a"}}, {"on": 2, "run": {"flow": "b"}, "x": 1}, ()),
        # Of an entry that has one only `on` is free.
        ({"on": 1, "run": {"image": "x"}}, {"on": 2, "run": {"image": "x"}}, ()),
        *(
            ({"run": {key: 1, "flow": "a"}}, {"run": {key: 1, "flow": "b"}, "x": 1}, ("run.flow", "x"))
            for key in PRIVILEGED
        ),
        ({"run": {"secrets": {"A": "b"}}}, {"run": {"folder": "/"}}, ("run.folder", "run.secrets")),
        ({"run": {"resume": True}, "x": 1}, {"run": {"resume": 1}}, ("run.resume", "x")),
        ({"run": {"image": None}}, 7, ("run.image",)),
        ({"run": [1]}, 7, ()),
    ],
)
def test_a_change_of_a_privileged_key_is_seen(before, after, keys):
    assert touched(before, after) == keys
