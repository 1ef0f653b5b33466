"""`manage.py budget`: the figures, the bars, and what keeps them from being shown."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.console.budget import CapsInForce, as_data, read
from dispatch.console.budget_bars import ASCII, BLOCKS, bar, ink_for
from dispatch.console.budget_table import table
from dispatch.effective import Spending
from dispatch.instants import instant_of
from dispatch.money.ledger import valkey_now
from dispatch.money.reading import Standing, WindowUse
from dispatch.money.windows import (
    Caps,
    Window,
    counter_key,
    scope_prefix,
    token_counter_key,
    window_end,
)
from dispatch.operator_files.scoped_limits import NO_LIMITS, ScopedLimit, ScopedLimits
from runs.workspace.scope import hash16
from tests.dispatch.consolekit import MANAGE, NOBODY, Case, Console, run_all

FOLDER = "/srv/gr\xf6\xdfe"
LIMITS = ScopedLimits(
    (ScopedLimit(scope=FOLDER, day=5, month=40), ScopedLimit(scope="acme/\x1b[2J", concurrent=2))
)
CAPS = CapsInForce(
    spending=Spending(caps=Caps(day=25, week=100), hold_percent=80, token_cap=1_000_000), limits=LIMITS
)
VARIABLES = {"PI_SOFT_HOLD_PCT": "80", "PI_WEEKLY_CAP": "60", "PI_DAILY_TOKEN_CAP": "1000000"}


@pytest.fixture
def spent(valkey):
    """Counters of now: 12 of 25 today, 82 of 100 this week, the folder's day full."""
    now = instant_of(valkey_now(valkey))
    for key, count in {
        counter_key("budget", Window.DAY, now): 12,
        counter_key("budget", Window.WEEK, now): 82,
        counter_key(scope_prefix(hash16(FOLDER)), Window.DAY, now): 5,
        token_counter_key("budget", now): 812_345,
    }.items():
        valkey.set(key, count, ex=1000)
    return valkey


def told(lines: list[str]) -> list[str]:
    """The lines with every date replaced, their keys too."""
    return [re.sub(r"20\d\d-\d\d-\d\d( \d\d:\d\d)?", "DATE", line) for line in lines]


def test_the_table_on_a_terminal_of_eighty_columns(spent):
    lines = table(read(spent, CAPS), columns=80, ink=ASCII)

    assert max(map(len, lines)) <= 80
    assert told(lines) == [
        "As of DATE UTC; every window turns at 00:00 UTC.",
        "",
        "            used        cap     left  hold  state  until",
        "container starts",
        "  day         12         25       13    20  ok     DATE  #######......----",
        "  week        82        100       18    80  held   DATE  #############=---",
        "  month  not limited",
        "tokens",
        "  day    812,345  1,000,000  187,655        ok     DATE  #############....",
        FOLDER,
        "  day          5          5        0        full   DATE  #################",
        "  month        0         40       40        ok     DATE  .................",
        "acme/?[2J",
        "  no spend cap of its own",
        "",
        "# used, . left, - held back (= used)",
        "hold: starts beyond this count are held back.",
    ]


@pytest.mark.parametrize("columns", [None, 70])
def test_without_a_terminal_or_room_there_are_the_same_words_and_no_bars(spent, columns):
    with_bars = table(read(spent, CAPS), columns=80, ink=ASCII)

    lines = table(read(spent, CAPS), columns=columns, ink=ASCII)

    assert lines == [re.sub(r"  [#.=-]{17}$", "", line) for line in with_bars if line != ASCII.legend]


def test_a_counter_that_is_no_number_is_told_with_what_to_do(valkey):
    key = counter_key("budget", Window.DAY, instant_of(valkey_now(valkey)))
    valkey.set(key, "many", ex=1000)

    lines = table(
        read(valkey, CapsInForce(spending=Spending(caps=Caps(day=25)), limits=NO_LIMITS)),
        columns=80,
        ink=ASCII,
    )

    assert told(lines)[4] == "  day       ?   25     ?        unreadable  DATE"
    assert lines[-1].startswith(f"{key} holds no whole number: what it bounds cannot start. Deleting it")


def test_the_data_say_the_same(spent):
    data = as_data(read(spent, CAPS))

    assert list(data) == ["asOf", "windows", "tokens", "scopes"]
    day, _, month = data["windows"]
    at = f"{instant_of(data['asOf']):%Y-%m-%d}"
    turns_at = day.pop("turnsAt")
    assert day == {
        "window": "day",
        "reserved": 12,
        "cap": 25,
        "remaining": 13,
        "holdAbove": 20,
        "state": "ok",
        "key": f"budget:{at}",
    }
    assert valkey_now(spent) - 60_000 < data["asOf"] <= valkey_now(spent)
    assert instant_of(turns_at) == window_end(Window.DAY, instant_of(data["asOf"]))
    assert (month["state"], month["reserved"], month["cap"], month["remaining"]) == (
        "not-limited",
        *[None] * 3,
    )
    assert {name: data["tokens"][name] for name in ("recorded", "cap", "remaining", "state")} == {
        "recorded": 812_345,
        "cap": 1_000_000,
        "remaining": 187_655,
        "state": "ok",
    }
    assert [(row["scope"], [one["state"] for one in row["windows"]]) for row in data["scopes"]] == [
        (FOLDER, ["full", "not-limited", "ok"]),
        ("acme/\x1b[2J", ["not-limited"] * 3),
    ]


