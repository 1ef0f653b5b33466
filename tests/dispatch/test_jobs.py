from __future__ import annotations

from dataclasses import replace

import pytest

from dispatch import jobs
from dispatch.jobs import CALLABLE, MAX_TASK_BYTES, JobData, Kind, decode, local_job, run, unavailable_field
from dispatch.payload import encode
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError
from tests.dispatch.job_samples import FULL_FORGE, call

LOCAL = local_job("/srv/site", task="do it")
AFTER = {"after": "2026-09-01T09:00:00Z"}
GREEN = {"profile": "ci-green"}


def test_a_local_job_has_only_what_was_asked():
    assert local_job("/a", task="t") == JobData(kind=Kind.LOCAL, folder="/a", task="t")


def test_every_option_of_a_local_job_is_kept():
    texts = {"task": "t", "flow": "fix", "provider": "p", "model": "m", "image": "pi-job:latest"}
    asked = {**texts, "max_turns": 1, "wait_for": (AFTER, GREEN)}

    assert local_job("/srv/site", **asked) == JobData(kind=Kind.LOCAL, folder="/srv/site", **asked)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(LOCAL, id="task"),
        pytest.param(local_job("/a", command="deploy prod"), id="command"),
        pytest.param(local_job("/a", task="t", wait_for=(AFTER, GREEN)), id="conditions"),
        pytest.param(local_job("/a", task="x" * MAX_TASK_BYTES), id="the longest task"),
        pytest.param(local_job("/a", task="\n" * (MAX_TASK_BYTES - 1) + "x"), id="the longest task, escaped"),
        pytest.param(local_job("/a", task="é" * (MAX_TASK_BYTES // 2)), id="exactly the bound in bytes"),
        pytest.param(local_job("/a", task=" indented\r\n\ttext \n"), id="blanks, tabs and both line ends"),
        pytest.param(local_job("/a", task="\u202e\U0001f600"), id="any other character"),
    ],
)
def test_what_a_caller_may_ask_for_is_read_back_from_the_queue(job):
    assert decode(call(encode(job)["data"])) == job


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param({"task": ""}, "the task is empty", id="empty task"),
        pytest.param({"task": " \n"}, "the task is empty", id="blank task"),
        pytest.param({"task": None}, "the task is empty", id="nothing"),
        pytest.param({"task": "é" * (MAX_TASK_BYTES // 2) + "x"}, "262145 bytes", id="long task"),
        pytest.param({"task": "x" * 1_000_000}, "allowed are 262144", id="1 MB task"),
        pytest.param({"task": "\udcff"}, "not well-formed", id="task of no characters"),
        pytest.param({"task": "a\0b"}, "U+0000 at position 1", id="NUL in the task"),
        pytest.param({"task": "\x1b[31m"}, "U+001B at position 0", id="terminal escape in the task"),
        pytest.param({"task": "ab\x9b31m"}, "U+009B at position 2", id="its other form"),
        pytest.param({"task": "a\x7f"}, "U+007F", id="delete in the task"),
        pytest.param({"flow": "x", "command": "y", "task": None}, "both a flow and a command", id="both"),
        pytest.param({"command": "y"}, "a command takes no task", id="command with a task"),
        pytest.param({"command": "/y", "task": None}, "'/y' is not usable", id="slash"),
        pytest.param({"command": "", "task": None}, "'' is not usable", id="empty command"),
        pytest.param({"flow": "No"}, "'No' is no flow name", id="flow"),
        pytest.param({"flow": ""}, "'' is no flow name", id="empty flow"),
        pytest.param({"folder": "srv"}, "folder 'srv' is not usable", id="relative folder"),
        pytest.param({"folder": "/a\udcff"}, r"'/a\udcff' is not usable", id="folder of no characters"),
        pytest.param({"provider": " p"}, "provider ' p'", id="provider"),
        pytest.param({"model": "a\nb"}, r"model 'a\nb'", id="model"),
        pytest.param({"model": ""}, "model ''", id="empty model"),
        pytest.param({"model": "no such"}, "model 'no such'", id="model of two words"),
        pytest.param({"provider": "no such"}, "provider 'no such'", id="provider of two words"),
        pytest.param({"model": "m" * 201}, "at most 200", id="endless model"),
        pytest.param({"image": "no such"}, "image 'no such'", id="image of two words"),
        pytest.param({"image": "-v"}, "image '-v'", id="image"),
        pytest.param({"max_turns": 0}, "max turns is 0", id="no turns"),
        pytest.param({"max_turns": 2**31}, "max turns is 2147483648", id="turns without end"),
        pytest.param({"wait_for": ()}, "waitFor has 0 conditions", id="no conditions"),
        pytest.param({"wait_for": (GREEN,) * 5}, "waitFor has 5 conditions; allowed are 1 to 4", id="five"),
        pytest.param({"wait_for": (GREEN, {"after": "9:00"})}, "waitFor[1] has after '9:00'", id="instant"),
        pytest.param({"wait_for": (AFTER, AFTER)}, "waitFor[1] is a second after", id="two instants"),
        pytest.param({"wait_for": ({"profile": "a b"},)}, "waitFor[0] has profile 'a b'", id="profile"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(asked, words):
    asked = {"folder": "/srv", "task": "t", **asked}

    with pytest.raises(ConfigurationError) as raised:
        local_job(asked.pop("folder"), **asked)

    assert len(raised.value.problems) == 1
    assert words in str(raised.value)


def test_all_problems_are_told_at_once():
    unlike = ({"after": "x"}, {"profile": ""})

    with pytest.raises(ConfigurationError) as raised:
        local_job("x", task="", flow="A", provider="", model=" ", max_turns=-1, image="-", wait_for=unlike)

    assert len(raised.value.problems) == 9


def test_a_long_wrong_word_is_not_printed_whole():
    with pytest.raises(ConfigurationError) as raised:
        local_job("/a", task="t", model="x" * 5000 + " ")

    assert len(str(raised.value)) < 200


def test_a_stock_rq_worker_is_told_why_nothing_runs():
    with pytest.raises(RuntimeError, match=r"manage\.py runworker"):
        run(job=encode(LOCAL))


def test_the_callable_is_where_the_queue_says():
    module, name = CALLABLE.rsplit(".", 1)

    assert module == jobs.__name__
    assert getattr(jobs, name) is run


@pytest.mark.parametrize(
    ("job", "field"),
    [
        pytest.param(LOCAL, None, id="nothing special"),
        pytest.param(replace(LOCAL, packages=False, github=False, secrets={}), None, id="asked not to"),
        pytest.param(replace(LOCAL, chain_depth=1, parent_job_id="p"), None, id="chained"),
        pytest.param(replace(LOCAL, packages=True), "packages", id="packages"),
        pytest.param(replace(LOCAL, github=True), "github", id="token"),
        pytest.param(replace(LOCAL, skills_dir="/s"), "skillsDir", id="skills"),
        pytest.param(replace(LOCAL, secrets={"A": "r"}), "secrets", id="secrets"),
        pytest.param(replace(LOCAL, secrets_profile="default"), "secretsProfile", id="profile"),
        pytest.param(replace(LOCAL, wait_for=({"profile": "a"},)), None, id="conditions"),
        pytest.param(replace(LOCAL, resume=True), "resume", id="session"),
        pytest.param(replace(LOCAL, replica=1), "replica", id="replica"),
        pytest.param(replace(LOCAL, replicas=2), "replicas", id="replicas"),
        pytest.param(FULL_FORGE, "kind", id="a forge"),
    ],
)
def test_a_part_that_is_not_built_is_named(job, field):
    assert unavailable_field(job, kinds={Kind.LOCAL}) == field


@pytest.mark.parametrize(
    ("variable", "option"), [("PI_PROVIDER", "provider"), ("PI_MODEL", "model"), ("PI_JOB_IMAGE", "image")]
)
@pytest.mark.parametrize(
    "text", ["a", "a/b:1", "a b", " a", "a ", "-a", "ä", "a\tb", "a" * 200, "a" * 201, "a" * 300, "\x1b[31m"]
)
def test_a_job_and_the_configuration_take_the_same_names(variable, option, text):
    def is_taken(ask):
        try:
            ask()
        except ConfigurationError:
            return False
        return True

    by_job = is_taken(lambda: local_job("/a", task="t", **{option: text}))

    assert is_taken(lambda: conf.one(variable, {variable: text})) == by_job
