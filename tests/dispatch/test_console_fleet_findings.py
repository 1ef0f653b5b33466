"""What is wrong in a fleet: each rule by itself, what it does not say, and that every line has a fix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.console.findings import Area, Finding, Mark
from dispatch.console.fleet_facts import Pause, StopAsked
from dispatch.console.fleet_findings import CHECKS, warnings
from hosts.rows import Unreachable, UnreadableRow
from tests.dispatch.fleetkit import DAY_MS, NOW, SHARED, fleet, host_id, known, queue, row

A, B, C = row("alpha"), row("bravo"), row("charlie")
PAUSE = Pause(by="me", reason="lunch", since_ms=NOW - 1000)


def stop(host, at_ms=NOW - 240_000, **changes):
    return StopAsked(host=host, at_ms=at_ms, by="ann@desk", reason="fire", **changes)


# name: facts, and what must be said: check, and a part of its line.
TOLD = {
    "late": (fleet(A, row("bravo", age_ms=61_000)), "host-late", "bravo has not beaten for 1 min 1 s"),
    "late, with jobs": (
        fleet(A, row("bravo", age_ms=61_000), queue("pi-jobs@bravo", age_ms=61_000, waiting=1, held=2)),
        "host-late",
        "for 1 min 1 s, and 1 job waits and 2 are held in its queue",
    ),
    "no beat": (fleet(row("alpha", age_ms=None)), "host-late", "alpha has no readable beat"),
    "two of one name": (
        fleet(row("alpha", started_at_ms=NOW - 9_000), B, known("alpha", of="other", age_ms=8_000)),
        "name-shared",
        "two machines work under the name alpha",
    ),
    "a copy under one name": (
        fleet(A, B, known("alpha", age_ms=8_000, other_boot=f"{host_id('alpha')}-0000c0c0")),
        "state-directory-copied",
        "copies of one state directory, as alpha; they",
    ),
    "a copy under another name": (
        fleet(row("alpha", started_at_ms=NOW - 3_000), row("bravo", host_id=host_id("alpha"))),
        "state-directory-copied",
        "as alpha, bravo;",
    ),
    "ahead": (
        fleet(A, row("bravo", skew_ms=300_000)),
        "clock-skew",
        "bravo is 300.0 s ahead of Valkey's",
    ),
    "behind": (fleet(row("alpha", skew_ms=-5_001)), "clock-skew", "alpha is 5.0 s behind Valkey's"),
    "blind": (fleet(row("alpha", blind="engine")), "host-blind", "a moment ago: engine"),
    "cut off": (
        fleet(row("alpha", blind="valkey")),
        "host-was-cut-off",
        "cut off from Valkey for a while until a moment ago; it takes jobs again",
    ),
    "cut off, drained": (
        fleet(row("alpha", blind="valkey", draining=True)),
        "host-was-cut-off",
        "until a moment ago",
    ),
    "no queue of its own beside others": (
        fleet(A, row("bravo", routes=False)),
        "host-without-queue",
        "bravo has no queue of its own: a job typed there goes to pi-jobs",
    ),
    "nobody has a queue of its own": (
        fleet(row("alpha", routes=False), row("bravo", routes=False)),
        "host-without-queue",
        "alpha, bravo have no queue of their own",
    ),
    "nobody takes from the shared queue": (
        fleet(queue(SHARED, age_ms=46_000, waiting=1)),
        "queue-without-worker",
        "1 job waits in pi-jobs, and no worker takes from it",
    ),
    "gone host": (
        fleet(A, known("charlie", age_ms=3 * DAY_MS), queue("pi-jobs@charlie", age_ms=None, deferred=2)),
        "queue-without-host",
        "2 jobs are deferred in pi-jobs@charlie, and charlie has been gone for 3 d",
    ),
    "gone host, drained": (
        fleet(
            *(A, known("charlie", age_ms=DAY_MS), queue("pi-jobs@charlie", age_ms=None, waiting=1)),
            drained=frozenset({"charlie"}),
        ),
        "queue-without-host",
        "charlie has been gone for 1 d, drained",
    ),
    "a host nobody knows": (
        fleet(A, queue("pi-jobs@ghost", age_ms=None, held=1)),
        "queue-without-host",
        "and no host named ghost is there",
    ),
    "a name no longer declared": (
        fleet(row("alpha", routes=False), queue("pi-jobs@alpha", age_ms=None, waiting=1)),
        "queue-without-host",
        "alpha drains no queue of its own",
    ),
    "registry away": (
        fleet(queue("pi-jobs@bravo", age_ms=None, waiting=1), roster=Unreachable("wrong-type")),
        "queue-without-host",
        "1 job waits in pi-jobs@bravo, and no worker takes from it",
    ),
    "drained": (
        fleet(row("alpha", draining=True), queue("pi-jobs@alpha", waiting=5, deferred=2, held=1)),
        "drained-queue-waits",
        "alpha is drained, and 5 jobs wait, 2 are deferred and 1 is held in its queue",
    ),
    "partly paused": (
        fleet(A, B, queue("pi-jobs@bravo", pause=PAUSE)),
        "partly-paused",
        "1 of 3 queues is paused: pi-jobs@bravo",
    ),
    "asked to stop": (
        fleet(A, B, stops=(stop("alpha"), stop("bravo"))),
        "stop-stands",
        "a request to stop stands for alpha, bravo, made 4 min ago by ann@desk: fire",
    ),
    "records": (
        fleet(A, known("charlie", age_ms=1_800_000), pending={host_id("charlie"): 3}),
        "records-pending",
        "3 records wait for charlie, which has been gone for 30 min",
    ),
    "versions": (
        fleet(A, row("bravo", version="0.2.0"), C),
        "versions-differ",
        "versions differ: 0.1.0 on alpha, charlie; 0.2.0 on bravo",
    ),
    "images": (
        fleet(A, row("bravo", image_digest="sha256:00000000000f" + "0" * 52)),
        "images-differ",
        "71ec1b70c8e4 on alpha",
    ),
    "images that begin alike": (
        fleet(A, row("bravo", image_digest=A.image_digest[:-1] + "b")),
        "images-differ",
        "71ec1b70c8e4 on alpha; 71ec1b70c8e4 on bravo",
    ),
    "zones": (fleet(A, row("bravo", tz="UTC")), "zones-differ", "Europe/Berlin on alpha; UTC on bravo"),
    "cron": (
        fleet(row("alpha", fp_cron="1a"), row("bravo", fp_cron="2b"), C),
        "cron-differs",
        "differ between alpha / bravo",
    ),
    "windows": (
        fleet(row("alpha", fp_pause="1a"), row("bravo", fp_pause="1a"), row("charlie", fp_pause="2b")),
        "pause-windows-differ",
        "pause windows differ between alpha, bravo / charlie",
    ),
    "limits that a host does not have": (
        fleet(row("alpha", fp_limits="1a"), B),
        "scoped-limits-differ",
        "scoped limits differ between bravo (no file) / alpha",
    ),
    "settings": (
        fleet(row("alpha", fp_settings="1"), row("bravo", fp_settings="2")),
        "settings-differ",
        "alpha / bravo",
    ),
    "caps, one abstains": (
        fleet(row("alpha", fp_spending="1a"), row("bravo", fp_spending="2b"), C),
        "spending-caps-differ",
        "spending caps differ between alpha / bravo",
    ),
    "unreadable": (
        fleet(A, unreadable=(UnreadableRow(shown="x:y", why="is no worker name"),)),
        "registry-unreadable",
        "an entry of the registry cannot be read: x:y is no worker name",
    ),
    "many unreadable": (
        fleet(A, unreadable=tuple(UnreadableRow(shown=f"{n}:", why="no") for n in range(9))),
        "registry-unreadable",
        "9 entries of the registry cannot be read: 0: no; 1: no; 2: no; 3: no …",
    ),
}

SILENT = {
    "one host": fleet(A),
    "one host without a queue of its own": fleet(row("alpha", routes=False)),
    "hosts that are alike": fleet(A, B, C),
    "nobody": fleet(),
    "the predecessor of a name": fleet(
        row("alpha", started_at_ms=NOW - 9_000), known("alpha", of="other", age_ms=9_001)
    ),
    "another host of that name, long gone": fleet(A, known("alpha", of="other", age_ms=46_000)),
    "a copy that was": fleet(A, known("alpha", age_ms=46_000, other_boot=f"{host_id('alpha')}-0000c0c0")),
    "a host that was renamed": fleet(
        row("alpha", started_at_ms=NOW - 3_000), row("bravo", host_id=host_id("alpha"), age_ms=3_001)
    ),
    "a clock a little wrong": fleet(row("alpha", skew_ms=5_000), row("bravo", skew_ms=-5_000)),
    "a host gone, its queue empty": fleet(
        A, known("charlie", age_ms=DAY_MS), queue("pi-jobs@charlie", age_ms=None)
    ),
    "jobs that are taken from": fleet(A, queue("pi-jobs@alpha", waiting=9), queue(SHARED, waiting=9)),
    "a registry that forgot a host whose worker takes": fleet(A, queue("pi-jobs@bravo", waiting=3)),
    "jobs that run on while nobody takes": fleet(A, queue(SHARED, age_ms=None, active=2)),
    "all paused, one by one": fleet(A, queue(SHARED, pause=PAUSE), queue("pi-jobs@alpha", pause=PAUSE)),
    "the fleet paused, and a queue": fleet(A, B, queue(SHARED, pause=PAUSE), pause=PAUSE),
    "drained and empty": fleet(row("alpha", draining=True)),
    "a host that does not say": fleet(A, row("bravo", version="", image_digest="", tz="")),
    "caps that are alike": fleet(row("alpha", fp_spending="1a"), row("bravo", fp_spending="1a"), C),
    "gone and drained, nothing waits": fleet(
        A, known("charlie", age_ms=DAY_MS), drained=frozenset({"charlie"})
    ),
    "cron, one abstains": fleet(row("alpha", fp_cron="1a"), B),
    "records of a host that is there": fleet(A, known("alpha", age_ms=3000), pending={host_id("alpha"): 3}),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_rule_says_what_is_wrong_and_what_to_do(name):
    facts, check, part = TOLD[name]

    (found,) = warnings(facts)

    assert (found.check, found.mark) == (check, Mark.WARNING)
    assert part in found.text
    assert found.fix


def test_what_is_not_found_is_known_by_its_name():
    assert {check for _, check, _ in TOLD.values()} == CHECKS


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_where_nothing_is_wrong(name):
    assert warnings(SILENT[name]) == ()


def test_where_jobs_are_stuck_the_fix_names_the_command():
    stuck = fleet(
        row("late", age_ms=61_000),
        queue("pi-jobs@late", age_ms=61_000, waiting=1),
        row("tired", draining=True),
        queue("pi-jobs@tired", waiting=1),
        queue("pi-jobs@ghost", age_ms=None, waiting=1),
    )

    fixes = {finding.hosts[0]: finding.fix for finding in warnings(stuck)}

    assert set(fixes) == {"late", "tired", "ghost"}
    assert all(f"`manage.py reroute {host}`" in fix for host, fix in fixes.items())
    assert all("a job on a folder only if you say" in fix for fix in fixes.values())


def test_a_queue_that_is_paused_by_itself_is_resumed_by_its_name():
    (one,) = warnings(TOLD["partly paused"][0])
    (two,) = warnings(fleet(A, B, *(queue(f"pi-jobs@{name}", pause=PAUSE) for name in ("alpha", "bravo"))))

    assert "`manage.py resume pi-jobs@bravo` ends" in one.fix
    assert "2 of 3 queues are paused" in two.text
    assert "`manage.py resume QUEUE` ends" in two.fix


def test_of_a_host_that_is_blind_to_its_engine_both_are_told_and_no_more_jobs_promised():
    blind, cut_off = warnings(fleet(row("alpha", blind="engine,valkey")))

    assert (blind.check, blind.text.endswith(": engine")) == ("host-blind", True)
    assert (cut_off.check, "takes jobs" in cut_off.text) == ("host-was-cut-off", False)


def test_a_drained_host_that_is_gone_must_be_undrained_too():
    (told,) = warnings(TOLD["gone host, drained"][0])
    assert "PI_WORKER_NAME=charlie, and `manage.py undrain charlie`, or" in told.fix
    (told,) = warnings(TOLD["gone host"][0])
    assert "undrain" not in told.fix


def test_a_large_fleet_makes_no_long_lines():
    facts = fleet(*(row(f"host-{n:03d}", version=f"0.{n % 9}.0", tz="x" * 4096) for n in range(500)))

    lines = {finding.check: finding for finding in warnings(facts)}

    assert len(lines["versions-differ"].text) < 400
    assert lines["versions-differ"].text.endswith(" and 50 more; 5 more besides")
    assert len(lines["versions-differ"].hosts) == 500


TEXT = st.text(max_size=20)
ROWS = st.builds(
    row,
    st.sampled_from(["alpha", "bravo", "charlie"]),
    age_ms=st.none() | st.integers(0, 10**15),
    skew_ms=st.integers(-(10**15), 10**15),
    version=TEXT,
    tz=TEXT,
    blind=TEXT,
    fp_pause=TEXT,
    draining=st.booleans(),
    routes=st.booleans(),
)
QUEUES = st.builds(
    queue,
    st.sampled_from([SHARED, "pi-jobs@alpha", "pi-jobs@ghost"]),
    age_ms=st.none() | st.integers(-(10**15), 10**15),
    waiting=st.none() | st.integers(0, 10**9),
    held=st.none() | st.integers(0, 10**9),
    pause=st.none() | st.builds(Pause, by=TEXT, reason=TEXT),
)


@given(st.lists(ROWS, max_size=3, unique_by=lambda one: one.name), st.lists(QUEUES, max_size=3))
def test_whatever_peers_wrote_is_told_and_raises_nothing(rows, queues):
    for finding in warnings(fleet(*rows, *queues)):
        assert finding.fix
        assert len(finding.text) < 1000


def test_a_finding_without_a_fix_is_refused():
    with pytest.raises(ValueError, match="names no fix"):
        Finding(area="fleet", check="x", mark=Mark.WARNING, text="y")
    assert Area("fleet").ok("x", "y").fix == ""
