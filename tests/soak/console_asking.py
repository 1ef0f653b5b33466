"""Somebody with a session who asks the web process by HTTP, and how long each answer takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlencode, urlsplit

from tests.harness.web_process import WebProcess

_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What came, and after how many seconds all of it was there."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A file as it came: seconds to its first byte and to its last, bytes, lines, and its last line."""

    first: float
    seconds: float
    size: int
    lines: int
    last: str


class Asking:
    """Asks as the person of a ready group."""

    def __init__(self, web: WebProcess, role: str = "admin") -> None:
        self._where = urlsplit(web.url)
        self._cookies = dict(web.cookies(role))
        self._token = ""

    def get(self, address: str) -> Answer:
        """Ask for a page; what leads elsewhere is not followed."""
        return self._answer("GET", address)

    def post(self, path: str, fields: Mapping[str, str | Sequence[str]]) -> Answer:
        """Send a form, as one that a page had; a field may have several values."""
        if not self._token:
            told = self._answer("GET", "/admin/password_change/").headers["Set-Cookie"].partition(";")[0]
            name, _, self._token = told.partition("=")
            self._cookies[name] = self._token
        sent = {**fields, "csrfmiddlewaretoken": self._token}
        return self._answer("POST", path, urlencode(sent, doseq=True))

    def stream(self, address: str) -> Streamed:
        """Ask for a file, and keep nothing of it."""
        began, first, size, lines, last = time.perf_counter(), 0.0, 0, 0, b""
        with self._asked("GET", address) as answer:
            assert answer.status == 200, (address, answer.status)
            while piece := answer.read1(_PIECE):
                first = first or time.perf_counter() - began
                size, lines, last = size + len(piece), lines + piece.count(b"\n"), (last + piece)[-_PIECE:]
        took = time.perf_counter() - began
        (line,) = last.rstrip().splitlines()[-1:]
        return Streamed(first=first, seconds=took, size=size, lines=lines, last=line.decode())

    def _answer(self, method: str, address: str, body: str | None = None) -> Answer:
        began = time.perf_counter()
        with self._asked(method, address, body) as answer:
            return Answer(answer.status, dict(answer.headers), answer.read(), time.perf_counter() - began)

    @contextmanager
    def _asked(self, method: str, address: str, body: str | None = None) -> Iterator[HTTPResponse]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        if body is not None:
            headers |= {"Content-Type": "application/x-www-form-urlencoded"}
        connection = HTTPConnection(str(self._where.hostname), self._where.port, timeout=120)
        try:
            connection.request(method, address, body=body, headers=headers)
            yield connection.getresponse()
        finally:
            connection.close()
