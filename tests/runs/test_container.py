from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch_site.errors import ConfigurationError
from runs.container import ISOLATION, Mount, build_spec, container_name
from runs.request import JobUser, RunRequest

BOOT = "aaaaaaaaaaaaaaaa-bbbbbbbb"
DEADLINE = datetime(2026, 8, 1, 12, 30, tzinfo=UTC)

REQUEST = RunRequest(
    job_id="local-0123456789abcdef",
    attempt=0,
    token=f"{BOOT}/7",
    boot=BOOT,
    host_id="aaaaaaaaaaaaaaaa",
    kind="local",
    scope_hash="0011223344556677",
    image="pi-job:latest",
    provider="anthropic",
    model="claude-x-20260101",
    max_turns=30,
    job_dir=Path("/jobs/job-x1"),
    workspace=Path("/repos/shop"),
    outbox=Path("/jobs/job-x1/outbox"),
    credentials={"ANTHROPIC_API_KEY": "canary-key"},
    deadline=DEADLINE,
)

MOUNTS = (
    Mount(source="/jobs/job-x1", target="/job", read_only=True),
    Mount(source="/repos/shop", target="/workspace", read_only=False),
    Mount(source="/jobs/job-x1/outbox", target="/outbox", read_only=False),
)


def test_a_local_job_is_described_exactly_like_this():
    spec = build_spec(REQUEST)

    assert spec.name == "pi-job-local-0123456789abcdef"
    assert spec.image == "pi-job:latest"
    assert spec.user is None
    assert spec.mounts == MOUNTS
    assert dict(spec.labels) == {
        "dev.pi-dispatch.host": "aaaaaaaaaaaaaaaa",
        "dev.pi-dispatch.boot": "aaaaaaaaaaaaaaaa-bbbbbbbb",
        "dev.pi-dispatch.job": "local-0123456789abcdef",
        "dev.pi-dispatch.attempt": "aaaaaaaaaaaaaaaa-bbbbbbbb/7",
        "dev.pi-dispatch.scope": "0011223344556677",
        "dev.pi-dispatch.deadline": "1785587400",
    }


def test_isolation_is_the_table_of_the_specification():
    assert ISOLATION.drop_capabilities == ("ALL",)
    assert ISOLATION.security_options == ("no-new-privileges",)
    assert (ISOLATION.processes, ISOLATION.nano_cpus) == (512, 2_000_000_000)
    assert ISOLATION.memory_bytes == ISOLATION.memory_and_swap_bytes == 4 * 1024**3
    assert ISOLATION.shared_memory_bytes == 1024**3
    assert ISOLATION.init
    assert (ISOLATION.log_driver, dict(ISOLATION.log_options)["max-size"]) == ("json-file", "10m")


@pytest.mark.parametrize("kind", ["github", "gitlab", "forgejo", "azure"])
def test_a_forge_job_has_two_mounts_and_no_outbox(kind: str):
    request = replace(REQUEST, kind=kind, workspace=Path("/jobs/job-x1/workspace"), outbox=None)

    assert [(m.source, m.target, m.read_only) for m in build_spec(request).mounts] == [
        ("/jobs/job-x1", "/job", True),
        ("/jobs/job-x1/workspace", "/workspace", False),
    ]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        pytest.param({"max_tokens": 9}, {"environment"}, id="token budget"),
        pytest.param({"flow": "fix"}, {"environment"}, id="flow"),
        pytest.param({"command": "deploy now"}, {"environment"}, id="command"),
        pytest.param({"global_allow_extensions": False}, {"environment"}, id="extensions opt-out"),
        pytest.param({"global_pi_dir": Path("/etc/pi")}, {"mounts"}, id="overlay"),
        pytest.param({"user": JobUser(501, 20)}, {"environment", "user"}, id="job user"),
        pytest.param({"credentials": {}}, {"environment"}, id="credentials"),
        pytest.param({"outbox": None}, {"mounts"}, id="outbox"),
        pytest.param({"scope_hash": None}, {"labels"}, id="scope"),
        pytest.param({"attempt": 1, "token": "b/9"}, {"labels"}, id="second attempt"),
    ],
)
def test_a_feature_changes_only_its_own_part_and_its_absence_changes_nothing(change, differs):
    plain, changed = build_spec(REQUEST), build_spec(replace(REQUEST, **change))
    fields = ("name", "image", "environment", "mounts", "labels", "user")

    assert {field for field in fields if getattr(plain, field) != getattr(changed, field)} == differs
    assert build_spec(replace(REQUEST, flow="  ", max_tokens=None, command=None)) == plain


def test_the_overlay_is_read_only_and_comes_last():
    spec = build_spec(replace(REQUEST, global_pi_dir=Path("/etc/pi")))

    assert spec.mounts == (*MOUNTS, Mount(source="/etc/pi", target="/opt/pi-global", read_only=True))


