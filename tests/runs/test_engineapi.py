from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.container import ISOLATION, ContainerSpec, Mount
from runs.engine_answers import inspected_container, inspected_image, inspected_network, listed_container
from runs.engine_frames import Demultiplexer
from runs.engine_requests import creation_body, label_filter

SPEC = ContainerSpec(
    name="pi-job-x",
    image="pi-job:latest",
    environment={"PI_JOB_ID": "pi-job-x", "EQUALS": "a=b c"},
    mounts=(Mount(source="/jobs/x", target="/job", read_only=True),),
    labels={"dev.pi-dispatch.job": "x"},
    user=None,
)


def test_a_container_is_asked_for_exactly_like_this():
    assert creation_body(SPEC, ISOLATION) == {
        "Image": "pi-job:latest",
        "Env": ["PI_JOB_ID=pi-job-x", "EQUALS=a=b c"],
        "Labels": {"dev.pi-dispatch.job": "x"},
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "AutoRemove": False,
            "Init": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "PidsLimit": 512,
            "ShmSize": 2**30,
            "Memory": 4 * 2**30,
            "MemorySwap": 4 * 2**30,
            "NanoCpus": 2 * 10**9,
            "PublishAllPorts": False,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "2"}},
            "Mounts": [{"Type": "bind", "Source": "/jobs/x", "Target": "/job", "ReadOnly": True}],
        },
    }


def test_a_user_is_passed_only_when_there_is_one():
    assert "User" not in creation_body(SPEC, ISOLATION)
    assert creation_body(replace(SPEC, user="1234:1234"), ISOLATION)["User"] == "1234:1234"


def _inspection(**state: object) -> dict[str, object]:
    return {
        "Id": "abc",
        "Name": "/pi-job-x",
        "Config": {"Labels": None},
        "State": {"Status": "exited", "ExitCode": 0, "OOMKilled": False, **state},
    }


@pytest.mark.parametrize(
    ("state", "code", "oom_killed", "ended"),
    [
        pytest.param({"Status": "created", "ExitCode": 0}, None, False, False, id="created is no success"),
        pytest.param({"Status": "running", "ExitCode": 0}, None, False, False, id="running is no success"),
        pytest.param({"Status": "paused", "ExitCode": 0}, None, False, False, id="paused"),
        pytest.param({"Status": "exited", "ExitCode": 3}, 3, False, True, id="exited"),
        pytest.param({"Status": "dead", "ExitCode": 137}, 137, False, True, id="dead"),
        pytest.param({"Status": "removing", "ExitCode": 1}, 1, False, True, id="being removed"),
        pytest.param({"ExitCode": 137, "OOMKilled": True}, 137, True, True, id="out of memory"),
        pytest.param({"Status": "running", "OOMKilled": True}, None, False, False, id="a child's memory"),
    ],
)
def test_a_code_counts_only_once_the_container_has_ended(state, code, oom_killed, ended):
    facts = inspected_container(_inspection(**state))

    assert (facts.exit_code, facts.oom_killed, facts.ended) == (code, oom_killed, ended)
    assert (facts.name, dict(facts.labels)) == ("pi-job-x", {})


@pytest.mark.parametrize(
    ("names", "name"),
    [
        pytest.param(["/pi-job-x"], "pi-job-x", id="one"),
        pytest.param(["/other/alias", "/pi-job-x"], "pi-job-x", id="linked under another's name"),
        pytest.param([], "", id="none"),
        pytest.param(None, "", id="null"),
    ],
)
def test_a_listed_container_goes_by_its_own_name(names, name):
    assert listed_container({"Id": "a", "Names": names, "State": "running", "Labels": None}).name == name


@pytest.mark.parametrize(
    ("labels", "version", "forges", "capabilities"),
    [
        pytest.param(None, None, None, None, id="no labels"),
        pytest.param(
            {
                "dev.pi-dispatch.pi-version": "1.6.0",
                "dev.pi-dispatch.forges": "github, gitlab",
                "dev.pi-dispatch.capabilities": "commands,anyUid,commands",
            },
            "1.6.0",
            frozenset({"github", "gitlab"}),
            frozenset({"commands", "anyUid"}),
            id="all of them",
        ),
        pytest.param(
            {
                "dev.pi-dispatch.pi-version": " ",
                "dev.pi-dispatch.forges": " , ,",
                "dev.pi-dispatch.capabilities": "",
            },
            None,
            None,
            None,
            id="nothing usable counts as absent",
        ),
    ],
)
def test_labels_of_an_image_are_read_leniently(labels, version, forges, capabilities):
    facts = inspected_image({"Id": "sha256:1", "Config": {"Labels": labels, "User": "1001:1001"}})

    assert (facts.pi_version, facts.forges, facts.capabilities) == (version, forges, capabilities)
    assert facts.user == "1001:1001"


def test_an_image_without_a_configuration_is_read_as_one_of_root():
    assert inspected_image({"Id": "sha256:1", "Config": None}).user == ""


def test_a_network_names_what_is_attached():
    facts = inspected_network(
        {
            "Id": "n",
            "Name": "pi-job-x",
            "Labels": None,
            "Containers": {"c2": {"Name": "b"}, "c1": {"Name": "a"}},
        }
    )

    assert (facts.name, facts.attached) == ("pi-job-x", ("a", "b"))


def test_all_labels_of_a_filter_must_match():
    assert label_filter({"a": "1", "b": "x=y"}) == ["a=1", "b=x=y"]


FRAMES = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=300)), max_size=10)


@given(FRAMES, st.lists(st.integers(min_value=0, max_value=3000), max_size=20))
def test_frames_are_taken_apart_wherever_they_are_cut(frames, cuts):
    sent = b"".join(
        bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload for stream, payload in frames
    )
    edges = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    demultiplexer = Demultiplexer()

    received = b"".join(demultiplexer.feed(sent[start:end]) for start, end in pairwise(edges))

    assert received == b"".join(payload for _, payload in frames)


def test_a_line_of_many_frames_is_passed_on_piece_by_piece():
    demultiplexer = Demultiplexer()
    header = bytes([1, 0, 0, 0]) + (64 << 20).to_bytes(4, "big")

    assert demultiplexer.feed(header) == b""
    assert demultiplexer.feed(b"x" * 1000) == b"x" * 1000
    assert demultiplexer.feed(b"y") == b"y"
