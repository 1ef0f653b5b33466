"""What the process backend gives while it lasts: a process's output, and news of those that ended."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

_READ_BYTES = 65536


class FileOutput:
    """The output of one process (`protocols.Output`), read from the file that it writes."""

    def __init__(self, file: BinaryIO, *, has_ended: Callable[[], bool], poll_seconds: float) -> None:
        self._file = file
        self._has_ended = has_ended
        self._poll_seconds = poll_seconds
        self._closed = threading.Event()

    def read(self) -> bytes:
        """Read the next bytes; empty at the end and once closed."""
        while not self._closed.is_set():
            # Asked before reading: what it wrote until it ended is then in the file.
            over = self._has_ended()
            if data := self._file.read(_READ_BYTES):
                return data
            if over:
                break
            self._closed.wait(self._poll_seconds)
        self._file.close()
        return b""

    def close(self) -> None:
        """End it; the reader closes the file."""
        self._closed.set()


class Endings:
    """Ids of processes that ended (`protocols.Changes`)."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)
        self._ids: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.closed = False

    def tell(self, identity: str, labels: Mapping[str, str]) -> None:
        """Pass on that one ended, if it is one of those listened for."""
        if self._labels.items() <= labels.items():
            self._ids.put(identity)

    def __iter__(self) -> Iterator[str]:
        """Wait for one after the other until it is closed."""
        while not self.closed and (identity := self._ids.get()) is not None:
            yield identity

    def close(self) -> None:
        """End it."""
        self.closed = True
        self._ids.put(None)
