from __future__ import annotations

from dataclasses import fields, replace

import pytest

from dispatch.ids import Kind, TargetType
from dispatch.jobdata import CronTrigger, ForgeTrigger, JobData, Matched, Target
from dispatch.jobrules import (
    FORGE_FIELDS,
    LOCAL_FIELDS,
    Flaw,
    Malformed,
    find_flaw,
    is_command,
    is_flow_name,
    is_folder,
    is_image,
    wire_name,
)

LOCAL = JobData(kind=Kind.LOCAL, folder="/srv", task="t")
COMMAND = JobData(kind=Kind.LOCAL, folder="/srv", command="deploy")
FORGE = JobData(
    kind=Kind.GITHUB,
    flow="fix",
    repo="acme/web",
    target=Target(type=TargetType.ISSUE, number=5, title="t", body="b"),
    trigger=ForgeTrigger(delivery_id="d", matched=Matched(index=0, type="label")),
)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(LOCAL, id="task"),
        pytest.param(replace(LOCAL, flow="fix"), id="flow and task"),
        pytest.param(replace(LOCAL, flow="Fix It"), id="a flow that no skill can be named: a hint"),
        pytest.param(replace(LOCAL, task=""), id="a chained request may say nothing"),
        pytest.param(replace(LOCAL, chain_depth=1, parent_job_id="p"), id="chained"),
        pytest.param(replace(LOCAL, trigger=CronTrigger(id="n", pattern="* * * * *")), id="cron"),
        pytest.param(COMMAND, id="command"),
        pytest.param(FORGE, id="forge"),
        pytest.param(replace(FORGE, flow=None, command="ship"), id="forge command"),
        pytest.param(replace(FORGE, replica=3, replicas=3), id="replica"),
    ],
)
def test_a_job_that_makes_sense_has_no_flaw(job):
    assert find_flaw(job) is None


@pytest.mark.parametrize(
    ("job", "flaw"),
    [
        pytest.param(replace(COMMAND, flow="fix"), Malformed(Flaw.FIELD_CONFLICT, "flow"), id="two entries"),
        pytest.param(replace(COMMAND, task="t"), Malformed(Flaw.FIELD_CONFLICT, "task"), id="command, task"),
        pytest.param(replace(LOCAL, task=None), Malformed(Flaw.FIELD_MISSING, "task"), id="nothing to do"),
        pytest.param(replace(LOCAL, folder=None), Malformed(Flaw.FIELD_MISSING, "folder"), id="no folder"),
        pytest.param(
            replace(LOCAL, chain_depth=1), Malformed(Flaw.FIELD_CONFLICT, "chainDepth"), id="orphan"
        ),
        pytest.param(
            replace(LOCAL, trigger=FORGE.trigger), Malformed(Flaw.FIELD_MISPLACED, "trigger"), id="delivery"
        ),
        pytest.param(replace(FORGE, flow=None), Malformed(Flaw.FIELD_MISSING, "flow"), id="forge, no entry"),
        pytest.param(replace(FORGE, repo=None), Malformed(Flaw.FIELD_MISSING, "repo"), id="no repository"),
        pytest.param(replace(FORGE, target=None), Malformed(Flaw.FIELD_MISSING, "target"), id="no target"),
        pytest.param(
            replace(FORGE, trigger=None), Malformed(Flaw.FIELD_MISSING, "trigger"), id="no delivery"
        ),
        pytest.param(
            replace(FORGE, trigger=CronTrigger(id="n", pattern="*")),
            Malformed(Flaw.FIELD_MISPLACED, "trigger"),
            id="a forge job of a schedule",
        ),
        pytest.param(
            replace(FORGE, replica=1), Malformed(Flaw.FIELD_CONFLICT, "replica"), id="replica of none"
        ),
        pytest.param(
            replace(FORGE, replica=3, replicas=2),
            Malformed(Flaw.FIELD_CONFLICT, "replica"),
            id="third of two",
        ),
        pytest.param(
            replace(FORGE, replica=1, replicas=4), Malformed(Flaw.FIELD_VALUE, "replicas"), id="four"
        ),
        pytest.param(replace(LOCAL, max_turns=0), Malformed(Flaw.FIELD_VALUE, "maxTurns"), id="no turns"),
        pytest.param(replace(LOCAL, flow=""), Malformed(Flaw.FIELD_VALUE, "flow"), id="an empty flow"),
        pytest.param(replace(LOCAL, model="a\nb"), Malformed(Flaw.FIELD_VALUE, "model"), id="two lines"),
        pytest.param(replace(LOCAL, model="a b"), Malformed(Flaw.FIELD_VALUE, "model"), id="two words"),
        pytest.param(replace(LOCAL, provider="a b"), Malformed(Flaw.FIELD_VALUE, "provider"), id="two names"),
        pytest.param(
            replace(LOCAL, image="--privileged"), Malformed(Flaw.FIELD_VALUE, "image"), id="an option"
        ),
        pytest.param(replace(COMMAND, command="/x"), Malformed(Flaw.FIELD_VALUE, "command"), id="a slash"),
    ],
)
def test_a_job_that_makes_no_sense_is_named_by_its_field(job, flaw):
    assert find_flaw(job) == flaw


