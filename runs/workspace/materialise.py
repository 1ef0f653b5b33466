"""The repository's own persona and skills, read from git's object store at a pinned commit (E 3.4).

Never from the working tree: a dirty file, a symbolic link or a smudge filter reaches no prompt. `plan`
decides from the listing alone, before any content is read; `read_contents` brings the bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runs.outcome import InfraFault, Reason, Refusal
from runs.workspace.git import Git, GitOutputTooLargeError
from runs.workspace.head import SHA

FILES_MAX = 256
FILES_PER_SKILL_MAX = 64
FILE_BYTES_MAX = 1024 * 1024
TOTAL_BYTES_MAX = 8 * 1024 * 1024
PATH_MAX = 200
_SEGMENTS_MAX = 4

# Bytes patterns, because text patterns that ignore case also match non-ASCII letters (U+017F, U+212A).
SKILL_NAME = re.compile(rb"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_SEGMENT = re.compile(rb"[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?", re.IGNORECASE)
_DEVICE = re.compile(rb"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
_ENTRY = re.compile(rb"([0-7]{6}) (blob|tree|commit) ([0-9a-f]{40,64}) +([0-9]+|-)\t(.+)", re.DOTALL)
_REGULAR_FILE = b"100644"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of `git ls-tree -l`: `size_bytes` is None for what is no blob; `path` as git has it."""

    mode: bytes
    oid: str
    size_bytes: int | None
    path: bytes


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file to be written, `path` below the folder `pi`, made of validated segments only."""

    path: str
    oid: str
    size_bytes: int


def materialise(folder: Path, *, sha: str | None, git: Git) -> dict[str, bytes] | Refusal:
    """Read the files of `/job/pi` at `sha` (None = no commit, no files): path below `pi` → content.

    Two git processes, one when there is nothing to read. Raises `InfraFault` when git cannot tell.
    """
    if sha is None:
        return {}
    if not SHA.fullmatch(sha):
        raise InfraFault(detail="git-bad-sha")
    try:
        listing = git.tell("ls-tree", "-r", "-l", "-z", "--full-tree", sha, "--", ".pi/", cwd=folder)
    except GitOutputTooLargeError:
        return Refusal(Reason.PI_TOO_MANY_FILES)
    planned = plan(parse_listing(listing))
    if isinstance(planned, Refusal):
        return planned
    return read_contents(folder, planned, git=git)


def parse_listing(listing: bytes) -> list[Entry]:
    """Parse what `git ls-tree -r -l -z` printed; an entry that is not understood is an `InfraFault`.

    So is a blob without a size (git prints `BAD` for a missing object): it would slip through the caps.
    """
    entries: list[Entry] = []
    for line in listing.split(b"\0")[:-1]:
        match = _ENTRY.fullmatch(line)
        if match is None or (match[2] == b"blob") == (match[4] == b"-"):
            raise InfraFault(detail="git-listing-unreadable")
        size_bytes = None if match[4] == b"-" else int(match[4])
        entries.append(Entry(match[1], match[3].decode("ascii"), size_bytes, match[5]))
    if listing and not listing.endswith(b"\0"):
        raise InfraFault(detail="git-listing-unreadable")
    return entries


def plan(entries: Iterable[Entry]) -> tuple[PlannedFile, ...] | Refusal:
    """Choose what is written, or refuse; decided before anything is read.

    What is not allowed is left out silently (E 3.4): links, executables, submodules, other paths, a skill
    without a `SKILL.md`.
    """
    files = [file for entry in entries if (file := _allowed(entry)) is not None]
    complete = {_skill(file.path) for file in files if file.path.endswith("/SKILL.md")}
    kept = [file for file in files if _skill(file.path) is None or _skill(file.path) in complete]
    reason = _breach(kept)
    return tuple(kept) if reason is None else Refusal(reason)


def _allowed(entry: Entry) -> PlannedFile | None:
    if entry.mode != _REGULAR_FILE or entry.size_bytes is None:
        return None
    segments = entry.path.split(b"/")
    match segments:
        case [b".pi", b"APPEND_SYSTEM.md"]:
            path = "APPEND_SYSTEM.md"
        case [b".pi", b"skills", name, *rest] if _is_skill_path(name, rest):
            path = "/".join(part.decode("ascii") for part in segments[1:])
        case _:
            return None
    if len(path) > PATH_MAX:
        return None
    return PlannedFile(path, entry.oid, entry.size_bytes)


def _is_skill_path(name: bytes, rest: list[bytes]) -> bool:
    if not SKILL_NAME.fullmatch(name) or not 1 <= len(rest) <= _SEGMENTS_MAX:
        return False
    return all(_SEGMENT.fullmatch(part) and not _DEVICE.fullmatch(part) for part in rest)


def _skill(path: str) -> str | None:
    """Name the skill a planned path belongs to; None for the persona."""
    parts = path.split("/")
    return parts[1] if parts[0] == "skills" else None


def _breach(files: list[PlannedFile]) -> Reason | None:
    per_skill = Counter(skill for file in files if (skill := _skill(file.path)) is not None)
    if len(files) > FILES_MAX or any(count > FILES_PER_SKILL_MAX for count in per_skill.values()):
        return Reason.PI_TOO_MANY_FILES
    if any(file.size_bytes > FILE_BYTES_MAX for file in files):
        return Reason.PI_FILE_TOO_LARGE
    if sum(file.size_bytes for file in files) > TOTAL_BYTES_MAX:
        return Reason.PI_TOO_LARGE
    return Reason.PI_PATH_COLLISION if _collides(files) else None


def _collides(files: list[PlannedFile]) -> bool:
    """Answer whether two paths meet on a disk that ignores case, a file in a folder's place included."""
    paths = [file.path.lower() for file in files]
    taken = set(paths)
    folders = {path[:end] for path in paths for end, char in enumerate(path) if char == "/"}
    return len(taken) != len(paths) or not taken.isdisjoint(folders)


def read_contents(folder: Path, planned: tuple[PlannedFile, ...], *, git: Git) -> dict[str, bytes]:
    """Read the planned files with one `git cat-file --batch`; what differs from the plan is a fault."""
    if not planned:
        return {}
    asked = "".join(f"{file.oid}\n" for file in planned).encode("ascii")
    answer = git.tell("cat-file", "--batch", cwd=folder, given=asked)
    contents: dict[str, bytes] = {}
    start = 0
    for file in planned:
        header = f"{file.oid} blob {file.size_bytes}\n".encode("ascii")
        body = start + len(header)
        end = body + file.size_bytes
        if answer[start:body] != header or answer[end : end + 1] != b"\n":
            raise InfraFault(detail="git-content-unreadable")
        contents[file.path] = answer[body:end]
        start = end + 1
    if start != len(answer):
        raise InfraFault(detail="git-content-unreadable")
    return contents
