"""One child process of which only its end counts: what it writes is taken away, counted and forgotten."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from types import TracebackType

# Between two looks at the child and at `stop`; short at first, so that a quick one is seen to end at once.
_FIRST_STEP_S = 0.001
_LONGEST_STEP_S = 0.03
_GRACE_S = 2.0
# What the kernel has not let go so long after SIGKILL is left to `subprocess`, which reaps it later.
_REAP_S = 1.0
# A rest after each draught: a flood costs us little then, and its writer waits for most of the time.
_BUFFER_BYTES = 64 * 1024
_MOST_AT_ONCE = 16 * _BUFFER_BYTES
_REST_S = 0.002


class Cut(StrEnum):
    """Why we ended a child that had not ended by itself."""

    ABORTED = "aborted"
    TIMEOUT = "timeout"


class Child:
    """A process from its start until it is gone; leaving the context ends it.

    Its stdin is empty, its stdout and stderr are pipes of ours, and no other file of ours is open in it. It
    leads a session of its own: a Ctrl-C at our terminal is not meant for it, and what it started can be ended
    with it. `status` is its end as `waitpid` tells it, None as long as that is unknown. Raises OSError or
    ValueError when it cannot be started.
    """

    def __init__(self, arguments: Sequence[str], *, program: str, environment: Mapping[str, str]) -> None:
        self.status: int | None = None
        self._streams = _Streams()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the operator's own program, and no shell
                arguments,
                executable=program,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._streams.writing[0],
                stderr=self._streams.writing[1],
                start_new_session=True,
            )
        except BaseException:
            self._streams.close()
            raise
        finally:
            self._streams.close_writing()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end()
        finally:
            self._streams.close()

    @property
    def written(self) -> tuple[int, int]:
        """The bytes it has written on stdout and stderr."""
        return self._streams.counts[0], self._streams.counts[1]

    def watch(self, seconds: float, stop: Callable[[], bool]) -> Cut | None:
        """Wait for its end at most so long; None, or why it has not ended.

        Whatever else holds its pipes by then is not waited for.
        """
        deadline = time.monotonic() + seconds
        step = _FIRST_STEP_S
        while not self._has_ended():
            if stop():
                return Cut.ABORTED
            left = deadline - time.monotonic()
            if left <= 0:
                return Cut.TIMEOUT
            self._streams.wait(min(step, left))
            step = min(step * 2, _LONGEST_STEP_S)
        # What it wrote last.
        self._streams.take()
        return None

    def end(self) -> None:
        """End it and what it started, unless it has ended: SIGTERM, and SIGKILL after the grace."""
        for number, seconds in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _REAP_S)):
            if self._has_ended():
                return
            # Not reaped yet, so its number is no other's. It may have become another account's process.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            self.watch(seconds, lambda: False)

    def _has_ended(self) -> bool:
        if self._process.returncode is None:
            # Not its own `poll`, which answers 0 where the code is lost: taken by another waiter, or not kept
            # because we were started with SIGCHLD ignored.
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self._process.pid, os.WNOHANG)
                if not pid:
                    return False
                self.status = status
            self._process.returncode = self.status or 0
        return True


class _Streams:
    """The pipes of stdout and stderr."""

    def __init__(self) -> None:
        self.counts = [0, 0]
        self.writing: list[int] = []
        self._reading: list[int | None] = []
        self._poll = select.poll()
        self._buffer = bytearray(_BUFFER_BYTES)
        try:
            for _ in self.counts:
                reading, writing = os.pipe()
                self.writing.append(writing)
                self._reading.append(reading)
                os.set_blocking(reading, False)
                self._poll.register(reading, select.POLLIN)
        except OSError:
            self.close_writing()
            self.close()
            raise

    def wait(self, seconds: float) -> None:
        """Wait until something was written and take it, at most this long."""
        if self._poll.poll(seconds * 1000) and self.take():
            time.sleep(min(_REST_S, seconds))

    def take(self) -> bool:
        """Take and count what stands in the pipes, of a flood a part; false if that was nothing."""
        taken = [self._take(index) for index in range(len(self._reading))]
        return any(taken)

    def _take(self, index: int) -> bool:
        before = self.counts[index]
        while (reading := self._reading[index]) is not None and self.counts[index] - before < _MOST_AT_ONCE:
            try:
                size = os.readv(reading, [self._buffer])
            except BlockingIOError:
                break
            self.counts[index] += size
            if not size:
                self._close(index)
        return self.counts[index] > before

    def close_writing(self) -> None:
        """Close our copies of the child's ends."""
        while self.writing:
            os.close(self.writing.pop())

    def close(self) -> None:
        """Close our ends."""
        for index in range(len(self._reading)):
            self._close(index)

    def _close(self, index: int) -> None:
        reading, self._reading[index] = self._reading[index], None
        if reading is not None:
            with suppress(KeyError):
                self._poll.unregister(reading)
            os.close(reading)
