"""Whether a repository lets a job start one of its flows (E 7.2): a line of the skill, at a pinned commit.

The job has had the repository in its hands since, its object store included: git reads an object under any
name that stands on the disk, and does not compare. So each object on the way from the commit to the skill is
hashed here: what differs from the commit's own word is no answer.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from pathlib import Path

from runs.outcome import InfraFault
from runs.workspace.git import Git, GitTimeoutError
from runs.workspace.head import SHA
from runs.workspace.jobuser import Account, git_account
from runs.workspace.materialise import SKILL_NAME

# A job may leave a pipe for an object, and a worker that shuts down does not wait for git to give up.
_TIME_LIMIT = timedelta(seconds=5)
_BOM = b"\xef\xbb\xbf"
_KEY = b"ai-trigger:"
_ALLOWED = frozenset({b"ai-trigger: allow", b'ai-trigger: "allow"'})
_HEADER = re.compile(rb"[0-9a-f]{40,64} (commit|tree|blob) ([0-9]{1,18})\n")
_TREE_LINE = re.compile(rb"tree ([0-9a-f]{40,64})\n")
_FOLDER, _FILE = b"40000", b"100644"


class _DeniedError(Exception):
    """What git printed is not what the commit says, or there is no such skill."""


def allows(folder: Path, flow: str, *, sha: str | None, git: Git) -> bool:
    """Tell whether the flow's skill says `ai-trigger: allow` at `sha` (None = no commit). Any doubt is a no.

    One git process. Of all InfraFaults only GitTimeoutError is raised: it is a no as well, and whoever asks
    for several flows of the folder need not wait for each.
    """
    if sha is None or not SHA.fullmatch(sha) or not (flow.isascii() and SKILL_NAME.fullmatch(flow.encode())):
        return False
    try:
        return opts_in(_skill(folder, flow, sha=sha, git=git))
    except GitTimeoutError:
        raise
    except (InfraFault, _DeniedError):
        return False


def allows_as_owner(folder: Path, flow: str, sha: str | None, *, account: Account, git: Git) -> bool:
    """Ask `allows`, with git as the folder's owner where this process (`account`) is root."""
    try:
        status = folder.stat()
    except OSError:
        return False
    owner = git_account(worker=account, owner=Account(status.st_uid, status.st_gid))
    return allows(folder, flow, sha=sha, git=git.as_account(owner).within(_TIME_LIMIT))


def opts_in(skill: bytes) -> bool:
    """Tell whether the frontmatter at the head of a skill says `ai-trigger: allow` and nothing against it."""
    lines = [line.removesuffix(b"\r") for line in skill.removeprefix(_BOM).split(b"\n")]
    if lines[0] != b"---" or b"---" not in lines[1:]:
        return False
    said = {line for line in lines[1 : lines.index(b"---", 1)] if line.startswith(_KEY)}
    return bool(said) and said <= _ALLOWED


def _skill(folder: Path, flow: str, *, sha: str, git: Git) -> bytes:
    """Read the skill's `SKILL.md` at the commit, and prove it link by link."""
    names = (".pi", "skills", flow, "SKILL.md")
    places = [sha, f"{sha}^{{tree}}", *(f"{sha}:{'/'.join(names[: n + 1])}" for n in range(len(names)))]
    asked = "".join(f"{place}\n" for place in places).encode("ascii")
    # Whatever git makes of these names, it only brings bytes: which they have to be is decided below.
    commit, tree, *below = _objects(git.tell("cat-file", "--batch", cwd=folder, given=asked), len(places))
    root = _TREE_LINE.match(_proven(commit, b"commit", sha))
    if root is None:
        raise _DeniedError
    oid, content = root[1].decode("ascii"), tree
    for name, found in zip(names, below, strict=True):
        mode, oid_below = _entry(_proven(content, b"tree", oid), name.encode("ascii"), len(oid) // 2)
        if mode != (_FILE if name == names[-1] else _FOLDER):
            raise _DeniedError
        oid, content = oid_below, found
    return _proven(content, b"blob", oid)


def _objects(answer: bytes, count: int) -> list[tuple[bytes, bytes]]:
    """Split what `git cat-file --batch` printed into `count` pairs of kind and content."""
    found, start = [], 0
    for _ in range(count):
        header = _HEADER.match(answer, start)
        if header is None:
            # `… missing`, for one: there is no such file at the commit.
            raise _DeniedError
        end = header.end() + int(header[2])
        found.append((header[1], answer[header.end() : end]))
        start = end + 1
    return found


def _proven(found: tuple[bytes, bytes], kind: bytes, oid: str) -> bytes:
    """Answer the content if it is what this id names."""
    kind_found, content = found
    digest = hashlib.sha1(usedforsecurity=False) if len(oid) == 40 else hashlib.sha256()
    digest.update(b"%s %d\0" % (kind, len(content)))
    digest.update(content)
    if kind_found != kind or digest.hexdigest() != oid:
        raise _DeniedError
    return content


def _entry(tree: bytes, name: bytes, id_bytes: int) -> tuple[bytes, str]:
    """Find an entry of a raw tree: its mode and the id of what it names."""
    start = 0
    while (end := tree.find(b"\0", start)) >= 0:
        mode, _, found = tree[start:end].partition(b" ")
        start = end + 1 + id_bytes
        if found == name:
            return mode, tree[end + 1 : start].hex()
    raise _DeniedError
