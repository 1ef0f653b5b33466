from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.knobs import Knobs
from tests.harness.worker_process import PROVIDER_KEY

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
#: What a job gets by E 1.3, and nothing beside it.
MAP = {
    *("PI_PROVIDER", "PI_MODEL", "PI_MAX_TURNS", "PI_JOB_ID", "PI_OFFLINE", "PI_JOB_DEADLINE"),
    *("PLAYWRIGHT_BROWSERS_PATH", "PLAYWRIGHT_MCP_BROWSER", "PLAYWRIGHT_MCP_SANDBOX"),
    *("ANTHROPIC_API_KEY", "FORWARDED"),
}
#: What the image, the engine and the shell add.
AROUND = {"PATH", "HOSTNAME", "HOME", "PWD", "SHLVL", "OLDPWD", "_"}


def _everything_written(home: Path) -> str:
    return "\n".join(
        path.read_bytes().decode("latin-1")
        for path in home.rglob("*")
        if path.is_file() and "ground" not in path.parts
    )


def test_nothing_of_the_workers_environment_reaches_a_job_but_the_closed_map(contained):
    worker = contained.worker(
        environment={
            **POISON,
            "FORWARDED": "forwarded",
            "PI_FORWARD_ENV": "FORWARDED",
            "PI_CAPTURE_JOB_LOGS": "1",
        }
    )
    worker.start(Knobs())
    folder = contained.folder("folder", env_dump="", command="touch /job/x; touch /workspace/made")
    contained.enqueue(folder)
    contained.until_over(seconds=20)
    contained.require_sound()

    given = dict(line.split("=", 1) for line in (folder / ".fake" / "env-dump").read_text().splitlines())
    assert set(given) - AROUND == MAP
    assert (given["FORWARDED"], given["ANTHROPIC_API_KEY"]) == ("forwarded", PROVIDER_KEY)
    assert CANARY not in json.dumps(given)
    assert "Read-only file system" in (folder / ".fake" / "command.out").read_text()
    assert (folder / "made").exists()

    written = _everything_written(worker.home)
    kept = contained.everything_in_valkey()
    for secret in (CANARY, PROVIDER_KEY):
        assert secret not in written
        assert secret not in kept
