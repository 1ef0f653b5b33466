from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.operator_files.problems import MOST_TOLD, OperatorFileError, Problem, shown
from dispatch.operator_files.strict_json import MAX_BYTES, MAX_DEPTH, load

NAME = "/etc/pi/triggers.json"
DEEP = f"is nested deeper than {MAX_DEPTH} levels"
TWICE = "twice in one object; write it once"
texts = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def said_of(content: bytes) -> list[str]:
    with pytest.raises(OperatorFileError) as error:
        load(content, name=NAME)
    assert error.value.exit_code == 2
    assert set(error.value.places) == {"file"}
    return [problem.removeprefix(f"{NAME}: ") for problem in error.value.problems]


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("\ufeff \n", " (there is nothing in it)"),
        ('{"a": 1, \n}', " (no comma before the })"),
        ("[1,]", " (no comma before the ])"),
        ("// mine\n{}", " (JSON has no comments; take it out)"),
        ('{"a": 1 # mine\n}', " (JSON has no comments; take it out)"),
        ("{'a': 1}", ' (quotes are plain and double, as in "on")'),
        ('{"a": \u201cb\u201d}', ' (quotes are plain and double, as in "on")'),
        ('{"a": True}', " (true, false and null are written small)"),
        (r'{"folder": "C:\work"}', r" (a backslash is written twice, as in C:\\work)"),
        (r'{"folder": "C:\users"}', r" (a backslash is written twice, as in C:\\work)"),
        ('{"a": [1, 2]', " (the end of it is missing)"),
        ('{"a": 1 "b": 2}', ""),
        ("{a: 1}", ""),
        ("{,}", ""),
    ],
)
def test_a_slip_that_many_make_is_said_with_how_to_mend_it(text, how):
    (said,) = said_of(text.encode())
    place, _, _ = said.partition(" (")

    assert re.fullmatch(r"is not JSON: .* at line \d+, column \d+", place)
    assert said == f"{place}{how}"


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (b"", ["is not JSON: Expecting value at line 1, column 1 (there is nothing in it)"]),
        (b'{\n  "a": 01}', ["is not JSON: Expecting ',' delimiter at line 2, column 9"]),
        (b"{} {}", ["is not JSON: Extra data at line 1, column 4"]),
        (b'{"a": "b\x01"}', ["is not JSON: Invalid control character at line 1, column 9"]),
        ("{}".encode("utf-16"), ["is not UTF-8 text (byte 0); save it as UTF-8"]),
        (b'{"a": "caf\xe9"}', ["is not UTF-8 text (byte 10); save it as UTF-8"]),
        (b"[" * 20 + b'"' + b"x" * MAX_BYTES, [f"has {MAX_BYTES + 21} bytes; allowed are {MAX_BYTES}"]),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), [DEEP]),
        (b'{"a":' * MAX_DEPTH + b"[1]" + b"}" * MAX_DEPTH, [DEEP]),
        (b"[" * 500_000 + b"]" * 500_000, [DEEP]),
        (b"[" + b"9" * 5000 + b"]", ["holds a number that is too long"]),
        (
            b'[NaN, {"a": -Infinity}, Infinity]',
            [f"holds {word}, which is no number of JSON" for word in ("NaN", "-Infinity", "Infinity")],
        ),
        (b'{"a": 1, "b": 2, "a": 1}', [f"has the key 'a' {TWICE}"]),
        (
            b'{"run": {"secrets": {"sk-1": "A", "sk-1": {"sk-2": 1, "sk-2": 2}}}}',
            [f"has a key {TWICE} (run.secrets)"] * 2,
        ),
        (b'{"": 1, "": 1}', [f"has the key '' {TWICE}"]),
        (b'{"flow": 1, "\\u0066low": 2, "flow": 3}', [f"has the key 'flow' {TWICE}"]),
        (
            b'{"w": [{"a": 1, "a": 2}, {"b": {"c": 1, "c": 2}, "d": 1, "d": 2}], "n": NaN}',
            [
                "holds NaN, which is no number of JSON",
                f"has the key 'a' {TWICE} (w[0])",
                f"has the key 'c' {TWICE} (w[1].b)",
                f"has the key 'd' {TWICE} (w[1])",
            ],
        ),
        # The first `a` is not in the value any more, so that nobody can tell whether it is one of secrets.
        (b'{"a": {"b": 1, "b": 2}, "a": 3}', [f"has a key {TWICE}", f"has the key 'a' {TWICE}"]),
        (b'{"\\n": [{"a": 1, "a": 2}]}', [rf"has the key 'a' {TWICE} (\n[0])"]),
    ],
)
def test_what_is_no_strict_json_is_refused_in_words(content, problems):
    assert said_of(content) == problems


def test_a_byte_order_mark_and_the_last_byte_allowed_are_no_fault():
    content = b'\xef\xbb\xbf{"a": [1e2, 5.0, null, "\\ud800"]}\r\n'

    assert load(content.ljust(MAX_BYTES), name=NAME) == {"a": [100.0, 5.0, None, "\ud800"]}
    assert load(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, name=NAME) is not None


@given(values)
def test_what_json_writes_is_read_as_it_was(value):
    assert load(json.dumps(value).encode(), name=NAME) == value


@given(st.binary(max_size=40) | st.text(alphabet='{}[],:"ab1-.eNI\\u\n ', max_size=40).map(str.encode))
def test_any_bytes_are_read_as_python_reads_them_or_refused(content):
    try:
        value = load(content, name=NAME)
    except OperatorFileError:
        return
    assert json.loads(content.decode("utf-8-sig")) == value


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=5))
def test_a_key_is_told_as_often_as_it_was_met_twice(pairs):
    content = f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in pairs)}}}".encode()
    keys = [key for key, _ in pairs]
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]

    if twice:
        assert said_of(content) == [f"has the key '{key}' {TWICE}" for key in twice]
    else:
        assert load(content, name=NAME) == dict(pairs)


def test_each_problem_is_a_line_with_file_and_place():
    error = OperatorFileError(NAME, [Problem("windows[3].from", "is 5"), Problem("", "is empty")])

    assert str(error) == f"{NAME}: windows[3].from is 5\n{NAME}: is empty"
    assert error.places == ("windows[3].from", "file")


def test_of_thousands_of_problems_the_first_are_told_and_the_rest_counted():
    error = OperatorFileError(NAME, [Problem(f"rows[{index}]", "is 5") for index in range(5000)])

    assert error.problems[-2:] == (
        f"{NAME}: rows[{MOST_TOLD - 1}] is 5",
        f"{NAME}: has {5000 - MOST_TOLD} more problems",
    )
    assert len(error.places) == MOST_TOLD


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("25:00", "'25:00'"),
        ("\u0660\n\ud800", r"'\u0660\n\ud800'"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (["a", 1.5], "['a', 1.5]"),
        ("x" * 200, f"'{'x' * 96}..."),
    ],
)
def test_a_value_is_shown_escaped_and_no_longer_than_is_of_use(value, text):
    assert shown(value) == text
