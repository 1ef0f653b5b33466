"""Where each waiting job of a host that is left goes, and why it stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dispatch.console.rerouting import Choice, Plan, Stay, Staying, plan
from dispatch.jobs import Flaw, Malformed
from dispatch.queue.moving import Waiting
from hosts.rows import HostRow
from tests.dispatch.job_samples import LOCAL
from tests.harness.forge_jobs import forge_job

_, FORGE = forge_job("acme/site", "1")
DEPLOY = replace(FORGE, secrets_profile="deploy")
NEWS = replace(LOCAL, wait_for=({"profile": "news"},))
CAPABLE = HostRow(name="beta", stale_ms=0, routes=True, caps=frozenset({"s:deploy", "w:news"}))
TWIN = replace(CAPABLE, name="gamma")
PLAIN = HostRow(name="delta", stale_ms=0, routes=True)
ALL = (CAPABLE, TWIN, PLAIN)
LEAVE = Choice(host="alpha", others=ALL)
SAME = replace(LEAVE, same_folders=True)
SHARED = replace(SAME, only_shared=True)

GOES = {
    "a forge's job without needs": (FORGE, LEAVE, "pi-jobs"),
    "the same, nobody there": (FORGE, replace(LEAVE, others=()), "pi-jobs"),
    "needs, one has it": (DEPLOY, replace(LEAVE, others=(CAPABLE, PLAIN)), "pi-jobs@beta"),
    "needs, all have it": (DEPLOY, replace(LEAVE, others=(CAPABLE, TWIN)), "pi-jobs"),
    "needs, only a drained one has it": (
        DEPLOY,
        replace(LEAVE, others=(replace(CAPABLE, draining=True), PLAIN)),
        "pi-jobs@beta",
    ),
    "a folder that is the same": (LOCAL, SAME, "pi-jobs"),
    "a folder and a need": (NEWS, replace(SAME, others=(PLAIN, TWIN)), "pi-jobs@gamma"),
    "to one": (FORGE, replace(LEAVE, to=PLAIN), "pi-jobs@delta"),
    "to one that has it": (DEPLOY, replace(LEAVE, to=TWIN), "pi-jobs@gamma"),
    "to the shared queue": (FORGE, SHARED, "pi-jobs"),
    "to the shared queue, all have it": (DEPLOY, replace(SHARED, others=(CAPABLE,)), "pi-jobs"),
}


@pytest.mark.parametrize(("job", "choice", "queue"), GOES.values(), ids=GOES)
def test_a_job_goes_where_it_can_be_done(job, choice, queue):
    assert plan([waiting(job)], choice) == Plan(moves={queue: [b"local-1"]})


def waiting(job, number=1, needs=()):
    return Waiting(raw_id=b"local-%d" % number, job_id=f"local-{number}", job=job, needs=frozenset(needs))


DEPLOYS = "it needs s:deploy, and "
STAYS = {
    "a folder": (LOCAL, LEAVE, Stay.FOLDER, "its folder is on alpha; --local-folders says that it is"),
    "a folder, to one": (LOCAL, replace(LEAVE, to=TWIN), Stay.FOLDER, "its folder is on alpha"),
    "nobody there": (DEPLOY, replace(LEAVE, others=()), Stay.NEEDS, f"{DEPLOYS}no other host is alive"),
    "nobody has it": (DEPLOY, replace(LEAVE, others=(PLAIN,)), Stay.NEEDS, f"{DEPLOYS}no live host has that"),
    "only one without a queue has it": (
        DEPLOY,
        replace(LEAVE, others=(replace(CAPABLE, routes=False), PLAIN)),
        Stay.NEEDS,
        f"{DEPLOYS}those that have it have no queue of their own",
    ),
    "to one that lacks it": (
        DEPLOY,
        replace(LEAVE, to=replace(CAPABLE, caps=frozenset({"w:news"}))),
        Stay.NEEDS,
        f"{DEPLOYS}beta does not have that",
    ),
    "to the shared queue, one lacks it": (
        DEPLOY,
        SHARED,
        Stay.NEEDS,
        f"{DEPLOYS}a host without it could take the job from pi-jobs",
    ),
    "unreadable": (Malformed(Flaw.NOT_JSON), SHARED, Stay.UNREADABLE, "what it is to do cannot be read"),
}


@pytest.mark.parametrize(("job", "choice", "reason", "why"), STAYS.values(), ids=STAYS)
def test_a_job_that_nobody_else_can_do_stays_and_why_is_told(job, choice, reason, why):
    found = plan([waiting(job)], choice)

    assert found.moves == {}
    [one] = found.stays
    assert (one.job_id, one.reason) == ("local-1", reason)
    assert one.why.startswith(why)
    assert one.needs == (("s:deploy",) if reason is Stay.NEEDS else ())


def test_of_many_needs_the_missing_ones_are_named():
    job = replace(FORGE, secrets={"T": "x"}, wait_for=({"profile": "b"}, {"profile": "a"}))
    to = replace(PLAIN, caps=frozenset({"w:a"}))

    [one] = plan([waiting(job)], replace(LEAVE, to=to)).stays

    assert one == Staying(
        job_id="local-1",
        reason=Stay.NEEDS,
        why="it needs s:default, w:b, and delta does not have that",
        needs=("s:default", "w:b"),
    )


@pytest.mark.parametrize(
    ("others", "queue", "why"),
    [
        ((PLAIN, CAPABLE), "pi-jobs@beta", None),
        ((CAPABLE, TWIN), "pi-jobs", None),
        ((PLAIN,), None, "it needs s:deploy, w:news, and no live host has that"),
        ((replace(PLAIN, caps=frozenset({"s:deploy"})),), None, "it needs s:deploy, w:news, and no live"),
    ],
)
def test_what_was_asked_for_counts_beside_what_the_job_itself_needs(others, queue, why):
    found = plan([waiting(DEPLOY, needs=["w:news"])], replace(LEAVE, others=others))

    assert list(found.moves) == ([queue] if queue else [])
    assert [one.why.startswith(why) for one in found.stays] == ([True] if why else [])


def test_jobs_keep_their_order_within_each_queue():
    jobs = [FORGE, LOCAL, FORGE, DEPLOY, FORGE, DEPLOY]
    choice = replace(LEAVE, others=(CAPABLE, PLAIN))

    found = plan([waiting(job, number) for number, job in enumerate(jobs)], choice)

    assert found.moves == {
        "pi-jobs": [b"local-0", b"local-2", b"local-4"],
        "pi-jobs@beta": [b"local-3", b"local-5"],
    }
    assert [one.job_id for one in found.stays] == ["local-1"]
