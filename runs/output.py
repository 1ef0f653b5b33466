"""The raw log of a run: a copy of the container's output beside the record, for people only.

It is followed while the job runs, by a thread of its own that takes a bounded share of the processor and
never holds up the job. What it could not keep is said in the file: a marker, then the true end of the output.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from runs.protocols import Backend, EngineNotFoundError, EngineSilentError, Output
from runs.result import TAIL_BYTES

CUT = b"\n[pi-dispatch: output is missing here; what follows is its end]\n"

#: How much of the engine's log is followed. A bit less than its first file (`max-size` of the isolation): the
#: engine loses lines for a follower only when it turns to the next one, so what is followed has no gap.
FOLLOWED_BYTES = 9_500_000

#: What the engine's log adds to each line of output.
_BYTES_PER_LINE = 80

#: At most a tenth of one core: as much rest for each second of work, taken in pieces of some milliseconds.
_REST_PER_WORK = 9.0
_WORK_SECONDS = 0.005


class RawLog:
    """Copies one container's output to a file (made with mode 0600, else appended to).

    Nothing that goes wrong here is an error: a full disk or a silent engine only makes `truncated` true.
    """

    def __init__(
        self, backend: Backend, *, container: str, path: Path, followed_bytes: int = FOLLOWED_BYTES
    ) -> None:
        self._backend = backend
        self._container = container
        self._path = path
        self._room = followed_bytes
        self._lock = threading.Lock()
        self._output: Output | None = None
        self._following_over = threading.Event()
        self._finishing = threading.Event()
        self._tail = b""
        self._last = b""
        self._truncated = True
        self._thread = threading.Thread(target=self._work, name=f"log-{container[:12]}", daemon=True)

    @property
    def truncated(self) -> bool:
        """Whether the file lacks something; settled once `finish` has returned."""
        return self._truncated

    def start(self) -> None:
        """Begin to follow; without a thread to be had there is no log."""
        with suppress(RuntimeError):
            self._thread.start()

    def finish(self, tail: bytes, *, patience: float = 2.0) -> None:
        """Let it come to the end within `patience` seconds, else cut it; `tail` is the output's true end.

        Returns at most half a second later, also when the disk hangs.
        """
        if self._thread.ident is None:
            return
        self._following_over.wait(patience)
        with self._lock:
            self._tail = tail
            self._finishing.set()
            output = self._output
        if output is not None:
            output.close()
        self._thread.join(0.5)

    def _work(self) -> None:
        # Nobody may wait for a log whose disk is full or whose folder is gone.
        with suppress(OSError):
            # A fresh host's first job comes before its first record.
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            try:
                self._copy(descriptor)
            finally:
                os.close(descriptor)
        self._following_over.set()

    def _copy(self, descriptor: int) -> None:
        reached_end = False
        with suppress(EngineSilentError, EngineNotFoundError):
            reached_end = self._follow(descriptor)
        self._following_over.set()
        self._finishing.wait()
        if not (reached_end and self._last.endswith(self._tail)):
            _write(descriptor, CUT + self._tail)
        else:
            self._truncated = False

    def _follow(self, descriptor: int) -> bool:
        """Copy until the stream ends (true), the room is used up or `finish` was called (false)."""
        output = self._backend.follow(self._container)
        with self._lock:
            self._output = output
        work = time.thread_time()
        try:
            while not self._finishing.is_set():
                data = output.read()
                if not data:
                    return not self._finishing.is_set()
                self._room -= len(data) + _BYTES_PER_LINE * data.count(b"\n")
                if self._room < 0:
                    return False
                _write(descriptor, data)
                self._last = (self._last + data)[-TAIL_BYTES:]
                work = self._rest(work)
        finally:
            output.close()
        return False

    def _rest(self, since: float) -> float:
        worked = time.thread_time() - since
        if worked < _WORK_SECONDS:
            return since
        self._finishing.wait(worked * _REST_PER_WORK)
        return time.thread_time()


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
