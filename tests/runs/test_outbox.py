"""The outbox of a job: whatever untrusted code may leave there, each with the reason of E 7.1."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import outbox as module
from runs.outbox import MAX_REQUEST_BYTES, ChainReason, Rejected, Request, read_requests
from tests.runs.accounts import as_ordinary_user

WELL = '{"flow": "tidy", "task": "Go on."}'
ACCEPTED = Request(0, "tidy", "Go on.")
HALVES = Request(0, "\ud800", "\udfff")
OVERSIZE, IRREGULAR, FLOW = ChainReason.OVERSIZE, ChainReason.NOT_REGULAR_FILE, ChainReason.BAD_FLOW_NAME
COMMAND = ChainReason.COMMAND_REFUSED

CONTENTS = {
    WELL: ACCEPTED,
    WELL.ljust(MAX_REQUEST_BYTES): ACCEPTED,
    WELL.ljust(MAX_REQUEST_BYTES + 1): OVERSIZE,
    '{"flow": "tidy", "task": "Go on.", "model": 9}': ACCEPTED,
    # What the texts may be is judged elsewhere.
    '{"flow": "A B", "task": ""}': Request(0, "A B", ""),
    r'{"flow": "\ud800", "task": "\udfff"}': HALVES,
    "": "not-json",
    "{": "not-json",
    WELL + WELL: "not-json",
    '{"flow": "tidy", "task": "\udcff"}': "not-json",
    '{"flow": "a", "flow": "b", "task": "x"}': "not-json",
    '{"flow": "a", "task": "x", "n": NaN}': "not-json",
    "[" * MAX_REQUEST_BYTES: "not-json",
    f'{{"n": {"[" * 1900}{"]" * 1900}}}': "not-json",
    "[]": "not-an-object",
    "null": "not-an-object",
    '"text"': "not-an-object",
    '{"flow": "tidy"}': "task",
    '{"flow": "tidy", "task": ["x"]}': "task",
    '{"command": null}': COMMAND,
    '{"flow": "tidy", "task": "x", "command": "y"}': COMMAND,
    '{"task": "x"}': FLOW,
    '{"flow": 7, "task": 8}': FLOW,
}
OTHERS: dict[str, tuple[Callable[[Path], object], ChainReason]] = {
    "sparse": (lambda path: path.touch() or os.truncate(path, 2**40), OVERSIZE),
    "link": (lambda path: path.symlink_to(secret(path)), IRREGULAR),
    "link to nothing": (lambda path: path.symlink_to("nowhere"), IRREGULAR),
    "link to a device": (lambda path: path.symlink_to("/dev/zero"), IRREGULAR),
    "second name of a file": (lambda path: path.hardlink_to(secret(path)), IRREGULAR),
    "pipe": (os.mkfifo, IRREGULAR),
    "socket": (lambda path: os.mknod(path, stat.S_IFSOCK | 0o600), IRREGULAR),
    "directory": (Path.mkdir, IRREGULAR),
}


def secret(path: Path) -> Path:
    target = path.parent.with_name("secret.json")
    target.write_text(WELL)
    return target


def read_one(outbox: Path) -> Request | Rejected:
    (answer,) = read_requests(outbox, most=2)
    return answer


@pytest.mark.parametrize(("content", "answer"), CONTENTS.items(), ids=map(str, range(len(CONTENTS))))
def test_what_a_request_may_say(tmp_path, content, answer):
    (tmp_path / "request-1.json").write_bytes(content.encode("utf-8", "surrogateescape"))

    if isinstance(answer, ChainReason):
        answer = Rejected(0, answer)
    elif isinstance(answer, str):
        answer = Rejected(0, ChainReason.PARSE_ERROR, answer)
    assert read_one(tmp_path) == answer


@pytest.mark.parametrize(("make", "reason"), OTHERS.values(), ids=OTHERS)
def test_what_is_no_plain_file_is_rejected_unread(tmp_path, make, reason):
    (outbox := tmp_path / "outbox").mkdir()
    make(outbox / "request-1.json")

    assert read_one(outbox) == Rejected(0, reason)


@pytest.mark.parametrize(
    ("numbers", "in_order"),
    [
        (["10", "9"], ["9", "10"]),
        (["007", "6", "08"], ["6", "007", "08"]),
        (["7", "007"], ["007", "7"]),
        (["9" * 20, "9" * 240, "2"], ["2", "9" * 20, "9" * 240]),
        (["", "\u0661", "\xb2", "-1", "+1", "1_0", " 1", "1 ", "0x1", "1e1"], []),
    ],
)
def test_requests_are_taken_by_their_number_in_ascii_digits(tmp_path, numbers, in_order):
    for number in numbers:
        (tmp_path / f"request-{number}.json").write_text(json.dumps({"flow": "tidy", "task": number}))
    for name in (
        "request-1.json~",
        "Request-1.json",
        "request-1.JSON",
        "request-1.json\n",
        "xrequest-1.json",
    ):
        (tmp_path / name).write_text(WELL)

    assert read_requests(tmp_path, most=9) == tuple(
        Request(index, "tidy", number) for index, number in enumerate(in_order)
    )


@pytest.mark.parametrize(
    ("most", "files", "told", "untold"), [(2, 50, 48, 0), (0, 3, 3, 0), (2, 2, 0, 0), (1, 3000, 64, 2935)]
)
def test_requests_beyond_the_cap_are_rejected_unread_and_told_up_to_a_bound(
    tmp_path, most, files, told, untold
):
    for number in range(files):
        place = tmp_path / f"request-{number}.json"
        place.write_text(WELL) if number < most else os.mkfifo(place)

    assert read_requests(tmp_path, most=most) == (
        *(Request(index, "tidy", "Go on.") for index in range(most)),
        *(Rejected(index, ChainReason.COUNT_CAP) for index in range(most, most + told)),
        *([Rejected(None, ChainReason.COUNT_CAP, "more", untold)] if untold else []),
    )


def test_a_folder_is_looked_at_only_so_far(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_ENTRIES", 5)
    for number in range(9):
        (tmp_path / f"request-{number}.json").write_text(WELL)

    assert len(read_requests(tmp_path, most=1)) == 5


@pytest.mark.parametrize(
    ("instead", "answer"),
    [
        (lambda outbox: None, ()),
        (Path.mkdir, ()),
        (lambda outbox: outbox.symlink_to("."), (Rejected(None, ChainReason.COLLECT_ERROR, "ENOTDIR"),)),
        (lambda outbox: outbox.write_text(WELL), (Rejected(None, ChainReason.COLLECT_ERROR, "ENOTDIR"),)),
    ],
    ids=["gone", "empty", "link", "file"],
)
def test_what_the_outbox_itself_may_be(tmp_path, instead, answer):
    (tmp_path / "request-1.json").write_text(WELL)
    instead(tmp_path / "outbox")

    assert read_requests(tmp_path / "outbox", most=2) == answer


def test_what_cannot_be_read_is_told_by_the_systems_own_word(tmp_path):
    tmp_path.chmod(0o755)
    for place in tmp_path.parents[:3]:
        place.chmod(place.stat().st_mode | 0o011)
    (tmp_path / "request-1.json").touch(mode=0o200)
    (tmp_path / "request-2.json").write_text(WELL)

    answers = as_ordinary_user(lambda: read_requests(tmp_path, most=2))

    assert answers == (Rejected(0, ChainReason.COLLECT_ERROR, "EACCES"), Request(1, "tidy", "Go on."))


def test_a_file_that_grows_while_it_is_read_is_too_large(tmp_path, monkeypatch):
    path, read = tmp_path / "request-1.json", os.read
    path.write_text(WELL)

    def growing(file: int, size: int) -> bytes:
        with path.open("a") as more:
            more.write(" " * 1000)
        return read(file, min(size, 1000))

    monkeypatch.setattr(os, "read", growing)

    assert read_one(tmp_path) == Rejected(0, OVERSIZE)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80) | st.text("{}[]\":,flowtask'command\\u0d8 1", max_size=60).map(str.encode))
def test_any_content_is_answered_and_never_raises(tmp_path_factory, content):
    outbox = tmp_path_factory.mktemp("outbox")
    (outbox / "request-1.json").write_bytes(content)

    assert read_one(outbox).index == 0
