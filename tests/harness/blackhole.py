"""A way to Valkey on which packets can be dropped without a word: nobody is told, nothing is closed.

As with a real network, the server's side of a connection lives on: a pop that it has begun hands a job to
nobody. What was sent just before is delivered late, even if its sender has given up; who calls meanwhile is
never answered.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

_CHUNK = 65536


class BlackHole:
    """Listens on `<folder>/hole.sock` and passes on to a server's socket; to be closed after its users."""

    def __init__(self, folder: Path, upstream: str) -> None:
        self._path = folder / "hole.sock"
        self.url = f"unix://{self._path}"
        self._upstream = upstream.removeprefix("unix://")
        self._passing = threading.Event()
        self._passing.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> BlackHole:
        self._listener.bind(str(self._path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, name="black hole", daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        self._passing.set()
        for each in (self._listener, *self._sockets):
            _close(each)

    def swallow(self) -> None:
        """Let nothing through any more, in both directions."""
        self._passing.clear()

    def pass_on(self) -> None:
        """Let everything through again."""
        self._passing.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                if self._passing.is_set():
                    self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        self._sockets.append(server)
        try:
            server.connect(self._upstream)
        except OSError:
            _close(client)
            return
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._passing.wait()
                target.sendall(data)
        # The end of a connection is a packet too.
        self._passing.wait()
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
