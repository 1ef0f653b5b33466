"""`manage.py queue` as a process: every section, its totals, in a hundred columns, nothing secret."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from dispatch.console import queue_shown
from dispatch.console.lookup import QueueView
from dispatch.console.obstacles import QueueFacts
from dispatch.jobs import local_job
from dispatch.queue.entries import Entry
from dispatch.queue.listing import Listing, Section
from dispatch.queue.states import State
from hosts import switches
from tests.dispatch.consolekit import Console
from tests.dispatch.queuekit import QUEUE, Host, everything
from tests.dispatch.test_command_switch import EVERYTHING_BROKEN

SECRET = "canary"
THERE = "pi-jobs@there"
NOW = 1_000_000_000_000


@pytest.fixture
def console(tmp_path, valkey_url):
    return Console(tmp_path / "home", valkey_url)


def test_an_empty_queue_says_so_and_a_name_never_heard_of_is_asked_about(console, valkey):
    said = console.run("queue", QUEUE, THERE)

    assert said.code == 0
    assert said.out.splitlines() == [
        "pi-jobs is empty: nothing runs, waits or sleeps.",
        "No worker is there to take jobs from pi-jobs; start one with `manage.py runworker`.",
        "pi-jobs@there is empty: nothing runs, waits or sleeps.",
        "The worker there, which alone takes jobs from pi-jobs@there, is not there; start it there with",
        "`manage.py runworker`, or have others do its jobs: `manage.py reroute there`.",
    ]
    assert f"{THERE} was never used here: is the name right?" in said.err


def test_every_section_is_listed_with_everything_else_broken(console, valkey):
    host = Host(valkey)
    host.beats.register()
    job = local_job(f"/srv/{SECRET}", task=f"say {SECRET}")
    for number in range(8):
        host.producer.enqueue(QUEUE, f"local-{number}", job, scope_hash="abcd")
    host.start()
    host.claim()
    for reason in ("pause-window", "cap", "wait"):
        claimed = host.claim()
        host.steps.put_off(claimed, until_ms=claimed.now_ms + 600_000, reason=reason, scope_hash=None)
    switches.pause(valkey, [QUEUE], by="me", reason="lunch")
    before = everything(valkey)

    said = console.run("queue", "--limit", "1", **EVERYTHING_BROKEN)
    data = console.run("queue", "--json", **EVERYTHING_BROKEN)

    assert (said.code, data.code) == (0, 0), (said, data)
    assert [re.sub(r" +", " ", re.sub(r"\d+ s ago", "? ago", line)) for line in said.out.splitlines()] == [
        "pi-jobs: 2 running, 3 waiting, 2 deferred, 1 held",
        "The queue pi-jobs is paused by me: lunch; `manage.py resume pi-jobs` ends that.",
        " JOB SINCE REASON UNTIL PLACE",
        "running (2)",
        " local-0 ? ago running - alpha",
        " and 1 more",
        "waiting (3)",
        " local-5 ? ago queue-paused - #1",
        " and 2 more",
        "deferred (2)",
        f" local-2 ? ago pause-window {in_minutes(said.out, 'local-2')} -",
        " and 1 more",
        "held (1)",
        f" local-4 ? ago wait {in_minutes(said.out, 'local-4')} -",
    ]
    (queue,) = json.loads(data.out)["queues"]
    assert queue["blocked"]["reason"] == "queue-paused"
    assert {name: queue[name]["total"] for name in ("running", "waiting", "deferred", "held")} == {
        "running": 2,
        "waiting": 3,
        "deferred": 2,
        "held": 1,
    }
    assert [(job["job"], job["position"]) for job in queue["waiting"]["jobs"]] == [
        ("local-5", 1),
        ("local-6", 2),
        ("local-7", 3),
    ]
    assert SECRET not in said.out + said.err + data.out + data.err
    assert everything(valkey) == before


def in_minutes(out, job):
    found = re.search(rf"{job} .* (in (?:10 min|9 min \d+ s)) ", out)
    assert found, out
    return found[1]


def a_view(*entries):
    empty = Section(total=0, entries=())
    waiting = Section(total=len(entries) + 5, entries=entries)
    listing = Listing(
        queue=QUEUE, now_ms=NOW, beats={}, running=empty, waiting=empty, deferred=waiting, held=empty
    )
    return QueueView(listing=listing, facts=QueueFacts(queue=QUEUE, now_ms=NOW, beats={"a": NOW}))


ENTRY = Entry(
    job_id="local-0123456789abcdef",
    queue=QUEUE,
    state=State.SCHEDULED,
    reason="scope-busy-fleet",
    since_ms=NOW - 86_400_000 * 1000 - 82_800_000,
    until_ms=NOW + 86_400_000 * 1000 + 82_800_000,
)


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([ENTRY], id="usual"),
        pytest.param([ENTRY, replace(ENTRY, job_id="repeat:" + "x" * 50 + ":1")], id="a long id"),
        pytest.param([replace(ENTRY, host="h" * 64)], id="a long host"),
        pytest.param([replace(ENTRY, reason="r" * 200)], id="a long reason"),
        pytest.param([replace(ENTRY, reason="cap", cause="c" * 200)], id="a long cause"),
        pytest.param(
            [replace(ENTRY, job_id="x\x1b[2J\n", reason="\x07", host="\u2028")], id="control characters"
        ),
    ],
)
def test_the_list_fits_a_hundred_columns_and_every_id_is_whole(entries):
    lines = queue_shown.lines([a_view(*entries)])

    assert max(map(len, lines)) <= 100
    assert all(line.isprintable() for line in lines)
    for entry in entries:
        if entry.job_id.isprintable():
            assert any(entry.job_id in line.split() for line in lines)
    assert sum("in 1000 d 23 h" in line for line in lines) == len(entries)
    assert lines[-1] == "  and 5 more"


@pytest.mark.parametrize(
    ("reason", "cause", "shown", "until"),
    [
        pytest.param("cap", "daily-token-cap:day", "daily-token-cap:day", "in 22 h 13 min", id="a cap"),
        pytest.param("cap", None, "cap", "in 1 min", id="a cap of which nothing more is known"),
        pytest.param("retry", "scope-cap:day", "retry", "in 1 min", id="what is no cap"),
    ],
)
def test_a_parked_job_is_listed_with_the_cap_that_holds_it_up(reason, cause, shown, until):
    """It looks again every few minutes, but its window turns later: that is told."""
    view = a_view(replace(ENTRY, reason=reason, cause=cause, since_ms=NOW, until_ms=NOW + 60_000))

    (row,) = [line for line in queue_shown.lines([view]) if ENTRY.job_id in line]
    ((data,),) = [one["deferred"]["jobs"] for one in queue_shown.as_data([view])["queues"]]

    assert row.split() == [ENTRY.job_id, *("0", "s", "ago"), shown, *until.split(), "-"]
    assert (data["reason"], data["cause"]) == (reason, cause)
