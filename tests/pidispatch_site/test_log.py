"""The event log, for programs and for a person at a terminal."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch_site.log import EventLog


def written(*, plain: bool, **fields: object) -> str:
    stream = io.StringIO()
    EventLog(stream, host="alpha", plain=plain).event("job_started", **fields)
    return stream.getvalue()


@given(st.text() | st.lists(st.text(), max_size=3))
@pytest.mark.parametrize("plain", [False, True])
def test_whatever_a_value_holds_an_event_is_one_line_that_steers_no_terminal(plain, value):
    line = written(plain=plain, image=value)

    assert line.endswith("\n")
    assert line[:-1].isprintable()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("pi-job:latest", "pi-job:latest", id="as it is"),
        pytest.param("x\njob_completed jobId=1", r"x\njob_completed jobId=1", id="a forged line"),
        pytest.param("\x1b[2J", r"\x1b[2J", id="a terminal's escape"),
        pytest.param("a\x9b1mb", r"a\x9b1mb", id="its other form"),
        pytest.param("\u202eabc", r"\u202eabc", id="the writing turned round"),
        pytest.param("\ud800", r"\ud800", id="half a character"),
        pytest.param("größe", "größe", id="letters of any language"),
        pytest.param(("a", "b\r"), r"a,b\r", id="a list"),
        pytest.param(False, "False", id="a switch"),
    ],
)
def test_a_person_reads_values_with_what_cannot_be_printed_escaped(value, shown):
    assert written(plain=True, image=value) == f"job_started image={shown} host=alpha\n"


def test_a_program_reads_back_what_was_said():
    value = "x\n\x1b\u202e"

    assert json.loads(written(plain=False, image=value)) == {
        "event": "job_started",
        "image": value,
        "host": "alpha",
    }


def test_a_field_without_a_value_is_left_out_and_nobody_else_names_the_host():
    assert json.loads(written(plain=False, host="forged", detail=None)) == {
        "event": "job_started",
        "host": "alpha",
    }
