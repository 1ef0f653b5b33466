"""What stands in a triggers file as values: written and read again alike, and told where it means nothing."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.ids import Kind
from dispatch.operator_files.problems import OperatorFileError
from dispatch.triggers.entries import (
    CommentOn,
    CronOn,
    Disarmed,
    IssueOn,
    LabelOn,
    PullRequestOn,
    Run,
    Trigger,
    Triggers,
    wire,
    wire_run,
)
from dispatch.triggers.parse import of_document, parse, place_of
from dispatch.triggers.unknown import unknown_keys

NAME = "triggers.json"
LOCAL = {"kind": "local", "folder": " relative/site", "flow": "audit", "task": "look\r\n\there"}
GITHUB = {"kind": "github", "flow": "fix"}
NIGHTLY = {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"}


def file_of(*pairs):
    return json.dumps({"triggers": [{"on": on, "run": run} for on, run in pairs]}).encode()


def read(*pairs):
    return parse(file_of(*pairs), name=NAME)


def judged(document):
    try:
        return of_document(document, name=NAME), ()
    except OperatorFileError as error:
        return None, error.places


def spelled(triggers):
    return json.dumps({"triggers": [wire(one) for one in triggers.entries]}).encode()


def test_entries_of_all_types_are_values_in_the_files_order():
    found = read(
        ({**NIGHTLY, "tz": "europe/paris"}, {**LOCAL, "maxTurns": 5.0, "waitFor": [{"profile": "ci"}]}),
        (
            {"type": "label", "all": [" ai "], "none": []},
            {**GITHUB, "secrets": {"A": "op://x"}, "replicas": 2},
        ),
        ({"type": "comment", "phrase": "@pi"}, {**GITHUB, "kind": "azure", "repository": "My Web"}),
        ({"type": "pull_request", "action": ["review_submitted"], "reviewState": ["approved"]}, GITHUB),
        (
            {"type": "issue", "action": ["close"], "number": 7, "once": True},
            {"kind": "gitlab", "command": "x y"},
        ),
    )

    assert found == Triggers(
        (
            Trigger(
                index=0,
                on=CronOn(id="nightly", pattern="0 3 * * *", tz="Europe/Paris"),
                run=Run(
                    kind=Kind.LOCAL,
                    folder=" relative/site",
                    flow="audit",
                    task="look\r\n\there",
                    max_turns=5,
                    wait_for=({"profile": "ci"},),
                ),
            ),
            Trigger(
                index=1,
                on=LabelOn(all=(" ai ",), none=()),
                run=Run(kind=Kind.GITHUB, flow="fix", secrets={"A": "op://x"}, replicas=2),
            ),
            Trigger(
                index=2,
                on=CommentOn(phrase="@pi"),
                run=Run(kind=Kind.AZURE, flow="fix", repository="My Web"),
            ),
            Trigger(
                index=3,
                on=PullRequestOn(action=("review_submitted",), review_state=("approved",)),
                run=Run(kind=Kind.GITHUB, flow="fix"),
            ),
            Trigger(
                index=4,
                on=IssueOn(action=("close",), number=7, once=True),
                run=Run(kind=Kind.GITLAB, command="x y"),
            ),
        )
    )
    assert len(found) == 5
    assert found.cron == found.entries[:1]
    assert found.one_shots == found.entries[4:]
    assert wire_run(found.entries[2].run) == {"kind": "azure", "flow": "fix", "repository": "My Web"}


def test_a_spent_one_shot_keeps_its_place_and_is_still_one():
    closing = {"type": "issue", "action": ["closed"], "number": 7, "once": True}
    spent = {**closing, "disarmed": {"at": "2026-07-01T09:00:00Z", "jobId": "gh-1"}}
    found = read((closing, GITHUB), (spent, GITHUB), ({**closing, "once": False}, GITHUB))

    was = IssueOn(action=("closed",), number=7, once=True)
    assert [one.on for one in found.entries] == [
        was,
        Disarmed(at="2026-07-01T09:00:00Z", job_id="gh-1", was=was),
        IssueOn(action=("closed",), number=7, once=False),
    ]
    assert [one.index for one in found.one_shots] == [0, 1]
    assert wire(found.entries[1]) == {"on": {"type": "disarmed"}, "run": {}}


@pytest.mark.parametrize(
    "pattern", [" 0\t3 * * * ", "15 H H * * mon-fri", "@daily", "0 0 L * *", "0 9 * * 1#2"]
)
def test_a_pattern_stays_as_it_was_written(pattern):
    assert read(({**NIGHTLY, "pattern": pattern}, LOCAL)).cron[0].on.pattern == pattern


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_fault():
    content = json.dumps(json.loads(file_of((NIGHTLY, LOCAL))), indent=2).replace("\n", "\r\n")

    assert parse(b"\xef\xbb\xbf" + content.encode(), name=NAME) == read((NIGHTLY, LOCAL))


def test_what_means_nothing_is_dropped_and_told():
    rows = [
        {"on": {**NIGHTLY, "timezone": "UTC", "phrase": "x"}, "run": {**LOCAL, "Task": 1}, "note": "x"},
        {
            "on": {"type": "comment", "phrase": "@pi", "any": "x"},
            "run": {**GITHUB, "model": "m", "folder": None},
        },
        {"on": {"type": "issue", "action": ["closed"], "tz": 5}, "run": {**GITHUB, "a\n\x1b" + "x" * 99: 1}},
    ]
    content = json.dumps({"triggers": rows, "version": 1}).encode()

    assert len(parse(content, name=NAME)) == 3
    assert unknown_keys(content) == (
        *("triggers[0].note", "triggers[0].on.timezone", "triggers[0].on.phrase", "triggers[0].run.Task"),
        *("triggers[1].on.any", "triggers[1].run.model", "triggers[1].run.folder"),
        *("triggers[2].on.tz", r"triggers[2].run.a\n\x1b" + "x" * 53),
    )
    spent = {"type": "issue", "action": ["closed"], "number": 7, "once": True, "disarmed": {"at": "x"}}
    meant = file_of((NIGHTLY, {**LOCAL, "waitFor": [{"profile": "x"}], "maxTurns": 5}), (spent, GITHUB))
    assert (len(parse(meant, name=NAME)), unknown_keys(meant)) == (2, ())
    assert len(unknown_keys(file_of(*[({"type": "label", "any": ["a"], "x": 1}, GITHUB)] * 50))) == 20


def test_an_entry_is_named_by_its_index_and_a_schedule_by_its_id():
    assert place_of(3, {"on": NIGHTLY}) == 'trigger at index 3 (cron trigger "nightly")'
    assert (
        place_of(3, {"on": {**NIGHTLY, "id": "x" * 255}}) == f'trigger at index 3 (cron trigger "{"x" * 80}")'
    )
    for row in (None, {"on": 5}, {"on": {**NIGHTLY, "id": "a\nb"}}, {"on": {"type": "label", "id": "a"}}):
        assert place_of(3, row) == "trigger at index 3"


def test_two_thousand_triggers_are_read_in_a_second():
    content = file_of(
        *(
            (
                {
                    **NIGHTLY,
                    "id": f"job-{at}",
                    "pattern": f"{at % 60} {at // 60} * * 1-5",
                    "tz": "Europe/Paris",
                },
                {**LOCAL, "task": "long " * 700},
            )
            for at in range(1000)
        ),
        *(({"type": "label", "any": [f"ai-{at}"]}, GITHUB) for at in range(1000)),
    )
    began = time.process_time()
    found = parse(content, name=NAME)

    assert time.process_time() - began < 2
    assert (len(found), len(found.cron)) == (2000, 1000)


ODD = st.sampled_from(
    [
        None,
        True,
        0,
        2,
        1.5,
        float("inf"),
        "",
        "x",
        "\ud800",
        "a\0",
        [],
        ["closed"],
        [1],
        {},
        {"at": "x"},
        {"A": "r"},
    ]
)
ON_KEYS = [
    "type",
    "id",
    "pattern",
    "tz",
    "any",
    "all",
    "none",
    "phrase",
    "action",
    "reviewState",
    "number",
    "once",
]
RUN_KEYS = [
    *(
        "kind",
        "folder",
        "flow",
        "command",
        "task",
        "github",
        "provider",
        "model",
        "maxTurns",
        "packages",
        "image",
    ),
    *(
        "skillsDir",
        "instructions",
        "resume",
        "replicas",
        "repository",
        "secrets",
        "secretsProfile",
        "waitFor",
    ),
]
SAMPLES = [
    (NIGHTLY, LOCAL),
    ({"type": "label", "any": ["ai"]}, GITHUB),
    ({"type": "comment", "phrase": "@pi"}, {**GITHUB, "kind": "azure", "repository": "web"}),
    ({"type": "pull_request", "action": ["closed"], "number": 4}, GITHUB),
    ({"type": "issue", "action": ["closed"], "number": 4, "once": True}, GITHUB),
]


@given(
    st.sampled_from(SAMPLES),
    st.dictionaries(st.sampled_from([*ON_KEYS, "disarmed", "waitfor", "x"]), ODD, max_size=3),
    st.dictionaries(st.sampled_from([*RUN_KEYS, "wait_for", "x"]), ODD, max_size=3),
)
def test_whatever_stands_in_an_entry_it_is_read_or_refused_and_read_again_alike(sample, on, run):
    document = {"triggers": [{"on": {**sample[0], **on}, "run": {**sample[1], **run}}]}
    found, places = judged(document)

    assert bool(found) != bool(places)
    assert all(place.startswith("trigger at index 0") for place in places)
    if found and not isinstance(found.entries[0].on, Disarmed):
        assert parse(spelled(found), name=NAME) == found


@given(
    st.recursive(
        ODD | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["triggers", "on", "run", *ON_KEYS, *RUN_KEYS]), inner, max_size=3
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_the_json_nothing_but_a_refusal_comes_of_it(document):
    for one in (document, {"triggers": document}, {"triggers": [document]}):
        found, places = judged(one)
        assert (found is None) == bool(places)
