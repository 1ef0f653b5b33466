"""Folders for jobs to work in: git working trees with orders for the fake runner."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Who jobs run as where the tests run as root; else they run as whoever runs the tests.
JOB_UID = 1001


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What one start of a container wrote into its folder, in seconds since the machine's start.

    `end` is None when it was killed.
    """

    folder: str
    container: str
    begin: float
    end: float | None


class Ground:
    """Makes folders below a place that other users can enter."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o755)
        self._template = home / "template"

    def folder(self, name: str, orders: Mapping[str, str] | None = None) -> Path:
        """Make a working tree with one commit whose jobs keep a journal and follow `orders`."""
        if not self._template.exists():
            _make_repository(self._template)
        path = self.home / name
        shutil.copytree(self._template, path)
        (path / ".fake").mkdir()
        self.order(name, {"journal": "", **(orders or {})})
        _give_away(path)
        return path

    def place(self, name: str, orders: Mapping[str, str] | None = None) -> Path:
        """Make a folder that is no working tree, for workers that prepare nothing; else as `folder`."""
        path = self.home / name
        (path / ".fake").mkdir(parents=True)
        self.order(name, {"journal": "", **(orders or {})})
        return path

    def order(self, name: str, orders: Mapping[str, str]) -> None:
        """Give orders to the jobs to come in this folder (see image/fake/README.md)."""
        for order, value in orders.items():
            path = self.home / name / ".fake" / order
            path.write_text(value)
            path.chmod(0o666)

    def spans(self) -> list[Span]:
        """Every start that any folder's journal knows of."""
        return [
            span
            for journal in sorted(self.home.glob("*/.fake/journal"))
            for span in read_journal(journal.parents[1].name, journal.read_text())
        ]


def read_journal(folder: str, text: str) -> list[Span]:
    """Pair the lines `begin NAME TIME` and `end NAME TIME` of one folder.

    One that was ended before it had begun has only an end, and is left out: it did nothing.
    """
    spans: list[Span] = []
    for line in text.splitlines():
        word, container, at = line.split()
        if word == "begin":
            spans.append(Span(folder=folder, container=container, begin=float(at), end=None))
            continue
        index = max((i for i, span in enumerate(spans) if span.container == container), default=None)
        if index is not None:
            spans[index] = Span(folder=folder, container=container, begin=spans[index].begin, end=float(at))
    return spans


def _make_repository(path: Path) -> None:
    path.mkdir()
    (path / "README.md").write_text("hello\n")
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "a@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    for words in ("init -q -b main", "add -A", "commit -q -m first"):
        subprocess.run(
            ["git", *words.split()], cwd=path, env=environment, check=True, capture_output=True, timeout=20
        )


def _give_away(path: Path) -> None:
    for place in (path, *path.rglob("*")):
        if os.geteuid() == 0:
            os.chown(place, JOB_UID, JOB_UID, follow_symlinks=False)
    (path / ".fake").chmod(0o777)
