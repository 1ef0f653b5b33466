"""The demo's sample repository, and what the job changed in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from dispatch.demo.interrupts import interrupts
from pidispatch_site.errors import OperationalError
from runs.workspace.jobuser import IMAGE_USER

TASK = 'Add a line to README.md: "pi-dispatch was here."'
_README = """# Sample

A repository of its own for the demo. The job edits it in place, as jobs on local folders do.
"""
_WHO = ("-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "safe.directory=*")


def make_repository(path: Path, environment: Mapping[str, str], *, flows: Iterable[str] = ()) -> None:
    """Make a small repository with one commit, owned by somebody a job can run as; `flows` are its skills."""
    path.mkdir()
    (path / "README.md").write_text(_README)
    for flow in flows:
        skill = path / ".pi" / "skills" / flow / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(f"---\nname: {flow}\n---\nA skill of the demo.\n")
    _git(path, environment, "init", "--quiet", "--initial-branch=main")
    _git(path, environment, "add", ".")
    _git(path, environment, "commit", "--quiet", "--message", "A sample")
    if os.geteuid() == 0:
        # No job runs as root, so a root worker needs a folder of an ordinary user.
        path.parent.chmod(0o711)
        for place in (path, *path.rglob("*")):
            os.chown(place, IMAGE_USER.uid, IMAGE_USER.gid, follow_symlinks=False)


def read_diff(path: Path, environment: Mapping[str, str]) -> str:
    """Show what the job changed, new files included."""
    _git(path, environment, "add", "--intent-to-add", ".")
    return _git(path, environment, "--no-pager", "diff", "--no-color")


def _git(path: Path, environment: Mapping[str, str], *words: str) -> str:
    # Short, and else an interrupt could leave one behind that writes into a folder which is being removed.
    with interrupts.held():
        done = subprocess.run(  # noqa: S603 - fixed words on our own repository
            ["git", *_WHO, *words],  # noqa: S607 - the git of the PATH, as for jobs
            cwd=path,
            env={**environment, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise OperationalError(f"git {words[0]} failed in the sample repository: {done.stderr.strip()}")
    return done.stdout
