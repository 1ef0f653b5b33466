"""What one container run needs, as values: the only thing that crosses from admission to execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class JobUser:
    """The uid and gid a job runs as; never root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One attempt of one job, ready to become a container.

    `token` is the pop's token (`boot/sequence`), `boot` the boot id of this worker process and `host_id` the
    state directory's id; they become labels. `credentials` are the provider's and the forwarded variables by
    name; they reach the container's environment and nothing else.
    """

    job_id: str
    attempt: int
    token: str
    boot: str
    host_id: str
    kind: str
    scope_hash: str | None
    image: str
    provider: str
    model: str
    max_turns: int
    max_tokens: int | None = None
    flow: str | None = None
    command: str | None = None
    job_dir: Path
    workspace: Path
    outbox: Path | None = None
    global_pi_dir: Path | None = None
    global_allow_extensions: bool = True
    user: JobUser | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    deadline: datetime
