"""The frames in which the engine sends a container's output (Docker's API as of 1.41)."""

from __future__ import annotations

from collections.abc import Iterable

_FRAME_HEADER = 8


class Demultiplexer:
    """Takes the frames apart in which the engine sends stdout and stderr of a container without a terminal.

    A frame is one byte of stream, three of nothing, four of length (big endian) and the payload, at most
    16 KiB of it. Keeps no payload, only an unfinished header.
    """

    def __init__(self) -> None:
        self._header = b""
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """Return the payload in `data`, both streams in the order in which they came."""
        return b"".join(self._payloads(memoryview(data)))

    def _payloads(self, data: memoryview) -> Iterable[memoryview]:
        while data:
            if self._left:
                yield data[: self._left]
                taken = min(self._left, len(data))
                self._left -= taken
            else:
                taken = min(_FRAME_HEADER - len(self._header), len(data))
                self._header += bytes(data[:taken])
                if len(self._header) == _FRAME_HEADER:
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header = b""
            data = data[taken:]
