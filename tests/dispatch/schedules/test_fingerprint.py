from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from dispatch.ids import Kind
from dispatch.jobrules import wire_name
from dispatch.schedules.fingerprint import canonical, digest, fingerprint
from dispatch.triggers.entries import CommentOn, CronOn, Run, Trigger

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "cron-fingerprint.json").read_text())["cases"]
ATTRIBUTES = {wire_name(one.name): one.name for one in fields(Run)}


def cases_of(op: str) -> list:
    return [pytest.param(one["in"], one["out"], id=one["name"]) for one in CASES if one["in"]["op"] == op]


def entry(
    id_: str, *, index: int = 0, tz: str | None = None, pattern: str = "0 3 * * *", **run: object
) -> Trigger:
    given = {"kind": "local", "folder": "/srv/a", "flow": "audit", "task": "t", **run}
    known = {ATTRIBUTES[name]: value for name, value in given.items()}
    on = CronOn(id=id_, pattern=pattern, tz=tz)
    return Trigger(index=index, on=on, run=Run(**{**known, "kind": Kind(given["kind"])}))


def test_no_case_is_left_out():
    assert len(cases_of("cron")) + len(cases_of("canonical")) == len(CASES) == 17


@pytest.mark.parametrize(("given", "out"), cases_of("cron"))
def test_a_set_of_schedules_has_the_fingerprint_of_the_reference(given, out):
    schedules = given["schedules"]
    entries = None if schedules is None else [of_vector(one) for one in reversed(schedules)]

    assert fingerprint(entries, zone=given["tz"]) == (out["fingerprint"] or "")


def of_vector(one: dict) -> Trigger:
    blank = {"flow": None, "task": None}
    return entry(one["schedulerId"], pattern=one["pattern"], **{**blank, **one["run"]})


@pytest.mark.parametrize(("given", "out"), cases_of("canonical"))
def test_a_value_is_written_as_the_reference_does(given, out):
    assert canonical(given["value"]) == out["text"]
    assert digest(out["text"]) == out["digest"]


# As a JavaScript engine writes them: JSON.stringify(JSON.parse(left)) where the left side is JSON.
WRITTEN = {
    "-0": "0",
    "-0.0": "0",
    "1.0": "1",
    "-12.50": "-12.5",
    "0.1": "0.1",
    "123456.789": "123456.789",
    "0.000001": "0.000001",
    "0.0000012": "0.0000012",
    "0.0000001": "1e-7",
    "1.5e-7": "1.5e-7",
    "1e2": "100",
    "1e20": "100000000000000000000",
    "1e21": "1e+21",
    "123456789012345680000": "123456789012345680000",
    "1234567890123456789012": "1.2345678901234568e+21",
    "9007199254740992": "9007199254740992",
    "9007199254740993": "9007199254740992",
    "18446744073709551615": "18446744073709552000",
    "-18446744073709551615": "-18446744073709552000",
    "1.7976931348623157e308": "1.7976931348623157e+308",
    "5e-324": "5e-324",
    "1e999": "null",
    "1" + "0" * 400: "null",
    '"a/\\u0001\\u001f\\u007f\\u2028é\\ud83d\\ude00"': '"a/\\u0001\\u001f\u007f\u2028é😀"',
    '"\\b\\f\\n\\r\\t\\"\\\\"': '"\\b\\f\\n\\r\\t\\"\\\\"',
    '"\\ud83d"': '"\\ud83d"',
    '"\\uDE00\\uD83D"': '"\\ude00\\ud83d"',
    # Sorted by UTF-16: a surrogate pair stands before U+FF5E.
    '{"\\uff5e":1,"\\ud83d\\ude00":2,"b":null,"B":[true,{}]}': '{"B":[true,{}],"b":null,"😀":2,"\uff5e":1}',
}


@pytest.mark.parametrize("text", WRITTEN, ids=lambda text: text[:24])
def test_numbers_and_escapes_are_those_of_javascript(text):
    assert canonical(json.loads(text)) == WRITTEN[text]


def test_halves_that_belong_together_are_joined():
    assert canonical({"\ud83d\ude00": "\ud83d\ude00"}) == '{"😀":"😀"}'


def test_what_is_no_json_has_no_text():
    with pytest.raises(TypeError, match="set"):
        canonical({"a": [{1}]})


def test_neither_order_nor_what_is_unset_nor_other_entries_count():
    a, b = entry("a", index=0), entry("b", index=1, model="m")
    comment = Trigger(index=2, on=CommentOn(phrase="@pi"), run=Run(kind=Kind.GITHUB, flow="fix"))

    assert fingerprint([b, comment, a], zone="UTC") == fingerprint([a, b], zone="UTC")


@pytest.mark.parametrize(
    "other",
    [
        [entry("A")],
        [entry("a", pattern="0 3  * * *")],
        [entry("a", tz="UTC")],
        [entry("a", maxTurns=3)],
        [entry("a", waitFor=({"profile": "p"},))],
        [entry("a"), entry("b")],
        [],
    ],
)
def test_whatever_differs_gives_another(other):
    known = fingerprint([entry("a")], zone="UTC")

    assert fingerprint(other, zone="UTC") != known
    assert fingerprint([entry("a")], zone="Europe/Paris") != known
    assert re.fullmatch("[0-9a-f]{16}", known)
