"""An operator's file of this host as a page sees it: its content, its age, and which workers have it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dispatch.console.adoption import Adoption, Followed, digest_of, judge
from dispatch.operator_files.content import opened, read_from
from dispatch.pages.sight import Sight, Unseen
from hosts import names, roster
from hosts.rows import HostRow, Unreachable
from pidispatch_site import conf


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands under a path now; both are None where nothing can be read there."""

    content: bytes | None = None
    age_ms: int | None = None


def standing(path: Path) -> Standing:
    """Read the file at this path, and how long ago it was written, by this machine's clock."""
    try:
        with opened(path) as (descriptor, found):
            content = read_from(descriptor)
    except (OSError, ValueError):
        return Standing()
    return Standing(content, max(0, round((time.time() - found.st_mtime) * 1000)))


def of_rows(
    rows: Sequence[HostRow], path: Path, followed: Followed, environment: Mapping[str, str]
) -> Adoption:
    """Compare the file with what these hosts say; ConfigurationError for a bad PI_WORKER_NAME."""
    found, name = standing(path), conf.one("PI_WORKER_NAME", environment)
    own = name if names.in_alphabet(name) else None
    return judge(rows, digest_of(found.content), followed, own=own, age_ms=found.age_ms)


def adoption(
    seen: Sight, path: Path, followed: Followed, environment: Mapping[str, str]
) -> Adoption | Unseen:
    """Ask the registry, then as `of_rows`."""
    found = seen.read(roster.read)
    if isinstance(found, Unseen):
        return found
    if isinstance(found, Unreachable):
        return Unseen(unread(found, seen.shown))
    return of_rows(found.hosts, path, followed, environment)


def unread(registry: Unreachable, server: str) -> str:
    """Say that nobody tells which hosts there are."""
    return f"Valkey at {server} does not tell which hosts there are ({registry.reason})."
