from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch_site import envfile


def read(text):
    return envfile.lines(text.encode(), source="f")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("A=1\nB=2", {"A": "1", "B": "2"}, id="lines"),
        pytest.param("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}, id="windows lines"),
        pytest.param("\ufeffA=1", {"A": "1"}, id="byte order mark"),
        pytest.param("# A=1\n\n  # B=2\n \t\n", {}, id="nothing but comments"),
        pytest.param("  A=1", {"A": "1"}, id="indented"),
        pytest.param("A= x # y ", {"A": " x # y "}, id="the value is literal"),
        pytest.param("A=$HOME/~/${B}`id`", {"A": "$HOME/~/${B}`id`"}, id="nothing is expanded"),
        pytest.param("A=b=c", {"A": "b=c"}, id="only the first = counts"),
        pytest.param("A=", {"A": ""}, id="empty"),
        pytest.param("A=1\nA=2", {"A": "2"}, id="the later one wins"),
    ],
)
def test_lines_are_read_literally(text, values):
    assert read(text) == (values, ())


@pytest.mark.parametrize("line", ["A", "A =1", "export A=1", "1A=2", "=x", "Ä=1", "A\0=1", "A=\0"])
def test_a_line_that_is_none_is_left_out_and_named_by_its_number_only(line):
    values, problems = read(f"X=1\n{line}\nY=2")

    assert values == {"X": "1", "Y": "2"}
    assert problems == ("f, line 2: expected NAME=value, no spaces around =, no export",)


def test_bytes_that_are_no_text_are_a_bad_line():
    values, problems = envfile.lines(b"A=\xff\nB=1", source="f")

    assert (values, len(problems)) == ({"B": "1"}, 1)


@pytest.mark.parametrize("value", ['"hunter2"', "'hunter2'"])
def test_a_quoted_value_is_kept_as_it_is_and_reported_without_being_shown(value):
    values, problems = read(f"A={value}")

    assert values == {"A": value}
    assert len(problems) == 1
    assert "quotes" in problems[0]
    assert "hunter2" not in problems[0]


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True),
        st.text(st.characters(exclude_categories=["C", "Z"])),
    )
)
def test_what_is_written_is_read(values):
    text = "".join(f"{name}={value}\n" for name, value in values.items())

    assert read(text)[0] == values


def test_the_process_wins_over_the_file_even_with_an_empty_value(tmp_path):
    (tmp_path / ".env").write_text("A=file\nB=file\nC=file\n")

    environment = envfile.merged({"A": "process", "B": ""}, folder=tmp_path)

    assert dict(environment) == {"A": "process", "B": "", "C": "file"}
    assert (environment.problems, environment.unread) == ((), None)


def test_no_file_that_nobody_named_is_no_fault(tmp_path):
    environment = envfile.merged({"A": "1"}, folder=tmp_path)

    assert (dict(environment), environment.problems, environment.unread) == ({"A": "1"}, (), None)


def test_a_current_folder_that_is_gone_has_no_file(tmp_path):
    environment = envfile.merged({"A": "1"}, folder=None)

    assert (dict(environment), environment.problems, environment.unread) == ({"A": "1"}, (), None)


def test_a_named_file_counts_instead_of_the_folders_own(tmp_path):
    (tmp_path / ".env").write_text("A=own\n")
    (tmp_path / "other").write_text("B=named\n")

    environment = envfile.merged({"PI_ENV_FILE": str(tmp_path / "other")}, folder=tmp_path)

    assert environment.get("A") is None
    assert environment["B"] == "named"


def make_missing(path):
    pass


def make_directory(path):
    path.mkdir()


def make_pipe(path):
    os.mkfifo(path)


def make_huge(path):
    path.write_bytes(b"A=1\n" * 300_000)


@pytest.mark.parametrize("make", [make_missing, make_directory, make_pipe, make_huge])
def test_a_named_file_that_cannot_be_read_is_said_and_never_waited_for(tmp_path, make):
    make(tmp_path / "f")

    environment = envfile.merged({"PI_ENV_FILE": str(tmp_path / "f"), "A": "1"}, folder=tmp_path)

    assert environment["A"] == "1"
    assert str(tmp_path / "f") in environment.unread
    assert environment.problems == (environment.unread,)


def test_the_own_file_is_said_when_it_is_there_and_cannot_be_read(tmp_path):
    (tmp_path / ".env").mkdir()

    assert ".env cannot be read" in envfile.merged({}, folder=tmp_path).unread


def test_an_environment_shows_no_value():
    assert "hunter2" not in repr(envfile.Environment({"A": "hunter2"}))
