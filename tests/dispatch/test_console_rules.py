"""Pause windows and scoped limits as rows of a form and of a list; the settings file as a form."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.console import settings_form
from dispatch.console.limit_rules import LIMIT_RULES
from dispatch.console.rule_fields import has_form, of_row, of_texts, row_of, with_problems
from dispatch.console.rule_listing import judged, listed, unknown_of
from dispatch.console.settings import in_force
from dispatch.console.settings_form import fields_of, lenient, states_of, wanted
from dispatch.console.window_rules import WINDOW_RULES
from dispatch.operator_files.overlay import EMPTY
from dispatch.operator_files.pause_windows import MOST_HOPS

NIGHT = {"scope": "*", "from": "22:00", "to": "06:00"}
SITE = {"scope": "/srv/site", "allDay": True, "tz": "Europe/Berlin", "days": ["Sunday", "MON"]}
YEAR = {"dateFrom": "2026-01-01", "dateTo": "2026-12-31"}
BOUNDED = {
    "scope": "acme/web",
    "from": "09:00",
    "to": "10:00",
    "dateFrom": "2026-01-01",
    "dateTo": "2026-12-31",
}
# A Monday.
AT_NIGHT = datetime(2026, 11, 30, 23, 0, tzinfo=UTC)


def windows(*rows):
    return json.dumps({"windows": rows}).encode()


def cells(rules, row, *, now=AT_NIGHT):
    content = json.dumps({**rules.empty, rules.part: [row]}).encode()
    (found,) = listed([row], judged(content, rules), rules, search="", now=now)
    return [cell.text for cell in found.cells]


@pytest.mark.parametrize(
    ("rules", "row", "said"),
    [
        (
            *(WINDOW_RULES, NIGHT),
            ["22:00 to 06:00 on the next day (UTC)", "every day", "holds until 2026-12-01 06:00:00 UTC"],
        ),
        (
            # Every day joins the next, as for the queue: it goes on as far as it is followed.
            *(WINDOW_RULES, {"scope": "*", "allDay": True}),
            ["the whole day (UTC)", "every day", f"holds until 2026-12-{1 + MOST_HOPS:02} 00:00:00 UTC"],
        ),
        (
            *(WINDOW_RULES, SITE),
            ["the whole day (Europe/Berlin)", "Mon, Sun", "does not hold"],
        ),
        (
            *(WINDOW_RULES, BOUNDED),
            ["09:00 to 10:00 (UTC)", "every day, from 2026-01-01, to 2026-12-31", "does not hold"],
        ),
        (WINDOW_RULES, {**NIGHT, "from": "1:05", "to": "0:00"}, None),
        (LIMIT_RULES, {"scope": "a/b", "day": 5.0, "concurrent": 2}, ["5", "—", "—", "2"]),
    ],
)
def test_a_row_is_laid_out_in_words(rules, row, said):
    found = cells(rules, row)

    assert found == said if said else found[0] == "01:05 to 00:00 on the next day (UTC)"
    assert len(found) == len(rules.headings)


@pytest.mark.parametrize(
    ("rules", "rows", "said"),
    [
        (WINDOW_RULES, [], "no pause window"),
        (WINDOW_RULES, [BOUNDED], "1 pause window, none holds now"),
        (WINDOW_RULES, [{**NIGHT, "scope": "a/b"}], "1 pause window, 1 holds now"),
        (
            *(WINDOW_RULES, [NIGHT, {**NIGHT, "scope": "a/b"}, BOUNDED]),
            "3 pause windows, 2 hold now; every job is paused until 2026-12-01 06:00:00 UTC",
        ),
        (LIMIT_RULES, [], "no scoped limit"),
        (LIMIT_RULES, [{"scope": "a/b", "day": 1}], "1 scoped limit"),
    ],
)
def test_rows_are_counted_without_their_scopes(rules, rows, said):
    found = judged(json.dumps({**rules.empty, rules.part: rows}).encode(), rules)

    assert rules.counted(found.rules, AT_NIGHT) == said


def test_what_is_wrong_is_told_apart_by_rows_and_keys():
    found = judged(
        windows(NIGHT, {"scope": "a", "from": "25:00", "to": "1:00", "days": ["x"]}, 7), WINDOW_RULES
    )

    assert found.rules is None
    assert {place: sorted(keys) for place, keys in found.of_rows.items()} == {1: ["days", "from"], 2: [""]}
    (row,) = listed([NIGHT, {"scope": "A: b"}], found, WINDOW_RULES, search="a: B", now=AT_NIGHT)
    assert (row.index, row.cells) == (1, ())
    assert row.problem.startswith("from is '25:00'; allowed is HH:MM")
    (problem,) = judged(b"[]", WINDOW_RULES).problems
    assert problem.startswith("holds []; allowed is an object")


def test_keys_that_mean_nothing_are_said():
    assert unknown_of({**NIGHT, "timezone": "x"}, WINDOW_RULES) == (
        "timezone means nothing: a typing error?",
    )
    assert unknown_of(7, WINDOW_RULES) == ()


TYPED = {"scope": " a/b ", "days": ["tue", "mon"], "from": "1:00", "to": "2:00", "allDay": []}


@pytest.mark.parametrize(
    ("rules", "before", "typed", "made"),
    [
        (WINDOW_RULES, {}, TYPED, {"scope": "a/b", "from": "1:00", "to": "2:00", "days": ["tue", "mon"]}),
        (WINDOW_RULES, SITE, {"allDay": ["on"]}, {"allDay": True}),
        (WINDOW_RULES, {"note": 1, **SITE}, {"scope": ["x"]}, {"note": 1, "scope": "x"}),
        (LIMIT_RULES, {}, {"scope": "a/b", "day": "5", "week": "x"}, {"scope": "a/b", "day": 5, "week": "x"}),
        (LIMIT_RULES, {}, {"day": "9" * 17}, {"day": "9" * 17}),
        (LIMIT_RULES, {"day": 5.0, "week": None}, {"day": "5"}, {"day": 5.0, "week": None}),
        (LIMIT_RULES, {"day": 5}, {"day": "-1"}, {"day": "-1"}),
    ],
)
def test_a_row_is_made_of_what_was_typed(rules, before, typed, made):
    def texts(name):
        said = typed.get(name, [])
        return [said] if isinstance(said, str) else said

    assert row_of(of_texts(rules.fields, texts), before) == made


DAYS = st.lists(st.sampled_from(["mon", "Tuesday", " WED ", "sunday"]), min_size=1)
ROWS = st.fixed_dictionaries(
    {"scope": st.text("abc/*", min_size=1)},
    optional={
        "from": st.text("0123:", max_size=5),
        "to": st.just("06:00"),
        "tz": st.sampled_from(["UTC", ""]),
        "allDay": st.just(True),
        "days": DAYS,
        "note": st.integers(),
    },
)


@given(ROWS)
def test_a_form_that_is_sent_back_as_it_was_changes_nothing(row):
    assert has_form(WINDOW_RULES.fields, row)
    fields = of_row(WINDOW_RULES.fields, row)
    sent = {one.name: one.value.split(",") if one.name == "days" else [one.value] for one in fields}

    assert json.dumps(row_of(of_texts(WINDOW_RULES.fields, sent.__getitem__), row)) == json.dumps(row)
    assert {choice.value for field in fields for choice in field.choices if choice.is_set} <= {
        *("mon", "tue", "wed", "sun")
    }


@pytest.mark.parametrize(
    "row",
    [
        *(7, None, [], {"scope": 3}, {"scope": " a"}, {"scope": "a\nb"}, {"allDay": False}, {"allDay": 1}),
        *({"days": []}, {"days": "mon"}, {"days": ["x"]}, {"days": [1]}, {"tz": None}),
    ],
)
def test_what_a_form_cannot_show_is_edited_as_json(row):
    assert not has_form(WINDOW_RULES.fields, row)


def test_problems_stand_beside_their_fields():
    fields = {one.name: one for one in with_problems(LIMIT_RULES.fields, {"day": ["is 0", "is odd"]})}

    assert fields["day"].problem == "It is 0. It is odd."
    assert fields["week"].problem == ""


@pytest.mark.parametrize(
    ("rules", "row", "said"),
    [
        (
            WINDOW_RULES,
            NIGHT,
            "It holds already: no job starts before 2026-12-01 06:00:00 UTC",
        ),
        (WINDOW_RULES, BOUNDED, ""),
        (
            LIMIT_RULES,
            {"scope": "/a", "concurrent": 2},
            "One job at a time works in a folder anyway",
        ),
        (LIMIT_RULES, {"scope": "a/b", "concurrent": 2}, ""),
    ],
)
def test_what_a_person_should_know_before_it_counts_is_said(rules, row, said):
    content = json.dumps({**rules.empty, rules.part: [row]}).encode()

    notes = " ".join(rules.notes(judged(content, rules).rules[0], AT_NIGHT))
    assert notes.startswith(said)
    assert bool(notes) is bool(said)


# The settings file

FILE = {
    "dailyCap": 20,
    "model": "m",
    "dialyCap": 1,
    "softHoldPct": 0,
    "secretProfiles": {"v": "/opt/x"},
    "new": 2,
}
CONFIGURED = {"provider": "p", "daily_cap": 5, "secret_profiles": {}}


def force(document):
    return in_force(lenient(document, name="f"), CONFIGURED, {"PI_PROVIDER": "p"})


def form(texts=None):
    return {one.setting.name: one for one in fields_of(FILE, force(FILE), texts)}


def test_the_form_shows_file_and_force_and_no_place_of_a_secret():
    found = form()

    assert {name: one.value for name, one in found.items() if one.is_set} == {
        "dailyCap": "20",
        "model": "m",
        "softHoldPct": "",
        "secretProfiles": "",
    }
    assert str(found["provider"].setting) == "p"
    assert found["softHoldPct"].problem.startswith("The file has a value that is not allowed")
    assert not found["secretProfiles"].can_edit
    assert str(found["secretProfiles"].setting) == "v"
    assert [(one.name, one.shown, one.meant) for one in settings_form.unknown_of(FILE)] == [
        ("unknown-0", "dialyCap", "dailyCap"),
        ("unknown-1", "new", None),
    ]


@pytest.mark.parametrize(
    ("texts", "to_set", "to_unset"),
    [
        ({}, {}, ()),
        ({"value-dailyCap": " 20 ", "value-model": "m", "value-provider": ""}, {}, ()),
        ({"value-dailyCap": "30"}, {"dailyCap": "30"}, ()),
        ({"value-dailyCap": ""}, {}, ("dailyCap",)),
        ({"value-softHoldPct": ""}, {}, ()),
        ({"value-softHoldPct": "", "unset-softHoldPct": "on"}, {}, ("softHoldPct",)),
        ({"value-model": "m", "unset-model": "on"}, {}, ("model",)),
        ({"value-model": "n", "unset-model": "on"}, {"model": "n"}, ("model",)),
        ({"unknown-0": "on", "unknown-7": "on"}, {}, ("dialyCap",)),
        ({"value-secretProfiles": "x", "value-nothing": "y"}, {"secretProfiles": "x"}, ()),
    ],
)
def test_what_is_typed_is_read_as_changes(texts, to_set, to_unset):
    found = wanted(FILE, texts)

    assert (found.to_set, found.to_unset) == (to_set, to_unset)


@pytest.mark.parametrize(
    ("texts", "name", "says"),
    [
        (
            {"value-dailyCap": "0"},
            "dailyCap",
            "It cannot be set to this; allowed is a whole number from 1 up.",
        ),
        ({"value-model": "n", "unset-model": "on"}, "model", "It is both set and unset; say one of them."),
        ({"value-model": "", "unset-model": "on"}, "model", ""),
        ({"value-softHoldPct": "10"}, "softHoldPct", ""),
        ({"unset-softHoldPct": "on"}, "softHoldPct", ""),
    ],
)
def test_what_is_wrong_with_it_stands_beside_the_key(texts, name, says):
    assert form(texts)[name].problem == says


def test_before_and_after_say_what_is_in_force():
    after = {"dailyCap": 30, "model": "m", "new": 2, "secretProfiles": {}}
    names = ("dailyCap", "softHoldPct", "dialyCap")
    was, will = states_of(names, FILE, force(FILE)), states_of(names, after, force(after))

    assert settings_form.difference(was, will).splitlines() == [
        *("--- before", "+++ after"),
        *("-dailyCap: 20 (from: settings file)", "+dailyCap: 30 (from: settings file)"),
        *("-softHoldPct: a value that is not allowed", "+softHoldPct: off (from: default)"),
        "-dialyCap: means nothing",
    ]
    assert settings_form.difference({}, {}) == ""
    off = in_force(EMPTY, {}, {})
    assert list(settings_form.notes(off, ("dailyCap", "model"))) == [
        "dailyCap is off then: nothing bounds that any more."
    ]
