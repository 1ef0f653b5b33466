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


def padded(size: int) -> str:
    return WELL + " " * (size - len(WELL))


def link_out(path: Path) -> None:
    target = path.parent.parent / "secret.json"
    target.write_text(WELL)
    path.symlink_to(target)


def second_name(path: Path) -> None:
    target = path.parent.parent / "secret.json"
    target.write_text(WELL)
    path.hardlink_to(target)


def unbound_socket(path: Path) -> None:
    os.mknod(path, stat.S_IFSOCK | 0o600)


def written(content: str | bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        pytest.param(written(WELL), ACCEPTED, id="well"),
        pytest.param(written(padded(MAX_REQUEST_BYTES)), ACCEPTED, id="4096 bytes"),
        pytest.param(written('{"flow": "tidy", "task": "Go on.", "model": 9}'), ACCEPTED, id="other keys"),
        pytest.param(
            written('{"flow": "A B", "task": ""}'), Request(0, "A B", ""), id="texts are not judged here"
        ),
        pytest.param(
            written(r'{"flow": "\ud800", "task": "\udfff"}'),
            Request(0, "\ud800", "\udfff"),
            id="half characters",
        ),
        pytest.param(written(padded(MAX_REQUEST_BYTES + 1)), ChainReason.OVERSIZE, id="4097 bytes"),
        pytest.param(
            lambda path: path.touch() or os.truncate(path, 2**40), ChainReason.OVERSIZE, id="sparse"
        ),
        pytest.param(link_out, ChainReason.NOT_REGULAR_FILE, id="link"),
        pytest.param(lambda path: path.symlink_to("nowhere"), ChainReason.NOT_REGULAR_FILE, id="dangling"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), ChainReason.NOT_REGULAR_FILE, id="device"),
        pytest.param(second_name, ChainReason.NOT_REGULAR_FILE, id="second name of a file"),
        pytest.param(os.mkfifo, ChainReason.NOT_REGULAR_FILE, id="pipe"),
        pytest.param(unbound_socket, ChainReason.NOT_REGULAR_FILE, id="socket"),
        pytest.param(Path.mkdir, ChainReason.NOT_REGULAR_FILE, id="directory"),
        pytest.param(written(""), "not-json", id="empty"),
        pytest.param(written("{"), "not-json", id="half"),
        pytest.param(written(WELL + WELL), "not-json", id="two values"),
        pytest.param(written(b'{"flow": "tidy", "task": "\xff"}'), "not-json", id="no UTF-8"),
        pytest.param(written('{"flow": "a", "flow": "b", "task": "x"}'), "not-json", id="a key twice"),
        pytest.param(written('{"flow": "a", "task": "x", "n": NaN}'), "not-json", id="NaN"),
        pytest.param(written("[" * MAX_REQUEST_BYTES), "not-json", id="nesting"),
        pytest.param(written(f'{{"n": {"[" * 1900}{"]" * 1900}}}'), "not-json", id="whole nesting"),
        pytest.param(written("[]"), "not-an-object", id="list"),
        pytest.param(written("null"), "not-an-object", id="null"),
        pytest.param(written('"text"'), "not-an-object", id="text"),
        pytest.param(written('{"flow": "tidy"}'), "task", id="no task"),
        pytest.param(written('{"flow": "tidy", "task": ["x"]}'), "task", id="task of another type"),
        pytest.param(written('{"command": null}'), ChainReason.COMMAND_REFUSED, id="command"),
        pytest.param(
            written('{"flow": "tidy", "task": "x", "command": "y"}'), ChainReason.COMMAND_REFUSED, id="both"
        ),
        pytest.param(written('{"task": "x"}'), ChainReason.BAD_FLOW_NAME, id="no flow"),
        pytest.param(written('{"flow": 7, "task": 8}'), ChainReason.BAD_FLOW_NAME, id="flow of another type"),
    ],
)
def test_what_one_request_may_be(tmp_path, make, answer):
    (outbox := tmp_path / "outbox").mkdir()
    make(outbox / "request-1.json")

    if not isinstance(answer, Request):
        is_reason = isinstance(answer, ChainReason)
        answer = Rejected(0, answer) if is_reason else Rejected(0, ChainReason.PARSE_ERROR, answer)
    assert read_requests(outbox, most=2) == (answer,)


