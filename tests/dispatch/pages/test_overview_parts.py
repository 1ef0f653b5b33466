"""What the overview is made of, without a server: sentences, bars, findings, the doctor's rounds and veil."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.console.budget import Budget
from dispatch.console.findings import Area
from dispatch.console.fleet_facts import Pause
from dispatch.console.fleet_findings import warnings
from dispatch.console.instants import stamp
from dispatch.console.schedule_facts import Line, Overview
from dispatch.console.schedules_page import listed
from dispatch.console.triggers_file import TriggersFile
from dispatch.money.reading import BudgetUse, Standing, WindowUse
from dispatch.money.windows import Window
from dispatch.pages import insights_asked, overview_history
from dispatch.pages.doctor_rounds import SECONDS_APART, Looked, Rounds
from dispatch.pages.overview_budget import bars, scope_notes, unlimited
from dispatch.pages.overview_cards import fleet_cards
from dispatch.pages.overview_findings import concerns, missed
from dispatch.pages.switch_state import state_of
from dispatch.pages.veil import HIDDEN, veiled
from hosts.rows import Unreachable
from runs import history, list_address, rows
from runs.outcome import Outcome
from runs.workspace.scope import hash16
from tests.dispatch.fleetkit import NOW, fleet, known, queue, row
from tests.harness.records import a_record

PAUSE = Pause(by="carol", reason="deploy", since_ms=NOW)
NAMED = {
    "HOME": "/root",
    "PI_TRIGGERS_FILE": "/root/hidden/t.json",
    "PI_STATE_DIR": "state/dir",
    "PI_X": "a/b",
}


@pytest.mark.parametrize(
    ("facts", "tone", "said"),
    [
        (fleet(row("a")), "good", "No queue is paused"),
        (
            fleet(row("a"), pause=PAUSE),
            "bad",
            "no job starts. Paused by carol since 2027-01-15",
        ),
        (fleet(row("a"), pause=replace(PAUSE, until_ms=NOW)), "bad", f"until {stamp(NOW)}: deploy"),
        (
            fleet(queue("pi-jobs", pause=PAUSE)),
            "bad",
            "each by itself. The fleet as a whole is not: a queue that appears later takes jobs. Paused",
        ),
        (
            fleet(row("a"), queue("pi-jobs@a", pause=PAUSE)),
            "warn",
            "1 of 2 queues is paused: pi-jobs@a. Not paused: pi-jobs. Paused",
        ),
        (
            fleet(row("b"), *(queue(f"pi-jobs@{host}", pause=Pause(by=host)) for host in "ac")),
            "warn",
            "pi-jobs@c. Not paused: 2 queues: pi-jobs, pi-jobs@b. pi-jobs@a: Paused by a",
        ),
        (fleet(roster=Unreachable("wrong-type")), "warn", "cannot be read (wrong-type)"),
        (fleet(queue("pi-jobs", age_ms=50_000)), "warn", "no job starts: no worker is there."),
        (fleet(row("a", draining=True)), "warn", "no job starts: every host that is there is drained."),
        (fleet(row("a", draining=True), row("b")), "good", "jobs start"),
    ],
)
def test_the_switch_is_said_in_words(facts, tone, said):
    state = state_of(facts)
    assert (state.tone, state.is_quiet) == (tone, tone == "good")
    assert said in f"{state.head} {state.about}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/a/b.json: line 3", f"{HIDDEN}: line 3"),
        ("the file '/srv/a' and ~/x, /y.", f"the file '{HIDDEN}' and {HIDDEN}, {HIDDEN}"),
        ("/root/hidden/t.json loads", "$PI_TRIGGERS_FILE loads"),
        ("/root/other/deep loads", "$HOME loads"),
        ("state/dir is open", "$PI_STATE_DIR is open"),
        ("unix:///tmp/x.sock does not", f"unix://{HIDDEN} does not"),
        ("redis://127.0.0.1:6379/0 is away", "redis://127.0.0.1:6379/0 is away"),
        ("1 / 2 and/or a/b", "1 / 2 and/or a/b"),
    ],
)
def test_a_path_is_veiled_and_nothing_else(text, shown):
    assert veiled(text, NAMED) == shown
    assert veiled(shown, NAMED) == shown


@given(
    st.text(max_size=20),
    st.text("abc-/.", min_size=1, max_size=12),
    st.sampled_from([" ", "'", "(", ":", "=", " /"]),
)
def test_no_absolute_path_comes_through(before, path, apart):
    assert "/sentinel" not in veiled(f"{before}{apart}/sentinel/{path}", NAMED)


def use(standing, used=None, cap=None, hold_above=None):
    turns_at = datetime(2026, 12, 1, tzinfo=UTC)
    return WindowUse(
        window=Window.DAY,
        key="k",
        turns_at=turns_at,
        standing=standing,
        used=used,
        cap=cap,
        hold_above=hold_above,
    )


@pytest.mark.parametrize(
    ("given", "tone", "used", "band"),
    [
        (use(Standing.OK, 5, 20, 16), "good", 25.0, 20.0),
        (use(Standing.HELD, 17, 20, 16), "warn", 85.0, 20.0),
        (use(Standing.FULL, 30, 20), "bad", 100.0, 0.0),
        (use(Standing.FULL, 0, 0), "bad", 100.0, 0.0),
        (use(Standing.NOT_LIMITED), "", None, 0.0),
        (use(Standing.UNREADABLE, None, 20), "bad", None, 0.0),
    ],
)
def test_a_window_is_a_bar_with_its_band(given, tone, used, band):
    spent = BudgetUse(now=given.turns_at, windows=(given,), tokens=given, scopes=((given,),))
    bar, tokens = bars(Budget(use=spent, scopes=("/srv/hidden",)))
    assert (bar.tone, bar.used, bar.held_width) == (tone, used, band)
    assert tokens.name == "Tokens today"
    is_free = given.standing is Standing.NOT_LIMITED
    assert unlimited([bar, tokens]) == (
        "No cap is set: neither container starts nor tokens are limited." if is_free else ""
    )
    assert unlimited([replace(bar, is_limited=True), tokens]) == (
        "Not limited: tokens today." if is_free else ""
    )
    notes = scope_notes(Budget(use=spent, scopes=("/srv/hidden",)))
    assert bool(notes) is (tone in {"warn", "bad"})
    assert all(hash16("/srv/hidden") in note and "hidden" not in note for note in notes)


def test_cards_count_hosts_and_tell_what_no_queue_says():
    facts = fleet(
        row("a", draining=True),
        row("b", age_ms=60_000),
        known("c", age_ms=10**9),
        queue("pi-jobs", waiting=None, held=2),
    )
    told = {card.name: (card.value, card.about, card.tone) for card in fleet_cards(facts)}
    assert told["Hosts alive"] == ("1", "1 drained, 1 late, 1 gone", "warn")
    assert told["Waiting"][0] == "0 + ?"
    assert told["Held"][0] == "2"
    assert told["Running"][:2] == ("0", "4 of 8 slots used")
    paused = fleet(queue("pi-jobs", waiting=3), queue("pi-jobs@a", waiting=2, pause=PAUSE))
    assert fleet_cards(paused)[2].about == "2 of them in paused queues"
    assert fleet_cards(replace(paused, pause=PAUSE))[2].about == "5 of them in paused queues"
    cap = {"cap": 2, "pause-window": 0, "retry": 0}
    asleep = fleet(queue("pi-jobs", deferred=5, put_off=cap), queue("pi-jobs@a"))
    assert fleet_cards(asleep)[3].about == "2 for a cap, 3 for a busy folder or repository"
    untold = fleet(queue("pi-jobs", deferred=5, put_off=cap), queue("pi-jobs@a", deferred=1))
    assert fleet_cards(untold)[3].about == "until a cap, a window or a folder is free"
    stuck = fleet(queue("pi-jobs", waiting=3), queue("pi-jobs@a", waiting=2, age_ms=50_000))
    assert fleet_cards(stuck)[2].about == "2 of them in queues without a worker"
    assert fleet_cards(fleet(roster=Unreachable("wrong-type")))[0].value == "?"


def test_the_days_cards_say_which_hours_they_count_and_lead_to_those(db):
    now = datetime(2026, 11, 30, 12, 34, tzinfo=UTC)
    ends = [timedelta(), timedelta(hours=23, minutes=34), timedelta(hours=23, minutes=35)]
    rows.write(
        [
            a_record(n, job_id=f"local-r{n}", ended_at=now - ago, outcome=Outcome.FAILED)
            for n, ago in enumerate(ends)
        ]
    )

    failed, cost = overview_history.read(now).cards
    asked = list_address.read(dict(parse_qsl(failed.query)), now)

    assert (failed.value, failed.about) == ("2", "of 2 runs since 11-29 13:00 UTC")
    assert [run.job_id for run in history.page(asked.query).runs] == ["local-r0", "local-r1"]
    assert cost.about.endswith("tokens since 11-29 13:00 UTC")
    begun = insights_asked.read(dict(parse_qsl(cost.query)), now).since
    assert begun == now.replace(day=29, hour=13, minute=0)


def test_a_finding_of_both_is_told_once_and_the_graver():
    area = Area("fleet")
    late, twin = area.warning("late", "a is late", "look"), area.warning("twin", "twins", "look")
    doctor = (
        area.warning("late", "a was late", "look"),
        area.failed("twin", "two", "go"),
        area.ok("x", "fine"),
    )

    told = concerns([late, twin], Looked(doctor, 61.0), lambda text: text)

    assert [one.text for one in told.listed] == ["two", "a is late"]
    assert told.doctor == "The doctor looked 1 min 1 s ago: 1 of 3 checks ok."
    assert "for the first time" in concerns([], Looked(), str).doctor


def test_what_the_fleet_does_not_show_any_more_is_not_told_on_the_doctors_word():
    partly = fleet(row("a"), queue("pi-jobs@a", pause=PAUSE))
    doctor = (*warnings(partly), Area("fleet").failed("registry", "no list", "look"))

    def said(now, **known):
        return [one.text for one in concerns(now, Looked(doctor, 61.0), str, **known).listed]

    everything = said(warnings(replace(partly, pause=PAUSE)))

    assert everything == ["no list"]
    assert said(None) == said((), sees_hosts=False) == ["no list", doctor[0].text]


def test_a_torn_down_schedule_is_as_bad_everywhere_and_told_once():
    said = {"pattern": "@daily", "zone": "UTC", "words": "look", "remedy": "Mend it."}
    lines = tuple(Line(id=state, state=state, **said) for state in ("missed", "torn-down"))
    overview = Overview(now_ms=NOW, file=TriggersFile(), lines=lines)
    doctor = (Area("triggers").failed("torn-down", "schedule torn-down: look", "Mend it."),)

    assert [one[:2] for one in missed(overview, str).listed] == [("bad", "torn-down"), ("warn", "missed")]
    shown = listed(overview, "", is_editor=False).rows
    assert [(one.line.id, one.tone) for one in shown] == [("torn-down", "bad"), ("missed", "warn")]
    assert [one.tone for one in concerns((), Looked(doctor, 1.0), str).listed] == ["bad"]
    assert not concerns((), Looked(doctor, 1.0), str, with_schedules=False).listed


def test_what_the_doctor_has_not_seen_is_said():
    assert "for the first time" in concerns([], Looked(), str).doctor
    assert "failed to look 1 min 1 s ago" in concerns([], Looked((), 61.0), str).doctor


def test_the_doctor_looks_once_a_minute_and_nobody_waits():
    now, gate, asked = [100.0], threading.Event(), []

    def examine(environment):
        asked.append(environment)
        assert gate.wait(5)
        return (Area("x").ok("y", f"look {len(asked)}"),)

    rounds = Rounds(examine, clock=lambda: now[0])
    assert rounds.look({"A": "1"}).findings is None
    assert rounds.look({"A": "1"}).findings is None
    gate.set()
    rounds.wait(5)
    now[0] += SECONDS_APART - 1
    looked = rounds.look({"A": "1"})
    assert (looked.findings[0].text, looked.age_s, len(asked)) == ("look 1", SECONDS_APART - 1, 1)
    now[0] += 1
    rounds.look({"A": "1"})
    rounds.wait(5)
    assert rounds.look({"A": "1"}).findings[0].text == "look 2"
    assert rounds.look({"A": "2"}).findings is None
    rounds.wait(5)
