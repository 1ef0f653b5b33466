"""The settings overlay: every key and its bounds, every refusal by the key's name alone, and its changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.operator_files.overlay import BY_NAME, EMPTY, KEYS, MAX_UNKNOWN, Overlay, parse
from dispatch.operator_files.overlay_edit import changed, nearest, rendered
from dispatch.operator_files.problems import OperatorFileError
from pidispatch_site.errors import ConfigurationError

NAME = "/var/lib/pi/settings.json"
LARGEST = 2**53 - 1
CANARY = "sk-canary"

FULL = {
    "provider": "openai",
    "model": "gpt-x",
    "maxTurns": 5,
    "maxTokens": 1000,
    "concurrency": 2,
    "dailyCap": 30,
    "weeklyCap": 100,
    "monthlyCap": 300,
    "softHoldPct": 80,
    "dailyTokenCap": 10_000,
    "secretProfiles": {"vault": "/opt/pi/vault", "__proto__": "/opt/pi/other"},
}


def read(**document):
    return parse(json.dumps(document).encode(), name=NAME)


def places(**document):
    with pytest.raises(OperatorFileError) as error:
        read(**document)
    return error.value.places


def test_the_keys_are_those_of_the_specification():
    assert set(BY_NAME) == set(FULL)
    assert {key.field for key in KEYS} == set(Overlay.__dataclass_fields__) - {"unknown"}
    assert [key.name for key in KEYS if key.of_text is None] == ["secretProfiles"]


def test_every_key_is_read():
    assert read(**FULL) == Overlay(
        provider="openai",
        model="gpt-x",
        max_turns=5,
        max_tokens=1000,
        concurrency=2,
        daily_cap=30,
        weekly_cap=100,
        monthly_cap=300,
        soft_hold_pct=80,
        daily_token_cap=10_000,
        secret_profiles={"vault": Path("/opt/pi/vault"), "__proto__": Path("/opt/pi/other")},
    )
    assert read() == EMPTY


BOUNDS = {
    **dict.fromkeys(("maxTurns", "maxTokens", "dailyCap", "weeklyCap"), (1, LARGEST)),
    **dict.fromkeys(("monthlyCap", "dailyTokenCap"), (1, LARGEST)),
    "concurrency": (1, 10),
    "softHoldPct": (1, 99),
}


@pytest.mark.parametrize(("key", "bounds"), BOUNDS.items(), ids=BOUNDS)
def test_a_number_has_its_bounds(key, bounds):
    for number in (*bounds, float(bounds[0])):
        found = getattr(read(**{key: number}), BY_NAME[key].field)
        assert (found, type(found)) == (number, int)
    for other in (bounds[0] - 1, bounds[1] + 1, -1, 1.5, True, False, None, "5", [], {}, 1e300):
        assert places(**{key: other}) == (key,)


@pytest.mark.parametrize("key", ["provider", "model"])
@pytest.mark.parametrize("value", ["", " ", "two words", "a\n", "né", "x" * 201, None, 5, True, ["a"], {}])
def test_a_name_is_one_that_the_environment_could_have(key, value):
    assert places(**{key: value}) == (key,)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        pytest.param(None, "secretProfiles", id="null"),
        pytest.param(["/opt/x"], "secretProfiles", id="list"),
        pytest.param("vault:/opt/x", "secretProfiles", id="text of the environment"),
        pytest.param({"": "/opt/x"}, "secretProfiles[0]", id="no name"),
        pytest.param({"ok": "/opt/x", "a b": "/opt/x"}, "secretProfiles[1]", id="name"),
        pytest.param({"ok\n": "/opt/x"}, "secretProfiles[0]", id="name with a line end"),
        pytest.param({"٣": "/opt/x"}, "secretProfiles[0]", id="other digits"),
        pytest.param({"vault": "opt/x"}, "secretProfiles.vault", id="relative"),
        pytest.param({"vault": ""}, "secretProfiles.vault", id="empty"),
        pytest.param({"vault": 5}, "secretProfiles.vault", id="number"),
        pytest.param({"vault": "/opt/\0"}, "secretProfiles.vault", id="end of a path"),
        pytest.param({"v" * 500: None}, f"secretProfiles.{'v' * 60}", id="cut"),
    ],
)
def test_profiles_are_absolute_paths_by_name(value, place):
    assert places(secretProfiles=value) == (place,)


@pytest.mark.parametrize("key", FULL)
def test_a_message_names_key_file_and_what_is_allowed_and_never_the_value(key):
    with pytest.raises(OperatorFileError) as error:
        read(**{key: f"{CANARY} is secret"})

    assert str(error.value) == (
        f"{NAME}: {key} has a value that is not allowed; allowed is {BY_NAME[key].allowed}, or no such key"
    )
    assert error.value.exit_code == 2


def test_all_problems_are_said_at_once_and_no_value():
    with pytest.raises(OperatorFileError) as error:
        read(model=f"{CANARY} ", dailyCap=CANARY, secretProfiles={"a": CANARY, CANARY + " ": "/x"}, other=1)

    assert error.value.places == ("model", "dailyCap", "secretProfiles.a", "secretProfiles[1]")
    assert CANARY not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'"x"', b"{", b'{"a": 1, "a": 2}', b"\xff"])
def test_what_is_no_object_is_refused(content):
    with pytest.raises(OperatorFileError) as error:
        parse(content, name=NAME)

    assert error.value.places == ("file",)


def test_unknown_keys_are_dropped_and_can_be_logged():
    hostile = {"dialyCap": 1, "a\nb\x1b[0m": 1, "é": 1, "x" * 500: 1, "toString": 1}

    found = read(**hostile, dailyCap=3)

    assert found.daily_cap == 3
    assert found.unknown == ("dialyCap", r"a\nb\x1b[0m", r"\xe9", f"{'x' * 57}...", "toString")
    assert len(read(**{f"k{number}": 1 for number in range(1000)}).unknown) == MAX_UNKNOWN


@given(st.dictionaries(st.text(st.characters(exclude_categories=[])), st.none(), max_size=5))
def test_no_key_can_break_a_line_of_the_log(document):
    for key in read(**{f"x{key}": value for key, value in document.items()}).unknown:
        assert key.isascii()
        assert key.isprintable()
        assert len(key) <= 60


def change(before, *, to_unset=(), **to_set):
    return changed(before, to_set=to_set, to_unset=to_unset, name=NAME)


def test_a_change_keeps_order_and_unknown_keys():
    before = {"dailyCap": 1, "later": [1.5, "é"], "model": "a", "concurrency": 3}

    after = change(before, to_unset=["model", "weeklyCap"], concurrency=" 5 ", provider="openai")

    assert list(after.items()) == [
        ("dailyCap", 1),
        ("later", [1.5, "é"]),
        ("concurrency", 5),
        ("provider", "openai"),
    ]
    assert before["concurrency"] == 3


def test_an_unknown_key_of_the_file_can_be_taken_out():
    assert change({"dialyCap": 1, "dailyCap": 2}, to_unset=["dialyCap"]) == {"dailyCap": 2}


REFUSED = {
    "number": (
        {"dailyCap": "many"},
        [],
        "dailyCap cannot be set to this value; allowed is a whole number from 1 up",
    ),
    "float": ({"dailyCap": "5.0"}, [], "dailyCap cannot be set"),
    "power": ({"dailyCap": "1e2"}, [], "dailyCap cannot be set"),
    "sign": ({"dailyCap": "-1"}, [], "dailyCap cannot be set"),
    "nothing": ({"dailyCap": ""}, [], "dailyCap cannot be set"),
    "too many": ({"concurrency": "11"}, [], "concurrency cannot .* from 1 to 10;"),
    "percent": ({"softHoldPct": "100"}, [], "softHoldPct cannot .* from 1 to 99;"),
    "huge": ({"maxTokens": "9" * 5000}, [], "maxTokens cannot be set"),
    "name": ({"model": "two words"}, [], "model cannot be set .* without spaces"),
    "empty name": ({"provider": ""}, [], "provider cannot be set"),
    "profiles": (
        {"secretProfiles": "{}"},
        [],
        f"^secretProfiles is edited by hand, in {NAME}; allowed is an object",
    ),
    "profiles out": ({}, ["secretProfiles"], "^secretProfiles is edited by hand"),
    "slip": ({"dialyCap": "5"}, [], "'dialyCap' is no setting; did you mean dailyCap?"),
    "slip out": ({}, ["wekly_cap"], "'wekly_cap' is no setting; did you mean weeklyCap?"),
    "nothing near": ({"colour": "5"}, [], "'colour' is no setting; there are provider, model, maxTurns,"),
    "both": ({"model": "a"}, ["model"], "model is both set and unset; say one of them"),
}


@pytest.mark.parametrize(("to_set", "to_unset", "says"), REFUSED.values(), ids=REFUSED)
def test_a_change_that_is_not_allowed_is_said_in_words(to_set, to_unset, says):
    with pytest.raises(ConfigurationError, match=says) as error:
        change({}, to_unset=to_unset, **to_set)

    assert len(error.value.problems) == 1


def test_all_changes_that_are_not_allowed_are_said_at_once_and_no_value():
    with pytest.raises(ConfigurationError) as error:
        change({}, to_unset=["modle", "secretProfiles"], dailyCap=CANARY, conc="1", model="ok")

    assert len(error.value.problems) == 4
    assert CANARY not in str(error.value)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("PI_DAILY_CAP", "dailyCap"),
        ("max-turns", "maxTurns"),
        ("MODEL", "model"),
        ("dailyTokensCap", "dailyTokenCap"),
        ("soft_hold", "softHoldPct"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_nearest_key_is_found(typed, meant):
    assert nearest(typed) == meant


@pytest.mark.parametrize(
    ("document", "content"),
    [
        pytest.param({}, b"{}\n", id="nothing"),
        pytest.param({"b": 1, "a": "é"}, '{\n  "b": 1,\n  "a": "é"\n}\n'.encode(), id="readable"),
        pytest.param({"a": "\ud800"}, b'{\n  "a": "\\ud800"\n}\n', id="half a letter"),
    ],
)
def test_the_file_is_for_people_too(document, content):
    assert rendered(document, name=NAME) == content
    assert json.loads(content) == document


def test_what_cannot_be_written_again_is_refused():
    deep = []
    for _ in range(20_000):
        deep = [deep]

    for value in (float("inf"), deep):
        with pytest.raises(OperatorFileError, match="cannot be written again; edit it by hand"):
            rendered({"other": value}, name=NAME)
