"""One running container of a whole worker with a poisoned environment: what holds it, what it gets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from runs import labels
from runs.workspace.scope import hash16
from tests.harness.fleet import Fleet
from tests.harness.knobs import QUICK, Knobs
from tests.harness.worker_process import PROVIDER_KEY, until
from tests.runs.realjobs import MAPPED, USER

pytestmark = pytest.mark.docker

CANARY = "canary-7f3a"
POISON = {
    name: f"{CANARY}-{name}"
    for name in (
        *("GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PAT", "GITLAB_TOKEN", "FORGEJO_TOKEN", "AZURE_DEVOPS_EXT_PAT"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OP_SESSION"),
        *("NODE_OPTIONS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "SSH_AUTH_SOCK", "MAIL"),
        *("PI_OFFLINE", "PI_COMMAND", "PI_FLOW", "PI_JOB_ID", "PI_CODING_AGENT_SESSION", "DJANGO_SECRET_KEY"),
    )
}
#: What the shell in the container adds to what it was given.
SHELLS = {"HOSTNAME", "PWD", "SHLVL", "OLDPWD", "_"}

#: E 1.1 as amended by contracts 6: everything that is set; all else must be empty.
HELD_BY = {
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"],
    "PidsLimit": 512,
    "ShmSize": 1 << 30,
    "Memory": 4 << 30,
    "MemorySwap": 4 << 30,
    "NanoCpus": 2 * 10**9,
    "Init": True,
    "IpcMode": "private",
    "NetworkMode": "default",
    "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
    "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "2"}},
}
#: What an engine fills in by itself, differently from version to version; mounts are looked at apart.
ENGINES_OWN = {"CgroupnsMode", "Runtime", "ConsoleSize", "MaskedPaths", "ReadonlyPaths", "Mounts"}

COMMAND = "touch /job/x; touch /workspace/running; until [ -e /workspace/go ]; do sleep 0.05; done"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The container as the engine described it, the image likewise, and what was left behind afterwards."""

    fleet: Fleet
    job_id: str
    host_id: str
    state: Path
    folder: Path
    container: Mapping[str, Any]
    image: Mapping[str, Any]
    dump: Mapping[str, str]


@pytest.fixture(scope="module")
def seen(valkey_server_url: str, engine: Any, fake_image: str) -> Iterator[Seen]:
    with redis.Redis.from_url(valkey_server_url) as client:
        client.flushall()
    with Fleet(valkey_server_url, image=fake_image, engine=engine) as fleet:
        worker = fleet.worker(
            environment={
                **POISON,
                "FORWARDED": "forwarded",
                "PI_FORWARD_ENV": "FORWARDED",
                "PI_CAPTURE_JOB_LOGS": "1",
            }
        )
        worker.start(Knobs())
        folder = fleet.folder("folder", env_dump="", command=COMMAND)
        if os.geteuid() == 0:
            # Somebody whom the image does not know: the engine is told who it is.
            subprocess.run(["chown", "-R", f"{USER.uid}:{USER.gid}", str(folder)], check=True)
        job_id = fleet.enqueue(folder, provider="anthropic", model="a-model", max_turns=7)
        until((folder / "running").exists, seconds=20, what="the job runs")
        assert worker.host_id is not None
        ours = {"label": [f"{labels.HOST}={worker.host_id}"]}
        # The engine may know only a moment later that what it started is running.
        until(lambda: engine.api.containers(filters=ours), seconds=5, what="the engine lists it")
        (one,) = engine.api.containers(filters=ours)
        container = engine.api.inspect_container(one["Id"])
        (folder / "go").touch()
        fleet.until_over(seconds=20)
        fleet.require_sound()
        dump = (folder / ".fake" / "env-dump").read_text().splitlines()
        yield Seen(
            fleet=fleet,
            job_id=job_id,
            host_id=worker.host_id,
            state=worker.home,
            folder=folder,
            container=container,
            image=engine.api.inspect_image(container["Image"])["Config"],
            dump=dict(line.split("=", 1) for line in dump),
        )


def test_a_job_is_held_by_exactly_these_options(seen):
    host = seen.container["HostConfig"]

    set_ones = {name: value for name, value in host.items() if value and name not in ENGINES_OWN}
    assert set_ones == HELD_BY
    assert {"/proc/kcore", "/proc/keys", "/sys/firmware"} <= set(host["MaskedPaths"])
    assert {"/proc/sys", "/proc/sysrq-trigger"} <= set(host["ReadonlyPaths"])
    assert seen.container["NetworkSettings"]["Ports"] == {}
    assert list(seen.container["NetworkSettings"]["Networks"]) == ["bridge"]


