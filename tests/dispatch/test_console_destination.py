"""Where `run` puts a job, and what it says of that: every answer of the registry, told to a person."""

from __future__ import annotations

import pytest

from dispatch.console.destination import Here, chosen, here, misnamed, unasked
from hosts.names import SHARED_QUEUE, host_queue
from hosts.rows import LATE_MS, HostRow, Roster, Unreachable
from pidispatch_site import conf
from pidispatch_site.errors import OperationalError

NEEDS = frozenset({"s:prod", "w:lint"})
ELSEWHERE = "; the folder must be the same one there, at the same place."


def host(name, *caps, stale_ms=0, routes=True, draining=False):
    return HostRow(name=name, caps=frozenset(caps), stale_ms=stale_ms, routes=routes, draining=draining)


def this(*caps, named=True):
    return Here(name="here", queue=host_queue("here") if named else SHARED_QUEUE, caps=frozenset(caps))


BARE, FULL = this(), this(*NEEDS)
IDLE = host("idle")
THERE = host("there", *NEEDS)


@pytest.mark.parametrize(
    ("rows", "where", "queue", "note"),
    [
        pytest.param(
            [IDLE, THERE],
            BARE,
            "pi-jobs@there",
            f"The job goes to pi-jobs@there: host there has s:prod, w:lint{ELSEWHERE}",
            id="another host",
        ),
        pytest.param(
            [IDLE, host("here", *NEEDS)],
            BARE,
            "pi-jobs@here",
            "The job goes to pi-jobs@here: this host has s:prod, w:lint.",
            id="this one, whose worker knows better than the settings here",
        ),
        pytest.param(
            [IDLE, host("there", *NEEDS, draining=True)],
            BARE,
            "pi-jobs@there",
            f"The job goes to pi-jobs@there: host there has s:prod, w:lint{ELSEWHERE[:-1]};"
            " it takes nothing until `manage.py undrain there`.",
            id="one that drains",
        ),
        pytest.param(
            [host("here", *NEEDS), THERE],
            FULL,
            "pi-jobs@here",
            "The job goes to pi-jobs@here: this host has s:prod, w:lint.",
            id="this one and all others",
        ),
        pytest.param(
            [host("here", *NEEDS)],
            FULL,
            "pi-jobs@here",
            "The job goes to pi-jobs@here: this host has s:prod, w:lint.",
            id="nobody else lives",
        ),
        pytest.param(
            [IDLE, host("there", *NEEDS, routes=False)],
            BARE,
            "pi-jobs",
            "The job goes to the shared queue pi-jobs: who has s:prod, w:lint (there) has no queue of their"
            f" own, so another host may take the job{ELSEWHERE}",
            id="no queue of its own",
        ),
        pytest.param(
            [IDLE, host("here", *NEEDS, stale_ms=LATE_MS + 1)],
            FULL,
            "pi-jobs@here",
            "No live host has s:prod, w:lint. This host's settings have s:prod, w:lint: the job goes to"
            " pi-jobs@here and waits for its worker.",
            id="this one, late",
        ),
        pytest.param(
            [],
            this(*NEEDS, named=False),
            "pi-jobs",
            "No live host has s:prod, w:lint. This host's settings have s:prod, w:lint:"
            " the job goes to pi-jobs and waits for its worker.",
            id="a single host without a worker",
        ),
        pytest.param(
            None,
            FULL,
            "pi-jobs@here",
            "The registry of hosts cannot be read (timeout). This host's settings have s:prod, w:lint:"
            " the job goes to pi-jobs@here and waits for its worker.",
            id="nobody knows but this host has it",
        ),
    ],
)
def test_a_job_goes_where_what_it_needs_is(rows, where, queue, note):
    found = chosen(roster_of(rows), where, NEEDS, "local-1")

    assert (found.queue, found.note) == (queue, note)


@pytest.mark.parametrize(
    ("rows", "where", "says"),
    [
        pytest.param(
            [host("a"), host("b", "s:prod"), host("old", *NEEDS, stale_ms=61_000)],
            BARE,
            "No live host has s:prod, w:lint; nothing was enqueued.\n"
            "Live hosts: b has s:prod; a has nothing.\n"
            "old has it and was last heard 1 min 1 s ago.\n"
            "A host has what PI_SECRET_PROFILES (s:) and PI_WAIT_PROFILES (w:) named when its worker"
            " started.\n"
            "Without --needs the job would go to pi-jobs@here.",
            id="nobody has all of it",
        ),
        pytest.param([], BARE, "Live hosts: none.", id="nobody lives"),
        pytest.param(
            [host("here")], FULL, "Live hosts: here has nothing.", id="a worker without the settings"
        ),
        pytest.param(
            [IDLE], this(*NEEDS, named=False), "Live hosts: idle has nothing.", id="others would take it"
        ),
        pytest.param([host(f"h{n}") for n in range(10)], BARE, "h7 has nothing; 2 more.", id="many"),
        pytest.param(
            None,
            BARE,
            "The registry of hosts cannot be read (timeout); nothing was enqueued.\nTry again.\n",
            id="nobody knows",
        ),
    ],
)
def test_a_job_whose_need_nobody_is_known_to_meet_is_refused(rows, where, says):
    with pytest.raises(OperationalError) as error:
        chosen(roster_of(rows), where, NEEDS, "local-1")

    assert says in str(error.value)


def roster_of(rows):
    hosts = tuple(sorted(rows, key=lambda row: row.name)) if rows is not None else ()
    return Unreachable("timeout") if rows is None else Roster(now_ms=1, hosts=hosts)


@pytest.mark.parametrize(
    ("rows", "where", "others"),
    [
        pytest.param(
            [IDLE, host("here"), host("tired", draining=True)], False, "idle, tired (drained)", id="others"
        ),
        pytest.param([IDLE], True, None, id="a queue of its own"),
        pytest.param([host("here"), host("old", stale_ms=LATE_MS + 1)], False, None, id="nobody else lives"),
        pytest.param(None, False, None, id="nobody knows"),
    ],
)
def test_who_else_may_take_a_job_from_the_shared_queue_is_told(rows, where, others):
    found = unasked(roster_of(rows), this(named=where))

    assert found.queue == ("pi-jobs@here" if where else "pi-jobs")
    assert found.note == (
        others
        and f"The job goes to the shared queue pi-jobs, and other hosts take from it too: {others}"
        f"{ELSEWHERE[:-1]}; with PI_WORKER_NAME set, for its worker and for this command, this host has a"
        " queue of its own."
    )


def test_what_is_no_capability_is_named_with_what_is():
    problems = misnamed(["prod", "s:prod", "w:", "S:x", "w:a b\x1b"])

    assert [problem.split(" is ")[0] for problem in problems] == [
        "--needs 'prod'",
        "--needs 'w:'",
        "--needs 'S:x'",
        r"--needs 'w:a b\x1b'",
    ]
    assert "allowed is s:NAME (a secret profile) or w:NAME (a wait profile)" in problems[0]


@pytest.mark.parametrize(
    ("variables", "queue"),
    [
        ({"PI_WORKER_NAME": "box-1", "VALKEY_URL": "redis://there"}, "pi-jobs@box-1"),
        ({"VALKEY_URL": "redis://there"}, "pi-jobs"),
    ],
)
def test_a_host_with_a_declared_name_has_a_queue_of_its_own(variables, queue):
    config = conf.load({"HOME": "/h", "PI_EGRESS": "0", "PI_WAIT_PROFILES": "lint:/opt/l", **variables})

    assert (here(config).queue, here(config).caps) == (queue, {"w:lint"})
