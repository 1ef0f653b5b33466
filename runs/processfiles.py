"""What the process backend keeps on disk of each process: enough for a later worker to find and end it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_COMING = ".coming-"
_GOING = ".going-"
_ABANDONED_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One process as its folder tells; `pid` is None until its shell has started."""

    id: str
    name: str
    labels: Mapping[str, str]
    folder: Path
    pid: int | None

    @property
    def output(self) -> Path:
        """What it printed."""
        return self.folder / "output"


class ProcessFiles:
    """A folder (0700) with one folder for each process, called like the container that it stands for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()

    def add(self, name: str, labels: Mapping[str, str]) -> Stored:
        """Make a folder; FileExistsError when the name is taken."""
        identity = secrets.token_hex(32)
        coming = self._folder / (_COMING + identity)
        coming.mkdir(mode=0o700)
        try:
            (coming / "output").touch(mode=0o600)
            written = json.dumps({"id": identity, "labels": dict(labels)})
            (coming / "process.json").write_text(written, encoding="utf-8")
            # Onto a folder that holds something a rename fails: that is the mutual exclusion of a name.
            coming.rename(self._folder / name)
        except OSError as error:
            shutil.rmtree(coming, ignore_errors=True)
            if (self._folder / name).exists():
                raise FileExistsError(name) from error
            raise
        return Stored(id=identity, name=name, labels=dict(labels), folder=self._folder / name, pid=None)

    def all(self) -> Iterator[Stored]:
        """Read every folder; one that vanishes meanwhile is left out."""
        for folder in sorted(self._folder.iterdir()):
            if not folder.name.startswith((_COMING, _GOING)):
                with suppress(OSError, ValueError, KeyError, TypeError):
                    yield _read(folder)

    def is_alive(self, stored: Stored) -> bool:
        """Whether the process of this folder still runs; a number that is another's by now is not enough."""
        return stored.pid is not None and stored.id in _arguments(stored.pid)

    def remove(self, stored: Stored) -> None:
        """Take the folder away, and end a process that had just been about to start in it."""
        going = self._folder / (_GOING + stored.id)
        with suppress(FileNotFoundError):
            stored.folder.rename(going)
            pid = _pid(going)
            if pid is not None and stored.id in _arguments(pid):
                signal_group(pid, signal.SIGKILL)
        shutil.rmtree(going, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what a killed process left half made or half removed."""
        for folder in self._folder.glob(".*-*"):
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal a process and what it started; nothing happens when they are gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _read(folder: Path) -> Stored:
    written = json.loads((folder / "process.json").read_text(encoding="utf-8"))
    return Stored(
        id=str(written["id"]),
        name=folder.name,
        labels={str(label): str(value) for label, value in written["labels"].items()},
        folder=folder,
        pid=_pid(folder),
    )


def _pid(folder: Path) -> int | None:
    with suppress(FileNotFoundError):
        text = (folder / "pid").read_text(encoding="ascii").strip()
        return int(text) if text.isdecimal() else None
    return None


def _arguments(pid: int) -> str:
    """Read a process's command line; empty when it is gone or over."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/cmdline").exists():
            return ""
    # No such files on this system (macOS); POSIX has a command for it.
    listed = subprocess.run(  # noqa: S603 - a number that we wrote
        ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return listed.stdout
