from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import exitline
from runs.exitline import NOTHING, last_units, parse, read, recorded_tokens

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "run-history.json").read_text())["cases"]
EXIT_CASES = [pytest.param(case, id=case["name"]) for case in VECTORS if case["in"]["op"] == "exit"]
TAIL_CASES = [pytest.param(case, id=case["name"]) for case in VECTORS if case["in"]["op"] == "tail"]
FIELDS = ("turns", "tokens", "session", "usage", "context")


def reported(line: exitline.ExitLine) -> dict[str, Any]:
    return {name: getattr(line, name) for name in FIELDS}


def exit_line(**fields: object) -> str:
    return json.dumps({"event": "exit", **fields})


def test_the_vectors_hold_the_cases_that_we_mean_to_run():
    assert (len(EXIT_CASES), len(TAIL_CASES)) == (78, 4)


@pytest.mark.parametrize("case", EXIT_CASES)
def test_an_exit_line_is_read_as_the_reference_reads_it(case):
    text = case["in"]["text"]

    assert reported(parse(text)) == case["out"]
    assert reported(read(text.encode())) == case["out"]


@pytest.mark.parametrize("case", TAIL_CASES)
def test_the_end_of_the_output_is_read_as_the_reference_reads_it(case):
    given_in = case["in"]
    output = "".join(chunk * given_in["repeat"] for chunk in given_in["chunks"]) + given_in["last"]

    line = read(output.encode())

    assert {"turns": line.turns, "tokens": line.tokens} == case["out"]


def test_an_exit_line_further_back_than_the_bound_is_not_seen():
    line = exit_line(turns=7) + "\n"

    assert parse(last_units(line + "n" * (8192 - len(line)), 8192)).turns == 7
    assert parse(last_units(line + "n" * (8193 - len(line)), 8192)) == NOTHING


def test_the_bound_counts_a_letter_beyond_sixteen_bits_twice():
    line = exit_line(turns=7) + "\n"
    fits = line + "😀" * ((8192 - len(line)) // 2)

    assert parse(last_units(fits, 8192)).turns == 7
    assert parse(last_units(fits + "😀", 8192)) == NOTHING
    assert last_units("a😀", 1) == ""
    assert last_units("ab", 2) == "ab"


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        pytest.param(exit_line(turns=1) + "\n" + exit_line(turns=2) + "\r\nbye\n", 2, id="the last one"),
        pytest.param(exit_line(turns=1) + "\n" + exit_line() + "\n", None, id="an empty one wins"),
        pytest.param('garbage {"event":"x" ' + '{"event":"exit","turns":4}', 4, id="second anchor"),
        pytest.param('{"event":"exit","turns":NaN}\n{"event":"log"}', None, id="NaN"),
        pytest.param('{"event":"exit","turns":1}\n{"event":"exit","turns":NaN}', 1, id="NaN is no JSON"),
        pytest.param('{"event":"exit","turns":Infinity}', None, id="Infinity"),
        pytest.param('{"event":"exit","turns":1e999}', None, id="1e999"),
        pytest.param('{"event":"exit","turns":%s}' % ("9" * 5000), None, id="endless number"),
        pytest.param('{"event":"exit","turns":9007199254740992}', None, id="beyond safe integers"),
        pytest.param('{"event":"exit","turns":3.0}', 3, id="a whole number as 3.0"),
        pytest.param('{"event":"exit","turns":1}\x85{"event":"x"}', None, id="only a newline ends a line"),
        pytest.param("[" * 8000, None, id="deep nesting"),
        pytest.param('{"event":"' * 800, None, id="anchors only"),
    ],
)
def test_strange_output_reports_what_it_can(text: str, turns: int | None):
    assert read(text.encode()).turns == turns


@pytest.mark.parametrize(
    ("reason", "read_as"),
    [
        pytest.param("turn-budget", "turn-budget", id="a token"),
        pytest.param("/home/bob/secret is broken", None, id="text"),
        pytest.param("x" * 65, None, id="long"),
        pytest.param("deadline\n", None, id="final newline"),
        pytest.param(7, None, id="number"),
    ],
)
def test_a_reason_is_a_token_or_nothing(reason, read_as):
    line = parse(exit_line(reason=reason, session={"resumed": False, "reason": reason}))

    assert line.reason == read_as
    assert line.session == {"resumed": False, "reason": read_as}


def test_a_record_takes_four_numbers_of_the_tokens_and_no_text():
    tokens = {"input": 3, "output": "x", "total": 5, "cost": 0.5, "metered": False, "note": "/home/bob"}

    assert recorded_tokens(tokens) == {
        "input": 3,
        "output": None,
        "total": 5,
        "cost": 0.5,
        "metered": False,
    }
    assert recorded_tokens({"total": 0, "metered": True}) == dict.fromkeys(("input", "output", "cost")) | {
        "total": 0
    }
    assert recorded_tokens(None) is None


def test_model_names_are_lowered_before_they_are_checked():
    usage = {"v": 1, "models": [{"provider": "OpenAI", "model": "GPT-5"}]}

    rebuilt = parse(exit_line(usage=usage)).usage

    assert rebuilt is not None
    assert (rebuilt["models"][0]["provider"], rebuilt["models"][0]["model"]) == ("openai", "gpt-5")


def test_ten_models_are_one_too_many():
    row = {"provider": "p", "model": "m"}

    assert parse(exit_line(usage={"v": 1, "models": [row] * 9})).usage is not None
    assert parse(exit_line(usage={"v": 1, "models": [row] * 10})).usage is None


@given(st.binary(max_size=400))
def test_no_bytes_make_it_raise(output: bytes):
    read(output)
    read(b'{"event":"exit","turns":' + output)
    read(output + b'{"event":"exit","turns":3}')


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*FIELDS, "reason", "code"]), _JSON))
def test_what_is_read_can_always_be_written_as_strict_json(fields):
    line = parse(exit_line(**fields))

    json.dumps([reported(line), recorded_tokens(line.tokens)], allow_nan=False)
