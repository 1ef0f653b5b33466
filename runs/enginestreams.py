"""What the engine sends for as long as it lasts: a container's output, and news of containers that ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress

import requests
import urllib3

from runs.engine_frames import Demultiplexer
from runs.protocols import EngineSilentError

_READ_BYTES = 65536

#: A reader wakes at once; one that does not leaves its connection to the garbage collector.
_WAKE_SECONDS = 1.0

_BROKEN = (urllib3.exceptions.HTTPError, OSError, ValueError)


class Stream:
    """The body of one answer, read as it comes; `close` from another thread ends a blocked `read`."""

    def __init__(self, response: requests.Response) -> None:
        self._response = response
        self._reading = threading.Lock()
        self._closed = threading.Event()

    def read(self) -> bytes:
        """Read the next bytes, never waiting for more than there are; empty at the end and once closed."""
        with self._reading:
            if self._closed.is_set():
                return b""
            try:
                # `read1` gives one HTTP chunk; `read` would block until it has all that it may return.
                data = bytes(self._response.raw.read1(_READ_BYTES))
            except _BROKEN as error:
                # A socket that was shut down by `close` looks broken too.
                if self._closed.is_set():
                    return b""
                raise EngineSilentError("engine-stream-broken") from error
        return b"" if self._closed.is_set() else data

    def close(self) -> None:
        """End it: first the socket, so that a reader wakes, then what the reader has let go of."""
        if self._closed.is_set():
            return
        self._closed.set()
        with suppress(*_BROKEN, RuntimeError):
            self._response.raw.shutdown()
        if self._reading.acquire(timeout=_WAKE_SECONDS):
            try:
                self._response.close()
            finally:
                self._reading.release()


class Log:
    """A container's output (`protocols.Output`), out of its frames."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._frames = Demultiplexer()

    def read(self) -> bytes:
        """Read the next payload; a part of a header only is not the end."""
        while data := self._stream.read():
            if payload := self._frames.feed(data):
                return payload
        return b""

    def close(self) -> None:
        """End it."""
        self._stream.close()


class Endings:
    """Ids of containers that ended (`protocols.Changes`), out of the engine's event stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        """Read until the stream ends or breaks: the engine's own death looks like a clean end too."""
        unfinished = b""
        with suppress(EngineSilentError):
            while data := self._stream.read():
                *lines, unfinished = (unfinished + data).split(b"\n")
                yield from filter(None, map(_container, lines))

    def close(self) -> None:
        """End it."""
        self._stream.close()


def _container(line: bytes) -> str | None:
    """Tell the container that one event is about; None for what we cannot read."""
    try:
        event = json.loads(line)
        return str(event["Actor"]["ID"])
    except (ValueError, KeyError, TypeError):
        return None
