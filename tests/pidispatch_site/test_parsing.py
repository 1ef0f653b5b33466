from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch_site import parsing
from pidispatch_site.variables import BackendKind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1", 1, id="least"),
        pytest.param(" 7\t", 7, id="spaces around"),
        pytest.param("007", 7, id="leading zeros"),
        pytest.param(str(parsing.LARGEST), parsing.LARGEST, id="largest"),
    ],
)
def test_a_whole_decimal_number_is_read(text, value):
    assert parsing.integer(least=1)(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "1.5",
        "1.0",
        "+1",
        "0x10",
        "1_000",
        "12 months",
        "one",
        " ",
        "٣",
        "²",
        "0",
        "-1",
        "--1",
        "9" * 5000,
        "1\n2",
    ],
)
def test_anything_else_is_no_number(text):
    with pytest.raises(parsing.Unusable, match="whole number of at least 1"):
        parsing.integer(least=1)(text)


def test_the_message_names_both_ends_where_there_are_two():
    with pytest.raises(parsing.Unusable, match="at least 0 and at most 9"):
        parsing.integer(least=0, most=9)("10")


@pytest.mark.parametrize(
    ("text", "value"), [("1", 30_000), ("29999", 30_000), ("30000", 30_000), ("30001", 30_001)]
)
def test_a_positive_value_below_the_floor_is_raised_silently(text, value):
    assert parsing.integer(least=1, floor=30_000)(text) == value


@pytest.mark.parametrize("text", ["0", "-5", "1.5"])
def test_the_floor_does_not_save_what_is_no_positive_number(text):
    with pytest.raises(parsing.Unusable):
        parsing.integer(least=1, floor=30_000)(text)


@given(st.integers(min_value=-(2**70), max_value=2**70))
def test_every_number_is_read_exactly_or_refused(number):
    parse = parsing.integer(least=-5, most=2**53 - 1)

    if -5 <= number < 2**53:
        assert parse(str(number)) == number
    else:
        with pytest.raises(parsing.Unusable):
            parse(str(number))


@pytest.mark.parametrize("text", ["true", "yes", "on", "2", " 1", "1 ", "01"])
def test_a_typo_in_a_strict_switch_means_neither(text):
    with pytest.raises(parsing.Unusable):
        parsing.zero_or_one(text)


def test_the_three_kinds_of_switches_differ_in_what_a_typo_means():
    assert [parsing.only_one_is_on(text) for text in ("1", "0", "true")] == [True, False, False]
    assert [parsing.only_zero_is_off(text) for text in ("1", "0", "false")] == [True, False, True]
    assert [parsing.zero_or_one(text) for text in ("1", "0")] == [True, False]


def test_a_list_of_names_is_split_trimmed_and_named_once():
    assert parsing.names("A, B_1,,A , ") == ("A", "B_1")


@pytest.mark.parametrize("text", ["A B", "A=1", "1A", "A,*", "Ä"])
def test_what_cannot_be_a_variable_is_no_name(text):
    with pytest.raises(parsing.Unusable, match="not a name"):
        parsing.names(text)


@pytest.mark.parametrize("text", ["with space", "line\nend", "", "ü", "x" * 201, "\x1b[31m"])
def test_a_token_is_short_and_printable(text):
    with pytest.raises(parsing.Unusable):
        parsing.token(text)


@pytest.mark.parametrize("text", ["pi-job:latest", "host:5000/a/b@sha256:0f", "a"])
def test_an_image_reference_is_taken_as_it_is(text):
    assert parsing.image(text) == text


@pytest.mark.parametrize("text", ["--privileged", "a b", "", "/x", "a" * 256])
def test_what_could_be_an_option_is_no_image(text):
    with pytest.raises(parsing.Unusable):
        parsing.image(text)


def test_paths_are_absolute_afterwards_and_nothing_expands_a_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert parsing.path("logs") == tmp_path / "logs"
    assert parsing.absolute_path("/x/y") == Path("/x/y")
    for parse in (parsing.path, parsing.absolute_path, parsing.directory):
        with pytest.raises(parsing.Unusable):
            parse("~/x")
    with pytest.raises(parsing.Unusable, match="starts with /"):
        parsing.absolute_path("x/y")


def test_a_directory_must_stand_there(tmp_path):
    (tmp_path / "file").touch()

    assert parsing.directory(str(tmp_path)) == tmp_path
    for name in ("file", "missing"):
        with pytest.raises(parsing.Unusable, match="existing directory"):
            parsing.directory(str(tmp_path / name))


def test_a_choice_is_exact():
    parse = parsing.choice(BackendKind)

    assert parse("process") is BackendKind.PROCESS
    with pytest.raises(parsing.Unusable, match="docker or process"):
        parse("Docker")


def test_origins_end_with_the_host():
    assert parsing.origins("https://a.example/, http://[::1]:80") == ("https://a.example", "http://[::1]:80")
    for text in ("a.example", "ftp://a", "https://a/x", "https://u:p@a", "https://"):
        with pytest.raises(parsing.Unusable):
            parsing.origins(text)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("ci:/opt/ci", {"ci": "/opt/ci"}),
        (" a:/b:c , , __proto__:/x ", {"a": "/b:c", "__proto__": "/x"}),
        (",", {}),
        ("ci", None),
        ("ci:", None),
        ("ci:relative", None),
        (":/x", None),
        ("a b:/x", None),
        ("ci:/x,ci:/y", None),
        ("\u0663:/x", None),
    ],
)
def test_a_table_of_scripts_is_split_at_the_first_colon(text, table):
    if table is None:
        with pytest.raises(parsing.Unusable, match="NAME:/absolute/path"):
            parsing.profiles(text)
    else:
        assert {name: str(path) for name, path in parsing.profiles(text).items()} == table
