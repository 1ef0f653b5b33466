"""A socket in front of the real engine's that can lose, hold, cut and fake: how a bad day looks to a client.

Requests are read whole (none of ours is chunked), answers are passed on as bytes. Nothing else is changed,
so what the engine does in the end is what a real engine does.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

UPSTREAM = "/var/run/docker.sock"


class Act(StrEnum):
    """What becomes of a request."""

    LOSE_REQUEST = "lose-request"  # never reaches the engine; silence
    LOSE_ANSWER = "lose-answer"  # the engine does it; silence
    CUT = "cut"  # the engine does it; the connection breaks
    HOLD = "hold"  # reaches the engine when `release` is called, even if nobody waits for it any more
    FAIL = "fail"  # never reaches the engine; answered with 500


@dataclass
class Rule:
    """The next `times` requests whose `METHOD /path` matches."""

    pattern: re.Pattern[str]
    act: Act
    times: int


class EngineProxy:
    """Listens on `<folder>/engine.sock`; `requests` are those it saw, as `METHOD /path` without version."""

    def __init__(self, folder: Path, *, upstream: str = UPSTREAM) -> None:
        self.path = folder / "engine.sock"
        self.environment = {"DOCKER_HOST": f"unix://{self.path}"}
        self.requests: list[str] = []
        self.connections = 0
        self._upstream = upstream
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._held = threading.Event()
        self._open = threading.Event()
        self._open.set()
        self._sockets: set[socket.socket] = set()
        self._listener: socket.socket | None = None

    def __enter__(self) -> EngineProxy:
        self.listen()
        return self

    def __exit__(self, *args: object) -> None:
        self.thaw()
        self.release()
        self.down()

    def listen(self) -> None:
        """Be there (again)."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen(64)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def down(self) -> None:
        """Be gone, as an engine that was stopped: no socket, every connection broken."""
        listener, self._listener = self._listener, None
        if listener is not None:
            self.path.unlink(missing_ok=True)
            _close(listener)
        with self._lock:
            sockets = tuple(self._sockets)
        for each in sockets:
            _close(each)

    def next(self, pattern: str, act: Act, *, times: int = 1) -> None:
        """Let the next requests that match `pattern` fare like this."""
        with self._lock:
            self._rules.append(Rule(re.compile(pattern), act, times))

    def release(self) -> None:
        """Pass on what was held."""
        self._held.set()

    def freeze(self) -> None:
        """Accept connections and requests and do nothing with them, like a stopped process."""
        self._open.clear()

    def thaw(self) -> None:
        """Go on with everything that came in meanwhile."""
        self._open.set()

    def seen(self, pattern: str) -> int:
        """How many requests so far match."""
        return sum(1 for request in tuple(self.requests) if re.search(pattern, request))

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._connected(client) as engine, suppress(OSError):
            mute = threading.Event()
            threading.Thread(target=self._answer, args=(engine, client, mute), daemon=True).start()
            while request := _read_request(client):
                if not self._handle(request, client, engine, mute):
                    return

    @contextmanager
    def _connected(self, client: socket.socket) -> Iterator[socket.socket]:
        engine = socket.socket(socket.AF_UNIX)
        with self._lock:
            self._sockets |= {client, engine}
        try:
            engine.connect(self._upstream)
            yield engine
        finally:
            with self._lock:
                self._sockets -= {client, engine}
            _close(client)
            _close(engine)

    def _handle(
        self, request: bytes, client: socket.socket, engine: socket.socket, mute: threading.Event
    ) -> bool:
        """Do with one request as its rule says; false when the connection is to be closed."""
        method, target = request.split(b" ", 2)[:2]
        line = f"{method.decode()} {re.sub(r'^/v[0-9.]+', '', target.decode())}"
        self.requests.append(line)
        act = self._act(line)
        if act in {Act.LOSE_ANSWER, Act.LOSE_REQUEST, Act.CUT}:
            mute.set()
        if act is Act.FAIL:
            client.sendall(_failure())
            return True
        if act is Act.HOLD:
            self._held.wait()
        self._open.wait()
        if act is not Act.LOSE_REQUEST:
            engine.sendall(request)
        if act is Act.CUT:
            # Not before the engine has got it: it goes on even though nobody listens.
            client.shutdown(socket.SHUT_RDWR)
        return True

    def _act(self, line: str) -> Act | None:
        with self._lock:
            for rule in self._rules:
                if rule.times > 0 and rule.pattern.search(line):
                    rule.times -= 1
                    return rule.act
        return None

    def _answer(self, engine: socket.socket, client: socket.socket, mute: threading.Event) -> None:
        with suppress(OSError):
            while data := engine.recv(65536):
                self._open.wait()
                if not mute.is_set():
                    client.sendall(data)
            if not mute.is_set():
                client.shutdown(socket.SHUT_RDWR)


def _read_request(client: socket.socket) -> bytes:
    """One whole request; empty when the client is done."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0:
        more = client.recv(missing)
        data += more
        missing -= len(more)
    return data


def _failure() -> bytes:
    body = b'{"message": "something is wrong with the engine"}'
    head = (
        f"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        each.close()
