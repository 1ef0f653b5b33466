"""The table of variables, its documentation and the configuration say the same, each way."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from pidispatch_site.conf import Config
from pidispatch_site.known_names import LATER, OF_PI
from pidispatch_site.variables import VARIABLES

DOCS = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
ROW = re.compile(r"^\| `([A-Z_]+)`(?: \(also `([A-Z_]+)`\))? \| (.*) \| (.*) \| (.*) \|$", re.MULTILINE)
DOCUMENTED = {name: rest for name, *rest in ROW.findall(DOCS)}


def test_every_documented_variable_is_read_and_every_read_one_is_documented():
    assert sorted(DOCUMENTED) == sorted(row.name for row in VARIABLES)


@pytest.mark.parametrize("row", VARIABLES, ids=lambda row: row.name)
def test_the_documentation_gives_the_default_bounds_and_meaning_of_the_code(row):
    file = f"{row.name}_FILE" if row.secret else ""

    assert DOCUMENTED[row.name] == [file, row.default, row.bounds or "any", row.meaning]


def test_the_names_of_later_parts_are_documented_each_way():
    section = DOCS.partition("## Known, not used yet")[2]

    assert set(re.findall(r"`([A-Z_]+)`", section)) == LATER


def test_no_name_is_both_ours_and_somebody_elses():
    ours = [row.name for row in VARIABLES]

    assert len(ours) == len(set(ours))
    assert not set(ours) & (LATER | OF_PI)
    assert not LATER & OF_PI


def test_every_field_of_the_configuration_has_its_variable_and_the_other_way_round():
    derived = {"environment", "warnings", "worker_name_declared"}

    fields = {field.name for field in dataclasses.fields(Config)} - derived

    assert fields == {row.field for row in VARIABLES if row.field is not None}


@pytest.mark.parametrize(
    "row",
    [row for row in VARIABLES if isinstance(row.value, (int, str)) and row.value],
    ids=lambda row: row.name,
)
def test_a_constant_default_is_what_the_documentation_says_and_passes_its_own_parser(row):
    shown = ("on" if row.value else "off") if isinstance(row.value, bool) else str(row.value)

    assert row.default == shown
    if not isinstance(row.value, bool):
        assert row.parse(str(row.value)) == row.value
