"""Real git repositories for tests, made without the machine's own git configuration."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}


@dataclass(frozen=True)
class Repo:
    """A working tree at `path`."""

    path: Path

    @classmethod
    def make(cls, path: Path, *options: str) -> Repo:
        """Initialise an empty one."""
        path.mkdir(parents=True, exist_ok=True)
        repo = cls(path)
        repo.git("init", "-q", "-b", "main", *options)
        return repo

    def git(self, *arguments: str, given: bytes = b"", check: bool = True) -> str:
        """Run plain git, unhardened, as the owner's own terminal would."""
        answer = subprocess.run(
            # The tests' own trees may have been given to another user.
            ["git", "-c", "safe.directory=*", *arguments],
            cwd=self.path,
            env=_ENVIRONMENT,
            input=given,
            capture_output=True,
            timeout=20,
        )
        if check and answer.returncode != 0:
            raise AssertionError(f"git {arguments}: {answer.stderr.decode(errors='replace')}")
        return answer.stdout.decode(errors="replace").strip()

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file, making its folders."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self, files: dict[str, str | bytes] | None = None) -> str:
        """Write the files, commit everything, answer the commit's id."""
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def config(self, key: str, value: str) -> None:
        """Set something in the repository's own configuration."""
        self.git("config", key, value)

    def tree(self, *entries: tuple[str, str, bytes]) -> str:
        """Write a raw tree object of (mode, blob or tree id, name): also names that git would refuse."""
        raw = b"".join(m.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for m, oid, name in entries)
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", given=raw)

    def blob(self, content: bytes) -> str:
        """Write a blob."""
        return self.git("hash-object", "-w", "--stdin", given=content)

    def commit_tree(self, tree: str) -> str:
        """Commit a tree and put HEAD on it."""
        sha = self.git("commit-tree", tree, "-m", "x")
        self.git("update-ref", "HEAD", sha)
        return sha

    def give_to(self, uid: int, gid: int) -> None:
        """Hand the whole tree to a user; needs root."""
        for place in [self.path, *self.path.rglob("*")]:
            os.chown(place, uid, gid, follow_symlinks=False)