@pytest.mark.parametrize("name", sorted(FORGE_FIELDS))
def test_a_forges_field_on_a_local_job_is_misplaced(name):
    job = replace(LOCAL, **{name: "x"})

    assert find_flaw(job) == Malformed(Flaw.FIELD_MISPLACED, wire_name(name))


@pytest.mark.parametrize("name", sorted(LOCAL_FIELDS))
def test_a_local_field_on_a_forge_job_is_misplaced(name):
    job = replace(FORGE, **{name: "x"})

    assert find_flaw(job) == Malformed(Flaw.FIELD_MISPLACED, wire_name(name))


def test_the_fields_of_one_side_are_fields_of_a_job():
    assert {item.name for item in fields(JobData)} >= LOCAL_FIELDS | FORGE_FIELDS
    assert not LOCAL_FIELDS & FORGE_FIELDS


@pytest.mark.parametrize(
    ("command", "good"),
    [
        pytest.param("deploy", True, id="name"),
        pytest.param("deploy prod --now", True, id="arguments"),
        pytest.param("a/b", True, id="an inner slash"),
        pytest.param("", False, id="empty"),
        pytest.param(" ", False, id="blank"),
        pytest.param(" deploy", False, id="leading blank"),
        pytest.param("deploy\u00a0", False, id="trailing hard blank"),
        pytest.param("deploy\ufeff", False, id="trailing byte order mark"),
        pytest.param("\ufeff deploy", False, id="byte order mark, then a blank"),
        pytest.param("/deploy", False, id="slash"),
        pytest.param("a\nb", False, id="newline"),
        pytest.param("a\tb", False, id="tab"),
        pytest.param("a\x1bb", False, id="escape"),
        pytest.param("a\x7fb", False, id="delete"),
        pytest.param("a\x85b", False, id="next line"),
        pytest.param("a\ud800b", False, id="lone surrogate"),
    ],
)
def test_a_command_is_one_clean_line_without_a_slash(command, good):
    assert is_command(command) is good


@pytest.mark.parametrize(
    ("name", "good"),
    [
        pytest.param("a", True, id="one letter"),
        pytest.param("9-a_b", True, id="inner marks"),
        pytest.param("a" * 64, True, id="64"),
        pytest.param("a" * 65, False, id="65"),
        pytest.param("", False, id="empty"),
        pytest.param("A", False, id="upper case"),
        pytest.param("-a", False, id="dash first"),
        pytest.param("a_", False, id="underscore last"),
        pytest.param("a\n", False, id="newline last"),
        pytest.param("../x", False, id="a path"),
        pytest.param("٣", False, id="a digit of another script"),
    ],
)
def test_a_flow_name_is_a_skills_name(name, good):
    assert is_flow_name(name) is good


@pytest.mark.parametrize(
    ("image", "good"),
    [
        pytest.param("pi-job:latest", True, id="tag"),
        pytest.param("r.example:5000/a@sha256:00", True, id="digest"),
        pytest.param("", False, id="empty"),
        pytest.param(" a", False, id="blank"),
        pytest.param("-v", False, id="dash"),
    ],
)
def test_an_image_reference_is_no_option(image, good):
    assert is_image(image) is good


@pytest.mark.parametrize(
    ("folder", "good"),
    [
        pytest.param("/", True, id="root"),
        pytest.param("/a b", True, id="blank inside"),
        pytest.param("a", False, id="relative"),
        pytest.param("", False, id="empty"),
        pytest.param("/a\0b", False, id="NUL"),
    ],
)
def test_a_folder_is_an_absolute_path(folder, good):
    assert is_folder(folder) is good