@given(
    st.integers(0, 60), st.integers(0, 50), st.none() | st.integers(0, 49), st.integers(8, 40), st.booleans()
)
def test_a_bar_keeps_its_width_and_never_says_full_or_empty_too_soon(used, cap, hold, cells, is_blocks):
    ink = BLOCKS if is_blocks else ASCII
    hold = None if hold is None or hold >= cap else hold
    use = WindowUse(
        window=Window.DAY,
        key="budget:x",
        turns_at=instant_of(0),
        standing=Standing.OK,
        used=used,
        cap=cap,
        hold_above=hold,
    )

    drawn = bar(use, cells, ink)

    free = cap if hold is None else hold
    assert len(drawn) == cells
    assert (set(drawn) <= {ink.counted, ink.counted_held}) is (used >= cap)
    assert (ink.counted in drawn or ink.counted_held in drawn) is (used > 0 or cap == 0)
    assert (ink.free in drawn) is (used < free)
    assert (ink.free_held in drawn or ink.counted_held in drawn) is (hold is not None)


def test_block_characters_are_for_outputs_that_can_print_them():
    assert [ink_for(encoding) for encoding in ("utf-8", "ascii", "latin-1", "no such one")] == [
        BLOCKS,
        *[ASCII] * 3,
    ]


BAD_FILES = (
    r"(?s)settings\.json: dailyCap .*settings\.json: softHoldPct .*limits\.json: limits\[0\]\.day is 0;"
)
REFUSED = {
    "both files wrong": Case(words=["budget"], code=2, says=BAD_FILES),
    "no limits file": Case(
        words=["budget", "--json"],
        changes={"PI_SCOPED_LIMITS_FILE": "/nothing.json", "PI_SETTINGS_FILE": "/nothing.json"},
        code=2,
        says=r"^/nothing\.json: does not exist",
    ),
    "wrong variable": Case(
        words=["budget"], changes={"PI_WEEKLY_CAP": "0"}, code=2, says="^PI_WEEKLY_CAP is"
    ),
    "nobody there": Case(
        words=["budget"],
        changes={"PI_SCOPED_LIMITS_FILE": None, "PI_SETTINGS_FILE": "/nothing.json"},
        code=1,
        says=f"^Valkey at {NOBODY} does not answer",
    ),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    console = Console(tmp_path_factory.mktemp("budget"))
    limits = console.home / "limits.json"
    limits.write_text('{"version": 1, "limits": [{"scope": "acme/web", "day": 0}]}')
    (console.state / "settings.json").write_text('{"dailyCap": 0, "softHoldPct": 100}')
    console.variables = {"PI_SCOPED_LIMITS_FILE": str(limits)}
    return run_all(console, REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_what_keeps_it_from_being_shown_is_said_in_words(refusals, name):
    said, case = refusals[name], REFUSED[name]

    assert (said.code, said.out) == (case.code, ""), said
    assert re.search(case.says, said.err), said.err
    assert said.is_plain


@pytest.fixture
def console(tmp_path, spent, valkey_url):
    console = Console(tmp_path / "home", valkey_url, VARIABLES)
    rows = [{"scope": f"{FOLDER}/", "day": 5}]
    (console.home / "limits.json").write_text(json.dumps({"version": 1, "limits": rows}))
    (console.state / "settings.json").write_text('{"weeklyCap": 100}')
    console.variables = {**VARIABLES, "PI_SCOPED_LIMITS_FILE": str(console.home / "limits.json")}
    return console


def test_overlay_and_limits_count_and_any_output_can_be_written_to(console):
    said = run_all(
        console,
        {
            "json": Case(words=["budget", "--json"], code=0, says=""),
            "ascii": Case(words=["budget"], code=0, says="", changes={"PYTHONIOENCODING": "ascii"}),
        },
    )

    assert {one.code for one in said.values()} == {0}, said
    assert {one.err for one in said.values()} == {f"Valkey: {console.url}\n"}
    assert said["json"].out.count("\n") == 1
    data = json.loads(said["json"].out)
    assert [one["cap"] for one in data["windows"]] == [25, 100, None]
    assert [row["scope"] for row in data["scopes"]] == [FOLDER]
    assert "/srv/gr\\xf6\\xdfe\n  day          5          5        0        full" in said["ascii"].out


def test_on_a_terminal_there_are_bars(console):
    ours, theirs = pty.openpty()
    environment = console.environment({"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"})
    done = subprocess.run(
        [*MANAGE, "budget"],
        env=environment,
        cwd=console.home,
        stdout=theirs,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)

    assert done.returncode == 0, done.stderr
    assert BLOCKS.counted * 13 + BLOCKS.counted_held + BLOCKS.free_held * 3 in shown
