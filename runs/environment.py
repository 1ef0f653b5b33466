"""The closed map of variables that a job's container gets (E 1.3); nothing else of the worker's enters it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from pidispatch_site.errors import ConfigurationError
from runs.request import RunRequest

HOME = "/home/pi"

#: The variables of a forge's minted token, by kind. A kind that is not here gets no container at all.
TOKEN_NAMES: Mapping[str, tuple[str, ...]] = {
    "local": (),
    "github": ("GITHUB_TOKEN", "GH_TOKEN"),
    "gitlab": ("GITLAB_TOKEN", "GL_TOKEN"),
    "forgejo": ("FORGEJO_TOKEN", "GITEA_SERVER_TOKEN"),
    "azure": ("AZURE_DEVOPS_EXT_PAT", "SYSTEM_ACCESSTOKEN"),
}

#: Secrets of the worker and the receiver that no job may see.
WORKER_ONLY_NAMES = frozenset(
    {
        *("GITHUB_PAT", "GITHUB_APP_PRIVATE_KEY", "AZURE_TOKEN"),
        *("WEBHOOK_SECRET", "GITLAB_WEBHOOK_SECRET", "FORGEJO_WEBHOOK_SECRET", "AZURE_WEBHOOK_SECRET"),
        *("VALKEY_URL", "DATABASE_URL", "SECRET_KEY", "DJANGO_SECRET_KEY"),
    }
)

#: Names that are never taken from the worker's environment, whoever asks.
FORBIDDEN_NAMES = WORKER_ONLY_NAMES | {name for names in TOKEN_NAMES.values() for name in names}

#: Names that this map writes itself; a forwarded variable of the same name would change what a job may do.
WRITTEN_NAMES = frozenset(
    {
        *("PI_PROVIDER", "PI_MODEL", "PI_MAX_TURNS", "PI_MAX_TOKENS", "PI_JOB_ID", "PI_JOB_DEADLINE"),
        *("PLAYWRIGHT_BROWSERS_PATH", "PLAYWRIGHT_MCP_BROWSER", "PLAYWRIGHT_MCP_SANDBOX"),
        *("PI_GLOBAL_ALLOW_EXTENSIONS", "PI_PACKAGES", "PI_SESSION_FILE", "PI_FLOW", "PI_COMMAND"),
        *("PI_OFFLINE", "HOME"),
    }
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def may_enter(name: str) -> bool:
    """Whether a variable of this name may be taken from the worker's environment into a container."""
    return bool(_NAME.fullmatch(name)) and name not in FORBIDDEN_NAMES and name not in WRITTEN_NAMES


def forwarded(names: Iterable[str], worker: Mapping[str, str]) -> dict[str, str]:
    """Take the variables of `PI_FORWARD_ENV` that hold something; an absent or empty one is left out."""
    return {name: worker[name] for name in names if worker.get(name)}


def epoch_seconds(instant: datetime) -> int:
    """Whole seconds since 1970, rounded up; raises ConfigurationError for a time without a zone."""
    if instant.tzinfo is None:
        raise ConfigurationError("a deadline needs a time zone")
    return math.ceil(instant.timestamp())


def build(request: RunRequest, *, container_name: str) -> dict[str, str]:
    """Build the container's whole environment in the order of E 1.3; an absent value is an absent variable.

    Takes only what the request names. Raises ConfigurationError for a kind that we do not know, a variable
    that may not enter a container, and a value that no variable can hold.
    """
    if request.kind not in TOKEN_NAMES:
        known = ", ".join(TOKEN_NAMES)
        raise ConfigurationError(f"unknown kind of job {request.kind!r}: expected one of {known}")
    refused = sorted(name for name in request.credentials if not may_enter(name))
    if refused:
        raise ConfigurationError(*(f"the variable {name} may not be passed to a job" for name in refused))
    variables = {
        **_of_the_job(request, container_name),
        **{name: value for name, value in request.credentials.items() if value},
    }
    for name, value in variables.items():
        if "\0" in value:
            raise ConfigurationError(f"the variable {name} holds a NUL byte")
    return variables


def _of_the_job(request: RunRequest, container_name: str) -> dict[str, str]:
    values = {
        "PI_PROVIDER": request.provider,
        "PI_MODEL": request.model,
        "PI_MAX_TURNS": str(request.max_turns),
        "PI_MAX_TOKENS": None if request.max_tokens is None else str(request.max_tokens),
        "PI_JOB_ID": container_name,
        "PLAYWRIGHT_BROWSERS_PATH": "/ms-playwright",
        "PLAYWRIGHT_MCP_BROWSER": "chromium",
        "PLAYWRIGHT_MCP_SANDBOX": "false",
        "PI_GLOBAL_ALLOW_EXTENSIONS": None if request.global_allow_extensions else "0",
        "PI_FLOW": request.flow if request.flow and request.flow.strip() else None,
        "PI_COMMAND": request.command,
        "PI_OFFLINE": "1",
        "PI_JOB_DEADLINE": str(epoch_seconds(request.deadline)),
        "HOME": HOME if request.user else None,
    }
    return {name: value for name, value in values.items() if value is not None}
