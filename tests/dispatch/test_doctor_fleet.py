"""How a host stands in its fleet, as `doctor` says it; a single healthy host hears nothing."""

from __future__ import annotations

import pytest

from dispatch.console.findings import Mark
from dispatch.doctor import fleet
from dispatch.doctor.fleet import Own
from hosts.identity import StateDirectory, host_id
from hosts.rows import Unreachable
from tests.dispatch.fleetkit import DAY_MS, known, queue, row
from tests.dispatch.fleetkit import fleet as facts_of
from tests.dispatch.fleetkit import host_id as id_of

HERE = Own(name="here", is_declared=True, host_id=id_of("here"))
SINGLE = Own(name="here", is_declared=False, host_id=id_of("here"))
A, US = row("alpha"), row("here")
STOPPED = Own(name="stopped", is_declared=True, host_id="")

TOLD = {
    "one host": (facts_of(row("here", routes=False)), SINGLE, []),
    "one host, its worker down": (facts_of(known("here", age_ms=DAY_MS)), SINGLE, []),
    "two hosts": (facts_of(A, US), HERE, [("hosts", Mark.OK, "2 hosts are live: alpha, here")]),
    "we are not there": (
        facts_of(A),
        HERE,
        [("hosts", Mark.OK, "1 host is live: alpha; here, which is this one, is not")],
    ),
    "nobody is": (facts_of(), HERE, [("hosts", Mark.WARNING, "no host is live")]),
    "peers, and no name, which is told once": (
        facts_of(A, row("here", routes=False)),
        SINGLE,
        [
            ("hosts", Mark.OK, "2 hosts are live: alpha, here"),
            ("name-not-declared", Mark.WARNING, "other hosts (alpha), and this one has no declared name"),
        ],
    ),
    "a peer without a queue of its own": (
        facts_of(row("alpha", routes=False), US),
        HERE,
        [("hosts", Mark.OK, "2 hosts"), ("host-without-queue", Mark.WARNING, "alpha has no queue")],
    ),
    "a name that cannot be used": (
        facts_of(A),
        Own(name=None, is_declared=True),
        [("hosts", Mark.OK, "1 host is live: alpha")],
    ),
    "another machine has our name": (
        facts_of(row("here", host_id=id_of("there"))),
        HERE,
        [
            ("hosts", Mark.OK, "1 host is live: here"),
            ("name-taken", Mark.FAILED, "works under the name here"),
        ],
    ),
    "it had, and is gone": (
        facts_of(row("here", host_id=id_of("there"), age_ms=None)),
        HERE,
        [("hosts", Mark.WARNING, "no host is live"), ("host-late", Mark.WARNING, "no readable beat")],
    ),
    "our state directory never had a worker": (
        facts_of(row("stopped")),
        STOPPED,
        [("hosts", Mark.OK, "1 host"), ("name-taken", Mark.WARNING, "not from this state directory")],
    ),
    "our id cannot be read": (
        facts_of(US),
        Own(name="here", is_declared=True),
        [("hosts", Mark.OK, "1 host")],
    ),
    "another machine beats under our name": (
        facts_of(US, known("here", of="there", age_ms=1000)),
        HERE,
        [("hosts", Mark.OK, "1 host"), ("name-shared", Mark.FAILED, "under the name here")],
    ),
    "two others share a name": (
        facts_of(A, US, known("alpha", of="there", age_ms=1000)),
        HERE,
        [("hosts", Mark.OK, "2 hosts"), ("name-shared", Mark.WARNING, "under the name alpha")],
    ),
    "a copy of our state directory": (
        facts_of(row("alpha", host_id=id_of("here")), US),
        HERE,
        [("hosts", Mark.OK, "2 hosts"), ("state-directory-copied", Mark.FAILED, "as alpha, here")],
    ),
    "stale": (
        facts_of(US, row("bravo", age_ms=60_000)),
        HERE,
        [("hosts", Mark.OK, "1 host is live: here"), ("host-late", Mark.WARNING, "bravo has not beaten")],
    ),
    "jobs of a host that is gone": (
        facts_of(US, queue("pi-jobs@bravo", age_ms=None, waiting=1)),
        SINGLE,
        [("queue-without-host", Mark.WARNING, "1 job waits in pi-jobs@bravo")],
    ),
    "no registry": (
        facts_of(roster=Unreachable("wrong-type")),
        SINGLE,
        [("registry", Mark.FAILED, "no registry is readable (wrong-type)")],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_said_of_the_fleet(name):
    facts, own, expected = TOLD[name]

    found = list(fleet.look(facts, own))

    assert [(one.check, one.mark) for one in found] == [(check, mark) for check, mark, _ in expected]
    assert all(part in one.text for one, (_, _, part) in zip(found, expected, strict=True))


def test_our_own_id_is_read_and_never_made(tmp_path):
    assert fleet.own_host_id(tmp_path / "none") == ""
    assert fleet.own_host_id(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    tmp_path.chmod(0o700)
    assert fleet.own_host_id(tmp_path) == "" != host_id(tmp_path) == fleet.own_host_id(tmp_path)
    StateDirectory(tmp_path).host_id_file.write_bytes(b"\xff")
    assert fleet.own_host_id(tmp_path) is None
