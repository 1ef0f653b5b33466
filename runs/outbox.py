"""What a job asks for in its outbox (E 7.1): files that untrusted code wrote, read once, after its container.

Whatever stands there is possible: links, pipes, devices, a name a thousand times over, a file that grows. So
nothing is followed, nothing is waited for, and memory and time are bounded.
"""

from __future__ import annotations

import errno
import heapq
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

MAX_REQUEST_BYTES = 4096

_NAME = re.compile(r"request-([0-9]+)\.json")
# A folder with more entries is looked at so far: whoever fills it cannot hold up the host.
_MOST_ENTRIES = 100_000
# How many requests beyond the cap are told one by one.
_MOST_TOLD = 64
# Without waiting: to open a pipe is to wait for its writer, to open a terminal may make it ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ChainReason(StrEnum):
    """Why a request became no job: the closed vocabulary of E 7.1, in its order; names of log events too."""

    COUNT_CAP = "chain-count-cap"
    OVERSIZE = "chain-oversize"
    NOT_REGULAR_FILE = "chain-not-regular-file"
    PARSE_ERROR = "chain-parse-error"
    COMMAND_REFUSED = "chain-command-refused"
    BAD_FLOW_NAME = "chain-bad-flow-name"
    DEPTH_CAP = "chain-depth-cap"
    GATE_DENY = "chain-gate-deny"
    COLLECT_ERROR = "chain-collect-error"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the right shape; what its texts may be is judged elsewhere.

    `index` is its place among the requests of this outbox, from 0.
    """

    index: int
    flow: str
    task: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """A request that becomes no job; `detail` is a token of ours for the log.

    `index` is None for what is no single request: the whole outbox, or the `count` requests that are not told
    one by one.
    """

    index: int | None
    reason: ChainReason
    detail: str | None = None
    count: int = 1


def read_requests(outbox: Path, *, most: int) -> tuple[Request | Rejected, ...]:
    """Read the first `most` requests by their number; the others are rejected unread. Never raises OSError.

    Empty when there is no such folder. Only once nothing can write there any more: the container is gone.
    """
    try:
        with _opened(outbox, _FOLDER) as folder:
            names, untold = _listed(folder, most + _MOST_TOLD)
            answers = [_read(index, name, folder) for index, name in enumerate(names[:most])]
    except FileNotFoundError:
        return ()
    except OSError as fault:
        return (Rejected(None, ChainReason.COLLECT_ERROR, _token(fault)),)
    beyond = [Rejected(index, ChainReason.COUNT_CAP) for index in range(most, len(names))]
    rest = [Rejected(None, ChainReason.COUNT_CAP, "more", untold)] if untold else []
    return (*answers, *beyond, *rest)


def _listed(folder: int, most: int) -> tuple[list[str], int]:
    """Name the requests with the `most` smallest numbers, in their order, and count the others."""
    seen = 0

    def numbered() -> Iterator[tuple[int, str]]:
        nonlocal seen
        with os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                if match := _NAME.fullmatch(entry.name):
                    seen += 1
                    yield int(match[1]), entry.name

    names = [name for _, name in heapq.nsmallest(most, numbered())]
    return names, seen - len(names)


def _read(index: int, name: str, folder: int) -> Request | Rejected:
    try:
        content = _content(name, folder)
    except OSError as fault:
        return Rejected(index, ChainReason.COLLECT_ERROR, _token(fault))
    return Rejected(index, content) if isinstance(content, ChainReason) else _parsed(index, content)


def _content(name: str, folder: int) -> bytes | ChainReason:
    """Read one request, or say why not; what is no plain small file is not even opened."""
    if flaw := _flaw(os.stat(name, dir_fd=folder, follow_symlinks=False)):
        return flaw
    with _opened(name, _FILE, folder) as file:
        if flaw := _flaw(os.fstat(file)):
            return flaw
        content = b""
        while len(content) <= MAX_REQUEST_BYTES:
            chunk = os.read(file, MAX_REQUEST_BYTES + 1 - len(content))
            if not chunk:
                return content
            content += chunk
    return ChainReason.OVERSIZE


def _flaw(status: os.stat_result) -> ChainReason | None:
    if status.st_size > MAX_REQUEST_BYTES:
        return ChainReason.OVERSIZE
    # A second name of a file may be that of somebody else's, which the job itself could not read.
    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return None if plain else ChainReason.NOT_REGULAR_FILE


def _parsed(index: int, content: bytes) -> Request | Rejected:
    try:
        value = json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return Rejected(index, ChainReason.PARSE_ERROR, "not-json")
    if not isinstance(value, dict):
        return Rejected(index, ChainReason.PARSE_ERROR, "not-an-object")
    if "command" in value:
        return Rejected(index, ChainReason.COMMAND_REFUSED)
    flow, task = value.get("flow"), value.get("task")
    if not isinstance(flow, str):
        return Rejected(index, ChainReason.BAD_FLOW_NAME)
    if not isinstance(task, str):
        return Rejected(index, ChainReason.PARSE_ERROR, "task")
    return Request(index, flow, task)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key stands twice")
    return members


def _no_number(_: str) -> NoReturn:
    raise ValueError("no number of JSON")


def _token(fault: OSError) -> str:
    return errno.errorcode.get(fault.errno or 0, "fault")


@contextmanager
def _opened(place: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(place, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
