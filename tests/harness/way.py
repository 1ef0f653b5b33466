"""A way to Valkey that can be made worse at will: nobody there, silence, slow answers, another protocol."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

_CHUNK = 65536


class Manner(StrEnum):
    """What becomes of who comes this way."""

    OPEN = "open"
    CLOSED = "closed"
    SILENT = "silent"
    SLOW = "slow"
    HTTP = "http"


class Way:
    """Listens on `<folder>/way.sock` and passes on to a server's socket as `manner` says at that moment."""

    SECONDS = 2.0

    def __init__(self, folder: Path, upstream: str) -> None:
        self._path = folder / "way.sock"
        self.url = f"unix://{self._path}"
        self.manner = Manner.OPEN
        #: How long an answer takes on the slow way.
        self.seconds = self.SECONDS
        #: How many callers there are now, and how many came.
        self.callers = 0
        self.calls = 0
        self._upstream = upstream.removeprefix("unix://")
        self._listener = socket.socket(socket.AF_UNIX)
        self._lock = threading.Lock()

    def __enter__(self) -> Way:
        self._listener.bind(str(self._path))
        self._listener.listen(512)
        threading.Thread(target=self._accept, name="way", daemon=True).start()
        return self

    def __exit__(self, *args: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._lead, args=(client,), daemon=True).start()

    def _lead(self, client: socket.socket) -> None:
        with self._lock:
            self.callers += 1
            self.calls += 1
        try:
            with client, suppress(OSError):
                self._as_it_is(client)
        finally:
            with self._lock:
                self.callers -= 1

    def _as_it_is(self, client: socket.socket) -> None:
        match self.manner:
            case Manner.CLOSED:
                return
            case Manner.SILENT:
                while client.recv(_CHUNK):
                    pass
            case Manner.HTTP:
                client.recv(_CHUNK)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            case Manner.OPEN | Manner.SLOW:
                with socket.socket(socket.AF_UNIX) as server:
                    server.connect(self._upstream)
                    back = threading.Thread(target=self._answer, args=(server, client), daemon=True)
                    back.start()
                    while asked := client.recv(_CHUNK):
                        server.sendall(asked)
                    server.shutdown(socket.SHUT_WR)
                    back.join(5)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while said := server.recv(_CHUNK):
                if self.manner is Manner.SLOW:
                    time.sleep(self.seconds)
                client.sendall(said)
            client.shutdown(socket.SHUT_RDWR)
