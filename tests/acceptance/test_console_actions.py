"""What operators do, in a real browser beside real workers on two hosts; admins do all of it, too.

One stage and one browser for all of it, and the last test says what nobody has done: it goes with the others.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dispatch.console.cancelling import cancel
from dispatch.console.counts import number_of
from dispatch.instants import epoch_ms
from dispatch.schedules.table import Table
from hosts import switches
from runs.workspace.scope import hash16
from tests.harness import console_kinds
from tests.harness.by_words import control
from tests.harness.console_stage import HOSTS, RUNNING
from tests.harness.manage import answered, manage

pytestmark = pytest.mark.chromium
JUDGED_ELSEWHERE = console_kinds.CRAWLED

ROLES = ("operator", "admin")
#: More than a page of the log, and what each was about.
_LINES = """
from django.contrib.auth.models import User
from dispatch.pages.audit import record_command
admin = User.objects.get(username="admin")
for number in range(1, 61):
    record_command(admin, "pause", f"line {number}", command="manage.py pause")
"""
_TARGETS = ".log-actions td[data-label=Target]"
by_both = pytest.mark.parametrize("who", ROLES)


@by_both
def test_somebody_pauses_and_resumes_the_fleet_and_one_queue(stage, who):
    stage.enter(who)
    stage.goes("switch/")
    stage.follows("Pause everything…")
    stage.says("No job starts on any host", f"{RUNNING} active")
    stage.fills(Reason="a release", Ends_by_itself_after="90m")
    stage.follows("Pause the whole fleet")
    stage.says("Paused the whole fleet", f"by {who} (console)", "a release")

    status = answered(stage.web.environment, "status")
    assert status["pausedState"]
    assert (status["pause"]["by"], status["pause"]["reason"]) == (f"{who} (console)", "a release")
    assert status["pause"]["until"] - status["pause"]["since"] == 90 * 60_000
    stage.logs(who, "pause", "the whole fleet", "a release")

    stage.goes("switch/")
    stage.follows("Resume everything…")
    stage.fills(Reason="released")
    stage.follows("Resume everything")
    stage.says("Resumed the whole fleet", "No queue is paused: jobs start.")
    assert not stage.status()["pausedState"]
    stage.logs(who, "resume", "the whole fleet", "released")

    stage.goes("fleet/host/beta/")
    stage.follows("Pause its queue")
    stage.fills(Reason="a disk")
    stage.follows("Pause pi-jobs@beta")
    stage.says("1 of 3 queues is paused: pi-jobs@beta.")
    assert stage.status()["pausedQueues"] == ["pi-jobs@beta"]
    stage.logs(who, "pause", "pi-jobs@beta", "a disk")

    stage.goes("switch/")
    stage.follows("Resume pi-jobs@beta…")
    stage.follows("Resume pi-jobs@beta")
    assert "pausedQueues" not in stage.status()
    stage.logs(who, "resume", "pi-jobs@beta")

    for verb, paused in (("Pause", ["pi-jobs", "pi-jobs@beta"]), ("Resume", [])):
        stage.goes("switch/")
        stage.page.click(control("Pause or resume chosen queues"))
        stage.ticks("pi-jobs", "pi-jobs@beta")
        stage.follows(f"{verb} the chosen…")
        stage.follows(f"{verb} 2 queues")
        assert stage.status().get("pausedQueues", []) == paused
    stage.end()


@by_both
def test_somebody_ends_the_fleets_pause_and_no_other(stage, who):
    switches.pause(stage.fleet.client, ("*", "pi-jobs@beta"), by="the test", reason="")
    stage.enter(who)
    stage.goes("switch/")
    stage.follows("Resume the fleet's pause only…")
    stage.says("Pauses that stay", "pi-jobs@beta")
    stage.fills(Reason="but for one")
    stage.follows("Resume the fleet's pause only")
    assert not stage.status()["pausedState"]
    assert stage.status()["pausedQueues"] == ["pi-jobs@beta"]
    _, after = stage.logs(who, "resume", "the whole fleet", "but for one")
    assert after == "ended: the whole fleet"
    stage.goes("fleet/host/beta/")
    stage.follows("Resume its queue")
    stage.follows("Resume pi-jobs@beta")
    assert "pausedQueues" not in stage.status()
    stage.end()


@by_both
def test_somebody_drains_a_host_reroutes_its_queue_and_undrains_it(stage, who):
    jobs = [stage.enqueue("pi-jobs@beta") for _ in range(2)]
    stage.enter(who)
    stage.goes("fleet/host/beta/reroute/")
    stage.says("Drain beta first.")
    stage.follows("Drain beta first.")
    stage.says("2 jobs wait in pi-jobs@beta for it")
    stage.fills(Reason="a new disk", Ends_by_itself_after="2h")
    stage.follows("Drain")
    stage.says("It is drained", "a new disk")
    drain = switches.drains(stage.fleet.client, ["beta"])["beta"]
    assert (drain.by, drain.until_ms - drain.since_ms) == (f"{who} (console)", 2 * 3600_000)
    stage.logs(who, "host-drain", "beta", "a new disk")

    stage.goes("fleet/host/beta/")
    stage.follows("Reroute its queue")
    stage.says("2 jobs stay")
    stage.ticks("Jobs on folders, too")
    stage.chooses(Where_the_jobs_may_go="alpha")
    stage.follows("Show what would move")
    stage.says("2 jobs to pi-jobs@alpha")
    stage.chooses(Where_the_jobs_may_go="whoever can do the job")
    stage.follows("Show what would move")
    stage.says("2 jobs to pi-jobs")
    assert stage.waiting_on("pi-jobs@beta") == jobs
    stage.fills(Reason="others may")
    stage.follows("Move 2 jobs")
    stage.until_says("Moved 2 jobs away from pi-jobs@beta.")
    assert stage.waiting_on("pi-jobs@beta") == []
    assert stage.waiting_on("pi-jobs")[-2:] == jobs
    stage.logs(who, "host-reroute-ended", "beta", "others may")

    stage.goes("fleet/host/beta/")
    stage.follows("Undrain")
    stage.fills(Reason="it is back")
    stage.follows("Undrain")
    assert switches.drains(stage.fleet.client, ["beta"]) == {}
    stage.logs(who, "host-undrain", "beta", "it is back")

    stage.goes("fleet/host/beta/")
    stage.follows("Drain")
    stage.follows("Drain")
    assert switches.drains(stage.fleet.client, ["beta"])["beta"].until_ms is None
    stage.follows("Undrain")
    stage.follows("Undrain")
    assert switches.drains(stage.fleet.client, ["beta"]) == {}
    stage.end()


@by_both
def test_somebody_cancels_one_job_those_that_are_ticked_and_all_of_a_filter(stage, who):
    client, beta = stage.fleet.client, "pi-jobs@beta"
    one, two, three, kept = (stage.enqueue(beta) for _ in range(4))
    switches.pause(client, (beta, "pi-jobs@alpha"), by="the test", reason="")
    stage.enter(who)
    stage.goes(f"queue/?queue={beta}")
    stage.follows(one)
    stage.follows("Cancel this job…")
    stage.fills(Reason="not wanted")
    stage.follows("Cancel the job")
    stage.says(f"Job {one} was taken out of the queue: it never runs.")
    assert stage.waiting_on(beta) == [two, three, kept]
    stage.logs(who, "cancel", one, "not wanted")

    stage.goes(f"queue/?queue={beta}")
    stage.ticks("Choose all shown of Waiting", f"Choose {kept}")
    stage.follows("Cancel the chosen…")
    stage.says("These 2 jobs are cancelled, and no other one")
    stage.fills(Reason="neither")
    stage.follows("Cancel 2 jobs")
    assert stage.waiting_on(beta) == [kept]
    stage.logs(who, "cancel", "2 jobs", "neither")

    many = [stage.enqueue("pi-jobs@alpha") for _ in range(25)]
    stage.goes("queue/?queue=pi-jobs@alpha")
    stage.follows("Cancel all of this filter (25)…")
    stage.fills(Reason="all of them")
    stage.follows("Cancel 25 jobs")
    stage.until_says("25 of 25 jobs cancelled.")
    assert stage.waiting_on("pi-jobs@alpha") == []
    assert not any(stage.fleet.statuses(many))
    before, after = stage.logs(who, "cancel-ended", "25 jobs", "all of them")
    assert ("stood.queued: 25" in before, "became.dropped: 25" in after) == (True, True)
    cancel(client, [kept])
    switches.resume(client, (beta, "pi-jobs@alpha"))
    stage.end()


@by_both
def test_somebody_stops_a_running_job_runs_one_again_and_starts_a_schedule(stage, who):
    client, turn = stage.fleet.client, ROLES.index(who)
    stopped, ended, other = stage.running[turn], stage.done[turn], stage.done[2]
    switches.pause(client, ("*",), by="the test", reason="")
    stage.until_calm()
    stage.enter(who)
    stage.goes(f"queue/job/{stopped}/")
    stage.follows("Cancel this job…")
    stage.says("Running jobs are stopped.")
    stage.fills(Reason="it loops")
    stage.follows("Cancel the job")
    stage.until_says("1 of 1 job cancelled.")
    assert stage.fleet.record(stopped)["reason"] == "operator-cancel"
    stage.logs(who, "cancel-ended", stopped, "it loops")

    stage.goes(f"runs/run/{ended}/")
    stage.follows("Run again…")
    stage.fills(Reason="it was mended")
    stage.follows("Run it again")
    stage.says("It waits in line")
    (again,) = stage.waiting_on("pi-jobs@alpha")
    assert stage.scope_of(again) == stage.scope_of(ended)
    stage.logs(who, "rerun", ended, "it was mended")

    stage.goes(f"queue/job/{other}/")
    stage.follows("Run it again…")
    stage.follows("Run it again")
    _, more = stage.waiting_on("pi-jobs@alpha")
    assert stage.scope_of(more) == stage.scope_of(other)

    stage.goes("dispatch/schedule/")
    stage.follows("Run now: nightly")
    stage.fills(Reason="at once")
    stage.follows("Run it now")
    stage.says("was put at the end of pi-jobs@alpha.")
    *before, started = stage.waiting_on("pi-jobs@alpha")
    assert before == [again, more]
    assert stage.scope_of(started) == hash16(str(stage.fleet.ground.home / "nightly")).encode()
    stage.logs(who, "schedule-started", "nightly", "at once")

    tables = [Table(client, f"pi-jobs@{host}") for host in HOSTS]
    assert all(table.tear_down("tidy", stalls=3, at_ms=epoch_ms(datetime.now(UTC))) for table in tables)
    stage.goes("dispatch/schedule/")
    stage.follows("Restore tidy")
    stage.fills(Reason="found out why")
    stage.follows("Restore it")
    assert all(table.resident()["tidy"].definition for table in tables)
    stage.logs(who, "schedule-restored", "tidy", "found out why")
    # Who comes next finds nothing of it.
    cancel(client, [again, more, started])
    switches.resume(client, ("*",))
    stage.end()


@by_both
def test_somebody_stops_what_runs_on_one_host(stage, who):
    stage.until_steady()
    on_beta = stage.jobs_of("beta")
    stage.enter(who)
    stage.goes("fleet/host/beta/")
    stage.follows("Drain and stop its jobs…")
    stage.says("it takes no job until", *on_beta)
    stage.fills(Reason="it burns", Watch_for_so_many_seconds="20")
    stage.follows("Drain beta and stop its jobs")
    stage.until_says(
        f"{len(on_beta)} of {number_of(len(on_beta), 'container is', 'containers are')} confirmed gone."
    )
    stage.fleet.until_over(on_beta, seconds=10)
    assert {stage.fleet.record(job_id)["reason"] for job_id in on_beta} == {"operator-stop"}
    assert stage.jobs_of("alpha")
    assert set(switches.drains(stage.fleet.client, ["alpha", "beta"])) == {"beta"}
    stage.logs(who, "stop-ended", "beta", "it burns")
    switches.undrain(stage.fleet.client, "beta")
    stage.end()


@by_both
def test_somebody_stops_everything(stage, who):
    switches.resume_all(stage.fleet.client)
    running = stage.until_steady()
    stage.enter(who)
    stage.goes("switch/")
    stage.follows("Pause everything and stop running jobs…")
    stage.says("paused until somebody resumes it", *running)
    stage.fills(Reason="fire")
    stage.follows("Pause everything and stop all jobs")
    stage.until_says(
        f"{len(running)} of {number_of(len(running), 'container is', 'containers are')} confirmed gone."
    )
    stage.fleet.until_over(running, seconds=10)
    assert stage.status()["pausedState"]
    stage.logs(who, "stop-ended", "the whole fleet", "fire")
    stage.end()


def test_the_log_has_pages(stage):
    done = manage(stage.web.environment, "shell", "--no-imports", "--command", _LINES)
    assert done.returncode == 0, done.stderr
    targets = [f"line {number}" for number in range(60, 0, -1)]
    stage.enter("viewer")
    stage.goes("log/")
    assert stage.page.texts(_TARGETS) == targets[:50]
    stage.follows("Older")
    assert stage.page.texts(_TARGETS)[:10] == targets[50:]
    stage.follows("Newest")
    assert stage.page.texts(_TARGETS) == targets[:50]
    stage.end()


def test_both_have_done_all_that_an_operator_may_do(stage):
    for role in ROLES:
        stage.enter(role)
        stage.goes("queue/")
        if role == "operator":
            actions = stage.actions()
        stage.end()
        assert actions - stage.done_by(role) == set(), role
    assert len(actions) >= 11
