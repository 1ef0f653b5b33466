"""The program of an earlier commit in a folder of its own, for a fleet that is being upgraded."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.harness.worker_process import ROOT


class UnknownCommitError(Exception):
    """This copy of the repository does not have that commit."""


def unpack(commit: str, folder: Path) -> Path:
    """Take the files of the commit out of the repository; UnknownCommitError without the history."""
    made = _git("archive", "--format=tar", commit)
    if made.returncode != 0 and _git("fetch", "--quiet", "--unshallow").returncode == 0:
        # A clone of the newest commits alone.
        made = _git("archive", "--format=tar", commit)
    if made.returncode != 0:
        raise UnknownCommitError(made.stderr.decode(errors="replace").strip())
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=False, capture_output=True, timeout=60)


def knobs_of(root: Path, **queue: float) -> str:
    """Write the knobs of a worker without containers as that version knows them, some timings changed."""
    words = "from tests.harness.knobs import Knobs; print(Knobs(without_containers=True).to_json())"
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=root, check=True, capture_output=True, text=True, timeout=60
    )
    knobs = json.loads(done.stdout)
    knobs["timings"]["queue"] |= queue
    return json.dumps(knobs)
