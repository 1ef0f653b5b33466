from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.ids import Kind, occurrence_id, rq_id
from dispatch.jobdata import CronTrigger, JobData
from dispatch.jobrules import find_flaw
from dispatch.schedules.definition import (
    MAX_BYTES,
    MAX_ID_CHARACTERS,
    BrokenDefinitionError,
    Schedule,
    of_trigger,
    read,
)
from dispatch.triggers.entries import CommentOn, CronOn, Run, Trigger

RUN = {"kind": "local", "folder": "/srv/site", "flow": "audit", "task": "look"}
PLAIN = Schedule("nightly", "0 3 * * *", "Europe/Paris", RUN)
FULL = Run(
    kind=Kind.LOCAL,
    folder="/srv/site",
    flow="audit",
    task="tâche\n😀",
    github=True,
    provider="anthropic",
    model="m-1",
    max_turns=3,
    packages=False,
    image="pi-job:latest",
    skills_dir="/srv/skills",
    resume=False,
    secrets={"TOKEN": "op://vault/item"},
    secrets_profile="default",
    wait_for=({"after": "2026-09-01T09:00:00Z"}, {"profile": "news"}),
)


def entry(on: object, run: Run = FULL) -> Trigger:
    return Trigger(index=4, on=on, run=run)


def with_run(**run: object) -> Schedule:
    return Schedule("nightly", "0 3 * * *", "UTC", {**RUN, **run})


def test_a_job_carries_every_field_of_its_entry():
    schedule = of_trigger(entry(CronOn(id="nightly", pattern=" 0 3 * * *")), host_zone="Europe/Paris")

    assert schedule.zone == "Europe/Paris"
    assert schedule.problem() is None
    assert schedule.job() == JobData(
        kind=Kind.LOCAL,
        folder="/srv/site",
        flow="audit",
        task="tâche\n😀",
        github=True,
        provider="anthropic",
        model="m-1",
        max_turns=3,
        packages=False,
        image="pi-job:latest",
        skills_dir="/srv/skills",
        secrets={"TOKEN": "op://vault/item"},
        secrets_profile="default",
        wait_for=({"after": "2026-09-01T09:00:00Z"}, {"profile": "news"}),
        trigger=CronTrigger(id="nightly", pattern=" 0 3 * * *"),
    )
    assert find_flaw(schedule.job()) is None


def test_a_command_needs_no_task():
    run = Run(kind=Kind.LOCAL, folder="/srv/site", command="review all")

    assert (
        of_trigger(entry(CronOn(id="a", pattern="@daily"), run), host_zone="UTC").job().command
        == "review all"
    )


def test_a_zone_of_its_own_goes_before_that_of_the_host():
    schedule = of_trigger(entry(CronOn(id="a", pattern="0 3 * * *", tz="Asia/Kathmandu")), host_zone="UTC")

    assert schedule.zone == "Asia/Kathmandu"
    at = schedule.recurrence().after(datetime(2026, 1, 1, tzinfo=UTC))
    assert at == datetime(2026, 1, 1, 21, 15, tzinfo=UTC)


def test_only_a_cron_entry_makes_a_schedule():
    with pytest.raises(TypeError, match="entry 4"):
        of_trigger(entry(CommentOn(phrase="@pi")), host_zone="UTC")


def test_the_longest_id_still_names_its_jobs():
    schedule = Schedule("_" * MAX_ID_CHARACTERS, "@daily", "UTC", RUN)

    assert schedule.problem() is None
    assert rq_id(occurrence_id(schedule.id, instant=datetime(9999, 1, 1, tzinfo=UTC)))