def test_a_job_sees_three_folders_of_the_host_and_its_own_task_only_to_read(seen):
    mounts = {mount["Destination"]: mount for mount in seen.container["Mounts"]}
    (job_dir,) = {mounts["/job"]["Source"], str(Path(mounts["/outbox"]["Source"]).parent)}

    assert {place: (mount["Type"], mount["RW"]) for place, mount in mounts.items()} == {
        "/job": ("bind", False),
        "/workspace": ("bind", True),
        "/outbox": ("bind", True),
    }
    assert mounts["/workspace"]["Source"] == str(seen.folder)
    assert mounts["/outbox"]["Source"] == f"{job_dir}/outbox"
    assert Path(job_dir).parent == seen.state / "state" / "jobs"
    assert (seen.folder / ".fake" / "command.out").read_text() == "touch: /job/x: Read-only file system\n"


def test_a_job_runs_what_the_image_says_as_the_owner_of_its_folder(seen):
    config = seen.container["Config"]

    assert seen.container["Name"] == f"/pi-job-{seen.job_id}"
    assert config["User"] == f"{MAPPED.uid}:{MAPPED.gid}"
    assert (seen.folder / "running").stat().st_uid == MAPPED.uid
    for name in ("Cmd", "Entrypoint", "WorkingDir", "Volumes"):
        assert config[name] == seen.image[name]
    streams = ("AttachStdin", "AttachStdout", "AttachStderr", "Tty", "OpenStdin", "StdinOnce")
    assert not any(config[name] for name in streams)


def test_a_container_says_by_six_labels_whose_it_is(seen):
    own = {
        name: value
        for name, value in seen.container["Config"]["Labels"].items()
        if name not in seen.image["Labels"]
    }
    boot = own[labels.BOOT]

    assert boot.startswith(f"{seen.host_id}-")
    assert own[labels.ATTEMPT].startswith(f"{boot}/")
    assert own == {
        labels.HOST: seen.host_id,
        labels.BOOT: boot,
        labels.JOB: seen.job_id,
        labels.ATTEMPT: own[labels.ATTEMPT],
        labels.SCOPE: hash16(str(seen.folder)),
        labels.DEADLINE: own[labels.DEADLINE],
    }


def test_a_job_gets_the_closed_map_of_variables_and_nothing_of_the_workers(seen):
    config = seen.container["Config"]
    given = dict(entry.split("=", 1) for entry in config["Env"])
    deadline = config["Labels"][labels.DEADLINE]

    assert given == {
        "PI_PROVIDER": "anthropic",
        "PI_MODEL": "a-model",
        "PI_MAX_TURNS": "7",
        "PI_JOB_ID": f"pi-job-{seen.job_id}",
        "PI_OFFLINE": "1",
        "PI_JOB_DEADLINE": deadline,
        "PLAYWRIGHT_BROWSERS_PATH": "/ms-playwright",
        "PLAYWRIGHT_MCP_BROWSER": "chromium",
        "PLAYWRIGHT_MCP_SANDBOX": "false",
        # The image's own user has a home of its own.
        **({} if config["User"] == seen.image["User"] else {"HOME": "/home/pi"}),
        "ANTHROPIC_API_KEY": PROVIDER_KEY,
        "FORWARDED": "forwarded",
        "PATH": "/bin",
    }
    assert {name: value for name, value in seen.dump.items() if name not in SHELLS} == given
    limit = int(deadline) - datetime.fromisoformat(seen.container["State"]["StartedAt"]).timestamp()
    assert QUICK.job_limit < limit <= QUICK.job_limit + QUICK.deadline_slack + 1


def _everything_written(home: Path) -> str:
    return "\n".join(path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file())


def test_no_secret_of_the_worker_is_written_down_or_kept_in_valkey(seen):
    assert CANARY not in json.dumps(seen.container)
    written = _everything_written(seen.state)
    kept = seen.fleet.everything_in_valkey()
    assert seen.job_id in written
    assert seen.job_id in kept
    for secret in (CANARY, PROVIDER_KEY):
        assert secret not in written
        assert secret not in kept
