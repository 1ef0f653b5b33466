"""How one of our containers and networks is told from anybody else's (contracts 6).

Ours = the label `HOST` equals this state directory's host-id **and** the name has exactly our prefix; either
alone proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

NAME_PREFIX = "pi-job-"

HOST = "dev.pi-dispatch.host"
BOOT = "dev.pi-dispatch.boot"
JOB = "dev.pi-dispatch.job"
ATTEMPT = "dev.pi-dispatch.attempt"
SCOPE = "dev.pi-dispatch.scope"
DEADLINE = "dev.pi-dispatch.deadline"


def is_ours(name: str, labels: Mapping[str, str], host_id: str) -> bool:
    """Whether a container or network belongs to this state directory."""
    return bool(host_id) and labels.get(HOST) == host_id and name.startswith(NAME_PREFIX)


def same_attempt(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two label sets name the same attempt of the same job on the same host."""
    return all(one.get(label) and one.get(label) == other.get(label) for label in (HOST, JOB, ATTEMPT))
