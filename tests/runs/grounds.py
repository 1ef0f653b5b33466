"""Where the tests of the workspace put their repositories; a test module asks for it by `pytest_plugins`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.repositories import Repo


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder that other users can enter too (pytest's own are closed), gone after the test."""
    path = Path(tempfile.mkdtemp(prefix="pd-ground-")).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        subprocess.run(["chmod", "-R", "u+rwX", str(path)], check=False, capture_output=True)
        shutil.rmtree(path)


@pytest.fixture
def repo(ground: Path) -> Repo:
    """A repository with one commit and nothing for the agent in it."""
    made = Repo.make(ground / "repo")
    made.commit({"README.md": "hello\n"})
    return made