def test_a_user_is_passed_together_with_a_home():
    spec = build_spec(replace(REQUEST, user=JobUser(501, 20)))

    assert spec.user == "501:20"
    assert spec.environment["HOME"] == "/home/pi"
    assert "HOME" not in build_spec(REQUEST).environment


@pytest.mark.parametrize(
    ("job_id", "name"),
    [
        pytest.param("gh-72d3162e", "pi-job-gh-72d3162e", id="as it is"),
        pytest.param("repeat:nightly:1785587400000", "pi-job-repeat_nightly_1785587400000", id="colons"),
        pytest.param("a b/ü", "pi-job-a_b__", id="other characters"),
        pytest.param("x😀", "pi-job-x__", id="an emoji is two units"),
        pytest.param("x\n", "pi-job-x_", id="a final newline"),
    ],
)
def test_a_name_holds_only_what_the_engine_allows(job_id: str, name: str):
    assert container_name(job_id) == name


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"kind": "bitbucket"}, "unknown kind of job 'bitbucket'", id="kind"),
        pytest.param({"job_id": ""}, "without an id", id="id"),
        pytest.param({"kind": "github"}, "no outbox", id="outbox of a forge job"),
        pytest.param({"workspace": Path("shop")}, "mounted at /workspace", id="relative workspace"),
        pytest.param({"job_dir": Path("/jobs/../etc")}, "mounted at /job", id="upwards"),
        pytest.param({"workspace": Path("/")}, "mounted at /workspace", id="the root"),
        pytest.param(
            {"global_pi_dir": Path("pi-global")}, "mounted at /opt/pi-global", id="relative overlay"
        ),
        pytest.param({"user": JobUser(0, 20)}, "never runs as root", id="root"),
        pytest.param({"user": JobUser(501, 0)}, "never runs as root", id="root's group"),
        pytest.param({"deadline": DEADLINE.replace(tzinfo=None)}, "time zone", id="naive deadline"),
    ],
)
def test_a_request_that_no_container_may_have_is_refused(change, says: str):
    with pytest.raises(ConfigurationError, match=says):
        build_spec(replace(REQUEST, **change))


def test_no_credential_is_seen_in_the_text_of_a_request_or_a_specification():
    assert "canary" not in repr(REQUEST)
    assert "canary" not in repr(build_spec(REQUEST))


_TEXT = st.text(min_size=1, max_size=12)
_FOLDER = st.lists(st.text(alphabet="abc._-:, *$\n", min_size=1, max_size=6), min_size=1, max_size=3).map(
    lambda parts: Path("/", *parts)
)


@st.composite
def _requests(draw) -> RunRequest:
    kind = draw(st.sampled_from(["local", "github", "gitlab", "forgejo", "azure"]))
    return replace(
        REQUEST,
        job_id=draw(_TEXT),
        token=draw(_TEXT),
        kind=kind,
        image=draw(_TEXT),
        provider=draw(_TEXT),
        model=draw(_TEXT),
        flow=draw(st.none() | st.text(max_size=5)),
        command=draw(st.none() | _TEXT),
        max_turns=draw(st.integers(1, 10**6)),
        max_tokens=draw(st.none() | st.integers(1, 10**9)),
        job_dir=draw(_FOLDER),
        workspace=draw(_FOLDER),
        outbox=draw(st.none() | _FOLDER) if kind == "local" else None,
        global_pi_dir=draw(st.none() | _FOLDER),
        user=draw(st.none() | st.builds(JobUser, st.integers(-1, 3), st.integers(-1, 3))),
        credentials=draw(
            st.dictionaries(st.sampled_from(["OPENAI_API_KEY", "PI_OFFLINE", "X", "HOME"]), _TEXT)
        ),
        deadline=DEADLINE + timedelta(seconds=draw(st.integers(0, 10**6))),
    )


_ALLOWED = {("/job", True), ("/workspace", False), ("/outbox", False), ("/opt/pi-global", True)}


@given(_requests())
def test_nothing_in_a_request_adds_a_mount_makes_one_writable_or_makes_the_job_root(request: RunRequest):
    try:
        spec = build_spec(request)
    except ConfigurationError:
        return

    places = [(mount.target, mount.read_only) for mount in spec.mounts]
    assert set(places) <= _ALLOWED
    assert len(places) == len(set(places))
    assert {("/job", True), ("/workspace", False)} <= set(places)
    assert all(mount.source.startswith("/") and len(mount.source) > 1 for mount in spec.mounts)
    assert spec.user is None or all(int(part) > 0 for part in spec.user.split(":"))
    assert spec.environment["PI_OFFLINE"] == "1"
    assert spec.environment.get("HOME", "/home/pi") == "/home/pi"
    assert spec.name.startswith("pi-job-")
    assert all(key.startswith("dev.pi-dispatch.") for key in spec.labels)