PROBLEMS = [
    (Schedule("x" * 178, "@daily", "UTC", RUN), "has an id of 178 characters; allowed are 1 to 177"),
    (Schedule("a:b", "@daily", "UTC", RUN), "has an id of 3 characters; allowed are"),
    (Schedule("a\n", "@daily", "UTC", RUN), "has an id of 2 characters"),
    (Schedule("", "@daily", "UTC", RUN), "has an id of 0 characters"),
    (Schedule("a", "0 0 31 2 *", "UTC", RUN), "has the day 31"),
    (Schedule("a", "@daily", "Mars/Olympus", RUN), "has the zone 'Mars/Olympus'"),
    (Schedule("a", "@daily", "", RUN), "has the zone ''"),
    (with_run(kind="github"), "makes no job: its run."),
    (with_run(folder="site"), "makes no job: its run.folder is not what triggers.json may have there"),
    (with_run(task=""), None),
    (with_run(task=None), "makes no job: its run.task is not"),
    (with_run(command="x"), "makes no job: its run.flow is not"),
    (with_run(resume=True), "makes no job: its run.resume is not"),
    (with_run(resume=False), None),
    (with_run(maxTurns=True), "makes no job: its run.maxTurns is not"),
    (with_run(maxTurns=0), "makes no job: its run.maxTurns is not"),
    (with_run(secrets={"A": 1}), "makes no job: its run.secrets is not"),
    (with_run(model="\ud800"), "makes no job: its run.model is not"),
    (with_run(model=float("nan")), "makes no job: its run is not"),
    (with_run(unheard="of"), "makes no job: its run is not"),
    (with_run(trigger={"id": "other", "pattern": "x"}), "makes no job: its run is not"),
    (with_run(chainDepth=1, parentJobId="x"), "makes no job: its run is not"),
]


@pytest.mark.parametrize(("schedule", "words"), PROBLEMS)
def test_what_could_start_no_job_is_told_beforehand(schedule, words):
    problem = schedule.problem()

    assert bool(problem) is bool(words)
    assert (problem or "").startswith(words or "")
    if words and words.startswith("makes"):
        with pytest.raises(BrokenDefinitionError) as refused:
            schedule.job()
        assert str(refused.value) == problem
    if words is None:
        assert schedule.job().trigger == CronTrigger(id=schedule.id, pattern=schedule.pattern)


# --- as text


def test_equal_schedules_are_equal_texts_and_come_back():
    schedule = of_trigger(entry(CronOn(id="nightly", pattern="0 3 * * *")), host_zone="UTC")
    turned = Schedule("nightly", "0 3 * * *", "UTC", dict(reversed(schedule.run.items())))

    assert turned.text() == schedule.text()
    assert read(schedule.text()) == schedule
    assert read(schedule.text().encode()) == schedule


def altered(**members: object) -> str:
    return json.dumps({**json.loads(PLAIN.text()), **members})


HOSTILE = [
    *("", "null", "[]", "{}", "5", '"x"', "nonsense", "{", '{"v":1}', "\ud800", "[" * 100_000),
    *(b"\xff", b"\x00", PLAIN.text().encode("utf-16"), b"\xef\xbb\xbf" + PLAIN.text().encode()),
    PLAIN.text()[:-1] + ',"v":1}',
    PLAIN.text().replace('"flow"', '"flow":"evil","flow"'),
    *(altered(v=v) for v in (0, 2, True, 1.0, "1", None)),
    *(altered(id=id_) for id_ in (5, None, "", "a:b", "*", "a\n", "x" * 178)),
    *(altered(pattern=pattern) for pattern in (5, "", "x", "* * * *", "0 0 31 2 *", "*/1," * 5000)),
    *(altered(zone=zone) for zone in (5, None, "", "../../etc/passwd", "localtime", "\ud800")),
    *(altered(run=run) for run in (None, [], "x", {}, {**RUN, "folder": "../x"}, {**RUN, "kind": "gitlab"})),
    altered(run={**RUN, "maxTurns": 10**400}),
    altered(run={**RUN, "task": "x" * MAX_BYTES}),
    altered(more=1),
    altered().replace("/srv/site", "\\ud800"),
    altered(run={**RUN, "waitFor": [1e308]}).replace("1e+308", "1e999"),
    '{"v":1,"id":"a","pattern":"@daily","zone":"UTC","run":{"waitFor":' + "[" * 900 + "]" * 900 + "}}",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_definition_is_none_and_soon(text):
    begun = time.process_time()

    assert read(text) is None
    assert time.process_time() - begun < 0.5


@given(st.text() | st.binary())
def test_no_text_makes_the_reader_fail(text):
    assert read(text) is None


@given(
    st.sampled_from(sorted(json.loads(PLAIN.text()))),
    st.recursive(st.none() | st.floats() | st.text(), st.lists),
)
def test_no_member_makes_the_reader_fail(name, value):
    found = read(altered(**{name: value}))

    assert found is None or (found.job() and found.recurrence())
