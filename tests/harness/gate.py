"""A point of a worker's steps that the test keeps closed: who comes there waits, and is counted."""

from __future__ import annotations

from pathlib import Path

from tests.harness.worker_process import until


class Gate:
    """One file for as many workers as name it in `Knobs.gates`; closed until `open` is called."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks = path.with_name(f"{path.name}.reached")

    def __str__(self) -> str:
        """Give what `Knobs.gates` wants."""
        return str(self._path)

    @property
    def arrived(self) -> int:
        """How many have come there since it was closed."""
        return self._marks.stat().st_size if self._marks.exists() else 0

    def until_arrived(self, count: int, *, seconds: float = 20) -> None:
        """Wait until so many stand before it."""
        until(lambda: self.arrived >= count, seconds=seconds, what=f"{count} stand before the gate")

    def open(self) -> None:
        """Let everybody pass, those to come included."""
        self._path.touch()

    def close(self) -> None:
        """Close it (again), and begin to count anew."""
        self._path.unlink(missing_ok=True)
        self._marks.unlink(missing_ok=True)
