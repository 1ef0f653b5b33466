"""The closed map of variables that a job's container gets (E 1.3); nothing else of the worker's enters it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from pidispatch_site.errors import ConfigurationError
from pidispatch_site.known_names import MINTED, SET_BY_WORKER, WORKER_ONLY
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

#: Names that are never taken from the worker's environment, whoever asks: secrets that no job may see, and
#: what the map writes itself, where another value would change what a job may do.
REFUSED_NAMES = WORKER_ONLY | MINTED | SET_BY_WORKER

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_a_name(text: str) -> bool:
    """Whether a variable can be called so."""
    return bool(_NAME.fullmatch(text))


def may_enter(name: str) -> bool:
    """Whether a variable of this name may be taken from the worker's environment into a container."""
    return is_a_name(name) and name not in REFUSED_NAMES


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