@pytest.mark.parametrize(
    ("names", "read"),
    [
        pytest.param(["request-10.json", "request-9.json"], ["9", "10"], id="by number"),
        pytest.param(
            ["request-007.json", "request-6.json", "request-08.json"], ["6", "007", "08"], id="zeros"
        ),
        pytest.param(["request-7.json", "request-007.json"], ["007", "7"], id="one number twice"),
        pytest.param(
            ["request-99999999999999999999.json", f"request-{'9' * 240}.json", "request-2.json"],
            ["2", "99999999999999999999", "9" * 240],
            id="huge",
        ),
        pytest.param(
            [
                *(
                    "request-\u0661.json",
                    "request-1.json~",
                    "Request-1.json",
                    "request--1.json",
                    "request-.json",
                ),
                *(
                    "request-1.JSON",
                    "request-1.json\n",
                    "xrequest-1.json",
                    "request-1 .json",
                    ".request-1.json",
                ),
                *("request-+1.json", "request-1_0.json", "request-\xb2.json"),
            ],
            [],
            id="other names",
        ),
    ],
)
def test_which_files_are_requests_and_in_what_order(tmp_path, names, read):
    for name in names:
        (tmp_path / name).write_text(json.dumps({"flow": "tidy", "task": name}))

    answers = read_requests(tmp_path, most=9)

    assert answers == tuple(
        Request(index, "tidy", f"request-{number}.json") for index, number in enumerate(read)
    )


@pytest.mark.parametrize(
    ("most", "files", "told", "untold"),
    [
        pytest.param(2, 50, 48, 0, id="fifty"),
        pytest.param(0, 3, 3, 0, id="none allowed"),
        pytest.param(2, 2, 0, 0, id="as many as allowed"),
        pytest.param(1, 3000, 64, 2935, id="thousands"),
    ],
)
def test_requests_beyond_the_cap_are_rejected_unread_and_told_up_to_a_bound(
    tmp_path, most, files, told, untold
):
    for number in range(files):
        place = tmp_path / f"request-{number}.json"
        place.write_text(WELL) if number < most else os.mkfifo(place)

    answers = read_requests(tmp_path, most=most)

    assert answers == (
        *(Request(index, "tidy", "Go on.") for index in range(most)),
        *(Rejected(index, ChainReason.COUNT_CAP) for index in range(most, most + told)),
        *([Rejected(None, ChainReason.COUNT_CAP, "more", untold)] if untold else []),
    )


def test_a_folder_is_looked_at_only_so_far(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_ENTRIES", 5)
    for number in range(9):
        (tmp_path / f"request-{number}.json").write_text(WELL)

    assert len(read_requests(tmp_path, most=1)) == 5


def away(outbox: Path) -> None:
    outbox.rmdir()


def link_in_its_place(outbox: Path) -> None:
    outbox.rename(outbox.with_name("elsewhere"))
    outbox.symlink_to("elsewhere")


def file_in_its_place(outbox: Path) -> None:
    outbox.rmdir()
    outbox.write_text(WELL)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        pytest.param(away, (), id="gone"),
        pytest.param(lambda _: None, (), id="empty"),
        pytest.param(link_in_its_place, (Rejected(None, ChainReason.COLLECT_ERROR, "ENOTDIR"),), id="link"),
        pytest.param(file_in_its_place, (Rejected(None, ChainReason.COLLECT_ERROR, "ENOTDIR"),), id="file"),
    ],
)
def test_what_the_outbox_itself_may_be(tmp_path, change, answer):
    (outbox := tmp_path / "outbox").mkdir()
    change(outbox)

    assert read_requests(outbox, most=2) == answer


def test_what_cannot_be_read_is_told_by_the_systems_own_word(tmp_path):
    tmp_path.chmod(0o755)
    for place in tmp_path.parents[:3]:
        place.chmod(place.stat().st_mode | 0o011)
    (tmp_path / "request-1.json").touch(mode=0o200)
    (tmp_path / "request-2.json").write_text(WELL)
    (tmp_path / "request-2.json").chmod(0o644)

    answers = as_ordinary_user(lambda: read_requests(tmp_path, most=2))

    assert answers == (Rejected(0, ChainReason.COLLECT_ERROR, "EACCES"), Request(1, "tidy", "Go on."))


def test_a_file_that_grows_while_it_is_read_is_too_large(tmp_path, monkeypatch):
    path = tmp_path / "request-1.json"
    path.write_text(WELL)
    read = os.read

    def growing(file: int, size: int) -> bytes:
        with path.open("a") as more:
            more.write(" " * 1000)
        return read(file, min(size, 1000))

    monkeypatch.setattr(os, "read", growing)

    assert read_requests(tmp_path, most=1) == (Rejected(0, ChainReason.OVERSIZE),)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=80),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=6),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["flow", "task", "command", "x"]), inner, max_size=4)
            ),
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_any_content_is_answered_and_never_raises(tmp_path_factory, content):
    outbox = tmp_path_factory.mktemp("outbox")
    (outbox / "request-1.json").write_bytes(content)

    (answer,) = read_requests(outbox, most=1)

    assert answer.index == 0
