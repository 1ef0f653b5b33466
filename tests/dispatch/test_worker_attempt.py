"""One attempt, whatever meets it: where its job stands, what was recorded, what was paid, what is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from dispatch.instants import instant_of
from dispatch.jobs import local_job
from dispatch.money.ledger import valkey_now
from dispatch.queue import containers, keys
from dispatch.queue.new_jobs import CRON
from dispatch.worker.attempt import attempt
from dispatch.worker.workspaces import prepare_local
from pidispatch_site.errors import ConfigurationError
from runs import provider
from runs.abort import AbortReason
from runs.outcome import InfraFault, Reason, Refusal
from runs.request import JobUser
from runs.result import RunResult
from runs.workspace import local
from runs.workspace.git import Git
from runs.workspace.scope import hash16
from tests.dispatch import queuekit
from tests.dispatch.workerkit import COMPLETED, Bench, Fault
from tests.runs.accounts import ORDINARY, current, needs_root
from tests.runs.repositories import Repo

SCOPE = hash16("/srv/site")


@dataclass(frozen=True, kw_only=True)
class Ends:
    """How a job stands after its attempt. `record`: outcome, reason, final, budgetReserved; None = none."""

    standing: str
    record: tuple[Any, ...] | None = None
    spent: int = 0
    asked: bool = False


FAULTED = ("failed", None, False, False)
ENGINE_FAULT = ("failed", "container-never-started", False, False)


def refused(reason: str) -> Ends:
    return Ends(standing="finished", record=("policy", reason, True, False))


def the_end(bench: Bench, job_id: str = "local-1") -> Ends:
    record = bench.record()
    said = record and (record["outcome"], record["reason"], record["final"], record["budgetReserved"])
    return Ends(
        standing=bench.standing(job_id),
        record=said,
        spent=bench.spent(),
        asked=bool(bench.containers.specs),
    )


def silent_engine(bench: Bench) -> None:
    bench.engine.silent = True


def unclean_engine(bench: Bench) -> None:
    bench.engine.is_clean = False


def no_image(bench: Bench) -> None:
    bench.engine.image_facts = None


def image_without_any_uid(bench: Bench) -> None:
    bench.engine.image_facts = replace(bench.engine.image_facts, capabilities=frozenset())
    bench.places.user = JobUser(1000, 1000)


def job_as_root(bench: Bench) -> None:
    bench.places.user = JobUser(0, 0)


def answers(where: str, answer: object) -> Callable[[Bench], None]:
    def put(bench: Bench) -> None:
        setattr(bench if where == "credentials" else bench.places, where, answer)

    return put


def busy_folder(bench: Bench) -> None:
    assert bench.host.scopes.try_take(SCOPE, 1)


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        pytest.param(
            unclean_engine, Ends(standing="scheduled", record=ENGINE_FAULT), id="engine never listed"
        ),
        pytest.param(silent_engine, Ends(standing="scheduled", record=ENGINE_FAULT), id="engine silent"),
        pytest.param(no_image, refused("job-image-missing"), id="image missing"),
        pytest.param(
            image_without_any_uid, refused("job-image-any-uid-unsupported"), id="image takes no foreign user"
        ),
        pytest.param(
            answers("credentials", Refusal(Reason.PROVIDER_UNCONFIGURED)),
            refused("provider-unconfigured"),
            id="no credential",
        ),
        pytest.param(
            answers("credentials", InfraFault(detail="unreadable")),
            Ends(standing="scheduled", record=FAULTED),
            id="credential unreadable",
        ),
        pytest.param(
            answers("credentials", ValueError("a bug")),
            Ends(standing="failed", record=("failed", None, True, False)),
            id="credential breaks",
        ),
        pytest.param(
            answers("answer", Refusal(Reason.PI_TOO_LARGE)), refused("pi-too-large"), id="workspace refused"
        ),
        pytest.param(
            answers("answer", InfraFault(detail="git-too-slow")),
            Ends(standing="scheduled", record=FAULTED),
            id="workspace cannot tell",
        ),
        pytest.param(
            answers("answer", ValueError("a bug")),
            Ends(standing="failed", record=("failed", None, True, False)),
            id="workspace breaks",
        ),
        pytest.param(job_as_root, refused("config-refused"), id="a container that nobody may have"),
    ],
)
def test_what_the_ladder_says_costs_nothing_and_holds_nothing(valkey, given, ends):
    bench = Bench(valkey)
    given(bench)

    bench.attempt()

    assert the_end(bench) == ends
    bench.assert_nothing_is_held()


def test_a_busy_folder_puts_the_job_off_without_a_record(valkey, events):
    bench = Bench(valkey)
    busy_folder(bench)

    claimed = bench.attempt()

    assert the_end(bench) == Ends(standing="scheduled")
    job = queuekit.hash_of(valkey, "local-1")
    assert (job["reason"], job["scope"], job["attempt"]) == ("scope-busy", SCOPE, "0")
    assert bench.host.scopes.held == {SCOPE: 1}
    assert bench.places.prepared == 0
    assert valkey.zrange(keys.waiters(claimed.queue, "scope-busy", SCOPE), 0, -1) == [b"local-1"]
    assert [one["event"] for one in events()] == ["scope_busy_deferred"]


def test_leaving_a_folder_wakes_its_oldest_waiter(valkey):
    bench = Bench(valkey)
    bench.enqueue("local-1")
    bench.enqueue("local-2")
    first, second = bench.claim(), bench.claim()
    bench.containers.meanwhile = lambda: attempt(bench.host, second)

    attempt(bench.host, first)

    assert bench.standing("local-1") == "finished"
    until = int(queuekit.hash_of(valkey, "local-2")["until"])
    assert until <= valkey_now(valkey)


def test_a_folder_freed_while_its_waiter_falls_asleep_wakes_it(valkey):
    holder: list[Bench] = []

    def freed(point: str) -> None:
        if point == "before put off":
            holder[0].host.scopes.give_back(SCOPE)

    bench = Bench(valkey, delays=freed)
    holder.append(bench)
    busy_folder(bench)

    bench.attempt()

    assert int(queuekit.hash_of(valkey, "local-1")["until"]) <= valkey_now(valkey)


@pytest.mark.parametrize(
    ("keeping", "ends"),
    [
        pytest.param(CRON, ("failed", "container-never-started", True, False), id="the only attempt"),
        pytest.param(None, ENGINE_FAULT, id="one of two"),
    ],
)
def test_a_fault_is_tried_again_only_while_attempts_remain(valkey, keeping, ends):
    bench = Bench(valkey)
    bench.engine.silent = True

    bench.attempt(**({"keeping": keeping} if keeping else {}))

    assert the_end(bench).record == ends


def test_each_attempt_waits_twice_as_long_and_is_told_in_the_last_record(valkey):
    bench = Bench(valkey)
    bench.containers.result = RunResult(container="", exit_code=1)
    bench.enqueue()
    valkey.hset("rq:job:local-1", "attempts", 3)
    waits = []
    for _ in range(3):
        claimed = bench.claim()
        attempt(bench.host, claimed)
        job = queuekit.hash_of(valkey, "local-1")
        if job["status"] == "scheduled":
            waits.append(round((int(job["until"]) - valkey_now(valkey)) / 1000))
            wake(valkey)

    assert waits == [60, 120]
    assert bench.standing() == "failed"
    assert bench.spent() == 3
    records = queuekit.records(valkey)
    assert [(one["attempt"], one["final"]) for one in records] == [(0, False), (1, False), (2, True)]
    assert [one["exitCode"] for one in records[-1]["attempts"]] == [1, 1]


def wake(valkey: redis.Redis) -> None:
    """Bring the sleeper back, as if its time had come."""
    names = keys.queue_keys(queuekit.QUEUE)
    valkey.zadd(names.scheduled, {"local-1": 1})
    assert queuekit.Host(valkey).promoter.promote([queuekit.QUEUE]) == 1


def test_a_cap_that_is_full_refuses_and_takes_nothing(valkey, events):
    bench = Bench(valkey, cap=0)

    bench.attempt()

    assert the_end(bench) == refused("over-budget")
    bench.assert_nothing_is_held()
    assert {"event": "over_budget", "jobId": "local-1", "window": "day", "reserved": 0, "cap": 0} in events()


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param(lambda client: client.hset("pause:*", mapping={"by": "op", "until": ""}), id="pause"),
        pytest.param(
            lambda client: client.hset("drain:alpha", mapping={"by": "op", "until": ""}), id="drain"
        ),
    ],
)
def test_a_switch_thrown_before_begin_gives_the_job_and_the_money_back(valkey, hold, events):
    bench = Bench(valkey, delays=lambda point: hold(valkey) if point == "before begin" else None)

    bench.attempt()

    assert the_end(bench) == Ends(standing="queued")
    assert queuekit.listed(valkey) == ["local-1"]
    assert events()[-1]["reason"] == "switch"


@pytest.mark.parametrize("mended", [True, False], ids=["mended", "stopped"])
def test_a_job_whose_container_could_not_be_listed_waits_in_hand_and_costs_nothing(valkey, events, mended):
    key, asked = keys.containers("aaaa"), []

    def meanwhile(point):
        if point == "after begin":
            asked.append(bench.containers.specs[:])
            if len(asked) == 3:
                valkey.delete(key) if mended else bench.stop()

    bench = Bench(valkey, delays=meanwhile)
    valkey.set(key, "somebody else's")

    bench.attempt()

    assert asked == [[]] * (4 if mended else 3)
    assert (bench.standing(), bench.spent()) == (("finished", 1) if mended else ("queued", 0))
    told = [one for one in events() if one["event"] != "container_exit"]
    assert told[0] == {"event": "containers_unreadable", "jobId": "local-1"}
    assert [one["event"] for one in told[1:]] == (
        ["job_started", "job_completed"] if mended else ["job_given_back"]
    )
    bench.assert_nothing_is_held()
    bench.assert_nothing_is_held()


POINTS_IN_HAND = ["before reserve", "after reserve", "before begin"]


@pytest.mark.parametrize("point", POINTS_IN_HAND)
def test_a_job_taken_away_meanwhile_is_left_alone_and_its_reservation_is_not_ours_to_keep(
    valkey, point, events
):
    """It was put back by a peer; nobody has taken it again yet."""

    def taken_away(reached: str) -> None:
        if reached == point:
            valkey.hdel("rq:job:local-1", "taker")

    bench = Bench(valkey, delays=taken_away)

    bench.attempt()

    assert the_end(bench) == Ends(standing="queued")
    assert [one["event"] for one in events()] == ["transition_lost"]
    bench.assert_nothing_is_held()


@pytest.mark.parametrize("point", POINTS_IN_HAND)
@pytest.mark.parametrize("stopping", [pytest.param(True, id="stopping"), pytest.param(False, id="serving")])
def test_who_was_frozen_never_pays_back_the_container_of_who_took_the_job_over(valkey, point, stopping):
    peer = Bench(valkey, boot_number=2)

    def frozen(reached: str) -> None:
        if reached == point:
            # What a sweep does: the id leaves our hand, goes back and is taken by a peer, which runs it.
            valkey.lrem(keys.queue_keys(queuekit.QUEUE).taken(bench.host.owner.boot), 0, "local-1")
            valkey.hdel("rq:job:local-1", "taker")
            valkey.lpush(keys.queue_keys(queuekit.QUEUE).jobs, "local-1")
            attempt(peer.host, peer.claim())
            if stopping:
                bench.stop()

    bench = Bench(valkey, delays=frozen)

    bench.attempt()

    assert bench.standing() == "finished"
    assert len(peer.containers.specs) == 1
    assert bench.containers.specs == []
    assert bench.spent() == 1
    bench.assert_nothing_is_held()


@pytest.mark.parametrize(
    ("result", "ends"),
    [
        pytest.param(
            COMPLETED,
            Ends(standing="finished", record=("completed", None, True, True), spent=1, asked=True),
            id="completed",
        ),
        pytest.param(
            RunResult(container="", exit_code=2),
            Ends(standing="finished", record=("policy", "runner-policy", True, True), spent=1, asked=True),
            id="policy",
        ),
        pytest.param(
            RunResult(container="", exit_code=1),
            Ends(standing="scheduled", record=("failed", None, False, True), spent=1, asked=True),
            id="infra",
        ),
        pytest.param(
            RunResult(container="", exit_code=137, abort_reason=AbortReason.TIMEOUT),
            Ends(standing="finished", record=("policy", "worker-abort", True, True), spent=1, asked=True),
            id="aborted",
        ),
        pytest.param(
            RunResult(container="", abort_reason=AbortReason.SHUTDOWN, not_attempted=True),
            Ends(standing="finished", record=("policy", "worker-abort", True, False), asked=True),
            id="aborted before create",
        ),
        pytest.param(
            RunResult(container="", abort_reason=AbortReason.SHUTDOWN, gone=False),
            Ends(standing="finished", record=("policy", "worker-abort", True, True), spent=1, asked=True),
            id="aborted between create and start",
        ),
        pytest.param(
            RunResult(container="", never_started=True, fault="refused"),
            Ends(
                standing="scheduled",
                record=("failed", "container-never-started", False, False),
                asked=True,
            ),
            id="never started",
        ),
        pytest.param(
            RunResult(container="", detached=True),
            Ends(
                standing="scheduled",
                record=("failed", "container-detached", False, True),
                spent=1,
                asked=True,
            ),
            id="detached",
        ),
        pytest.param(
            ValueError("a bug"),
            Ends(standing="failed", record=("failed", None, True, True), spent=1, asked=True),
            id="the runner breaks",
        ),
        pytest.param(
            ConfigurationError("too late for it"),
            Ends(standing="failed", record=("failed", None, True, True), spent=1, asked=True),
            id="the runner refuses",
        ),
    ],
)
def test_what_the_container_did_decides_and_everything_is_given_back(valkey, result, ends):
    bench = Bench(valkey)
    bench.containers.result = result

    bench.attempt()

    assert the_end(bench) == ends
    queuekit.assert_sound(valkey, ["local-1"])
    bench.assert_nothing_is_held()


@pytest.mark.parametrize("exit_code", [0, 1, 2])
@pytest.mark.parametrize("gone", [True, False])
def test_only_a_container_that_is_confirmed_gone_leaves_the_hosts_list(valkey, exit_code, gone):
    bench = Bench(valkey)
    bench.containers.tells_gone = gone
    bench.containers.result = RunResult(container="", exit_code=exit_code)
    seen: list[str] = []
    bench.containers.meanwhile = lambda: seen.extend(one.name for one in containers.begun(valkey, "aaaa"))

    bench.attempt()

    assert seen == ["pi-job-local-1"]
    left = [one.name for one in containers.begun(valkey, "aaaa")]
    assert left == ([] if gone else ["pi-job-local-1"])


LOST_ANSWER = redis.exceptions.TimeoutError("lost")
ALL_POINTS = [
    *("before reserve", "after reserve", "before begin", "after begin", "before end", "after end"),
    *("before refund", "after refund", "before again", "after again"),
]


@pytest.mark.parametrize("point", ALL_POINTS)
def test_an_answer_that_was_lost_at_any_point_changes_nothing(valkey, point):
    fault = Fault(point, LOST_ANSWER)
    bench = Bench(valkey, delays=fault)
    if point.endswith(("refund", "again")):
        bench.containers.result = RunResult(container="", never_started=True)

    bench.attempt()

    assert point in fault.reached
    expected = (
        Ends(standing="scheduled", record=ENGINE_FAULT, asked=True)
        if point.endswith(("refund", "again"))
        else Ends(standing="finished", record=("completed", None, True, True), spent=1, asked=True)
    )
    assert the_end(bench) == expected
    assert len(bench.containers.specs) == 1
    assert len(queuekit.records(valkey)) == 1
    bench.assert_nothing_is_held()


BUG = RuntimeError("a bug")
PAID_BUG = Ends(standing="failed", record=("failed", None, True, True), spent=1, asked=True)


@pytest.mark.parametrize(
    ("point", "ends"),
    [
        pytest.param(
            "before reserve", Ends(standing="failed", record=("failed", None, True, False)), id="unpaid"
        ),
        pytest.param(
            "before begin", Ends(standing="failed", record=("failed", None, True, False)), id="paid back"
        ),
        pytest.param(
            "after begin",
            Ends(standing="failed", record=("failed", None, True, False)),
            id="begun, paid back",
        ),
        pytest.param("before end", PAID_BUG, id="ran"),
        # The end has landed: what is tried after it finds that out and changes nothing.
        pytest.param(
            "after end",
            Ends(standing="finished", record=("completed", None, True, True), spent=1, asked=True),
            id="ended",
        ),
    ],
)
def test_our_own_bug_at_any_point_is_never_tried_again_and_pays_back_what_nobody_asked_for(
    valkey, point, ends
):
    bench = Bench(valkey, delays=Fault(point, BUG))

    bench.attempt()

    assert the_end(bench) == ends
    assert len(queuekit.records(valkey)) == 1
    queuekit.assert_sound(valkey, ["local-1"])
    bench.assert_nothing_is_held()


@pytest.mark.parametrize(
    ("point", "ends"),
    [
        pytest.param("before reserve", Ends(standing="in-hand"), id="reserve"),
        pytest.param("after reserve", Ends(standing="in-hand", spent=1), id="reserve landed"),
        pytest.param("before begin", Ends(standing="in-hand", spent=1), id="begin"),
        pytest.param("after begin", Ends(standing="started", spent=1), id="begin landed"),
        pytest.param("before end", Ends(standing="started", spent=1, asked=True), id="end"),
        pytest.param(
            "after end",
            Ends(standing="finished", record=("completed", None, True, True), spent=1, asked=True),
            id="end landed",
        ),
    ],
)
def test_a_shutdown_without_valkey_leaves_the_job_to_the_next_boot_and_holds_nothing(
    valkey, point, ends, events
):
    bench = Bench(valkey, delays=Fault(point, LOST_ANSWER, times=1000))
    bench.host.out_of_patience.set()

    bench.attempt()

    assert the_end(bench) == ends
    assert events()[-1]["event"] == "job_left_behind"
    bench.assert_nothing_is_held()


def test_what_breaks_while_it_is_settled_is_left_to_the_sweep(valkey, events):
    bench = Bench(valkey, delays=Fault("before end", BUG, times=1000))

    bench.attempt()

    assert bench.standing() == "started"
    assert events()[-1] == {"event": "attempt_unsettled", "jobId": "local-1", "error": "RuntimeError"}
    bench.assert_nothing_is_held()


def test_what_cannot_be_released_changes_nothing_about_a_job_that_has_ended(valkey, events):
    bench = Bench(valkey)
    bench.places.cleanup_fault = RuntimeError("/srv/secret")

    bench.attempt()

    assert bench.standing() == "finished"
    names = [one["event"] for one in events()]
    assert names[-2:] == ["job_completed", "release_failed"]
    assert "/srv/secret" not in str(events())
    bench.assert_nothing_is_held()


@pytest.mark.parametrize("broken", [pytest.param(BUG, id="bug"), pytest.param(None, id="well")])
def test_folder_and_workspace_are_held_until_the_last_transition_has_landed(valkey, broken):
    seen: dict[str, object] = {}

    def look(point: str) -> None:
        if point == "after end":
            seen[point] = (dict(bench.host.scopes.held), bench.places.standing)

    bench = Bench(valkey, delays=look)
    if broken:
        bench.containers.result = broken

    bench.attempt()

    assert seen == {"after end": ({SCOPE: 1}, 1)}


@pytest.mark.parametrize("stopped_at", ["ladder's foot", "workspace", "money"])
def test_a_stop_before_the_container_gives_the_job_back_unspent(valkey, stopped_at, events):
    bench = Bench(
        valkey,
        delays=lambda point: bench.stop() if (point, stopped_at) == ("after reserve", "money") else None,
    )
    if stopped_at == "ladder's foot":
        bench.stop()
    if stopped_at == "workspace":
        bench.places.meanwhile = bench.stop

    bench.attempt()

    assert the_end(bench) == Ends(standing="queued")
    assert bench.places.prepared == (stopped_at != "ladder's foot")
    assert queuekit.listed(valkey) == ["local-1"]
    assert queuekit.hash_of(valkey, "local-1")["attempt"] == "0"
    assert events()[-1] == {"event": "job_given_back", "jobId": "local-1", "reason": "shutdown"}
    bench.assert_nothing_is_held()


def test_a_container_whose_begin_waited_for_valkey_has_its_whole_time_still(valkey):
    """The deadline is counted from begin's success, however long Valkey was away before."""
    clock = [datetime(2026, 1, 5, tzinfo=UTC)]

    def outage(point: str) -> None:
        if point == "after begin":
            clock[0] += timedelta(days=1)

    bench = Bench(valkey, delays=outage, utc_now=lambda: clock[0])

    bench.attempt()

    assert int(bench.containers.specs[0].environment["PI_JOB_DEADLINE"]) > clock[0].timestamp()


@pytest.mark.parametrize(
    "raw_id",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"a_b", id="no code of ours"),
        pytest.param(b"../../etc/passwd", id="a path"),
        pytest.param("ä b".encode(), id="not ASCII"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
        pytest.param(b"x" * 300, id="too long"),
        pytest.param(b"a\nb", id="two lines"),
    ],
)
@pytest.mark.parametrize("job", [pytest.param(True, id="well-formed"), pytest.param(False, id="malformed")])
def test_a_job_of_a_foreign_id_is_refused_with_a_record(valkey, raw_id, job):
    bench = Bench(valkey)
    bench.enqueue()
    data = valkey.hget("rq:job:local-1", "data") if job else b"no job"
    valkey.delete("rq:job:local-1", "rq:queue:pi-jobs")
    valkey.hset(b"rq:job:" + raw_id, mapping={"status": "queued", "data": data, "origin": "pi-jobs"})
    valkey.rpush("rq:queue:pi-jobs", raw_id)

    attempt(bench.host, bench.claim())

    assert valkey.hget(b"rq:job:" + raw_id, "status") == b"finished"
    assert bench.record()["reason"] == "job-malformed"
    assert bench.spent() == 0
    assert bench.containers.specs == []
    bench.assert_nothing_is_held()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"firstQueued": "9999999999999999"}, id="queued after the end of the calendar"),
        pytest.param({"firstQueued": "x", "created_at": "x"}, id="queued at no time"),
        pytest.param({"attempt": "5000", "attempts": "9000"}, id="thousands of attempts"),
        pytest.param(
            {"attempt": "999999999999", "attempts": "9999999999999"}, id="more attempts than numbers"
        ),
        pytest.param({"attempt": "-1", "attempts": "many", "attemptLog": "[1,{}"}, id="no numbers"),
    ],
)
@pytest.mark.parametrize("exit_code", [0, 1])
def test_whatever_stands_in_the_hash_the_job_leaves_our_hand(valkey, fields, exit_code):
    bench = Bench(valkey)
    bench.containers.result = RunResult(container="", exit_code=exit_code)
    bench.enqueue()
    valkey.hset("rq:job:local-1", mapping=fields)

    attempt(bench.host, bench.claim())

    assert bench.standing() in ({"finished"} if exit_code == 0 else {"failed", "scheduled"})
    assert bench.record()["jobId"] == "local-1"
    bench.assert_nothing_is_held()


def test_what_is_not_built_yet_is_refused_by_its_name(valkey, events):
    bench = Bench(valkey)
    bench.enqueue()

    attempt(bench.host, replace(bench.claim(), job=replace(queuekit.JOB, packages=True)))

    assert the_end(bench) == refused("not-available")
    assert events()[0]["detail"] == "packages"
    bench.assert_nothing_is_held()


def test_no_event_names_a_folder_a_task_or_the_text_of_an_error(valkey, events):
    canary = "canary-4711"
    faults: list[Any] = [
        *(Refusal(Reason.PI_TOO_LARGE), InfraFault(detail="git-too-slow"), ValueError(canary)),
        ConfigurationError(canary),
    ]
    for number, fault in enumerate(faults):
        bench = Bench(valkey)
        bench.places.answer = fault
        bench.attempt(f"local-{number}", local_job(f"/srv/{canary}", task=canary))
    bench = Bench(valkey)
    bench.containers.result = ValueError(canary)
    bench.attempt("local-9", local_job(f"/srv/{canary}", task=canary))

    assert canary not in str(events())


def a_bare_folder(repo: Repo) -> Path:
    folder = repo.path.parent / "canary-bare"
    folder.mkdir()
    return folder


def a_link(repo: Repo) -> Path:
    link = repo.path.parent / "canary-link"
    link.symlink_to(repo.path)
    return link


def a_broken_repository(repo: Repo) -> Path:
    repo.write(".git/HEAD", "canary")
    return repo.path


def a_large_file(repo: Repo) -> Path:
    repo.commit({".pi/APPEND_SYSTEM.md": "canary" * 200_000})
    return repo.path


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda repo: repo.path / "none", "folder-missing", id="missing"),
        pytest.param(lambda repo: repo.path / "README.md", "not-a-folder", id="a file"),
        pytest.param(a_bare_folder, "not-a-working-tree", id="no repository"),
        pytest.param(a_link, "is-a-link", id="a link"),
        pytest.param(lambda repo: repo.path, "owner-unmappable", id="nobody to run as", marks=needs_root),
        pytest.param(a_broken_repository, "git-", id="a broken repository"),
        pytest.param(a_large_file, "refused_pi_file_too_large", id="a file too large"),
    ],
)
def test_what_a_real_preparation_says_is_logged_by_a_token_and_never_by_a_name(
    valkey, events, tmp_path, make, says
):
    repo = Repo.make(tmp_path / "canary-folder")
    repo.commit({"README.md": "canary"})
    folder = make(repo)
    if says != "owner-unmappable" and current().is_root:
        repo.give_to(ORDINARY.uid, ORDINARY.gid)
    bench = Bench(valkey)
    in_place = partial(
        local.prepare,
        jobs_dir=tmp_path / "canary-jobs",
        boot=bench.host.owner.boot,
        account=current(),
        git=Git(),
    )
    prepare = partial(prepare_local, prepare=in_place, previous_run=lambda *_: None)
    object.__setattr__(bench.host, "work", replace(bench.host.work, prepare=prepare))

    bench.attempt("local-1", local_job(str(folder), task="canary"))

    assert says in str(events())
    assert "canary" not in str(events()).lower()
    assert str(tmp_path) not in str(events())
    bench.assert_nothing_is_held()


def test_a_missing_credential_is_logged_with_the_providers_name_and_without_a_value(valkey, events, tmp_path):
    bench = Bench(valkey)
    (tmp_path / "auth.json").write_text('{"openai": {"type": "api_key", "key": "!canary"}}')
    found = partial(
        provider.resolve,
        environment={"ANTHROPIC_API_KEY": "canary"},
        auth_from_pi=True,
        agent_dir=tmp_path,
    )
    object.__setattr__(bench.host, "work", replace(bench.host.work, credentials_of=found))

    bench.attempt("local-1", local_job("/srv/site", task="t", provider="openai"))

    refusal = events()[0]
    assert refusal["event"] == "refused_provider_unconfigured"
    assert (refusal["provider"], refusal["detail"]) == ("openai", "key-is-a-command")
    assert "canary" not in str(events())


@pytest.mark.parametrize(
    ("given", "job", "fields"),
    [
        pytest.param(no_image, {"task": "t"}, {"event": "refused_image_missing"}, id="missing"),
        pytest.param(
            image_without_any_uid,
            {"task": "t"},
            {"event": "refused_image_any_uid_unsupported", "kind": "local", "declared": []},
            id="any uid",
        ),
        pytest.param(
            image_without_any_uid,
            {"command": "deploy"},
            {"event": "refused_image_commands_unsupported", "kind": "local", "declared": []},
            id="commands",
        ),
    ],
)
def test_a_refused_image_is_logged_by_its_name_and_what_it_declares(valkey, events, given, job, fields):
    bench = Bench(valkey)
    given(bench)

    bench.attempt("local-1", local_job("/srv/site", image="mine:2", **job))

    assert events()[0] == {**fields, "jobId": "local-1", "image": "mine:2"}


@pytest.mark.parametrize(
    ("result", "said"),
    [
        pytest.param(
            RunResult(container="", exit_code=137, oom_killed=True), {"oomKilled": True}, id="out of memory"
        ),
        pytest.param(RunResult(container="", exit_code=0, oom_killed=True), {}, id="only a child was killed"),
        pytest.param(RunResult(container="", exit_code=137), {}, id="killed for another reason"),
        pytest.param(
            RunResult(container="", exit_code=0, log_truncated=True), {"logTruncated": True}, id="log cut"
        ),
        pytest.param(COMPLETED, {}, id="nothing of it"),
    ],
)
def test_the_end_of_a_container_tells_memory_and_a_cut_log_only_when_they_are_so(
    valkey, events, result, said
):
    bench = Bench(valkey)
    bench.containers.result = result

    bench.attempt()

    (told,) = [one for one in events() if one["event"] == "container_exit"]
    assert {name: told[name] for name in ("oomKilled", "logTruncated") if name in told} == said


@pytest.mark.parametrize("ago_ms", [0, 30_000, 3 * 24 * 3600 * 1000])
def test_a_reservation_counts_on_the_day_on_which_it_is_made_however_long_the_gates_took(valkey, ago_ms):
    bench = Bench(valkey)
    bench.enqueue()
    claimed = bench.claim()

    attempt(bench.host, replace(claimed, now_ms=claimed.now_ms - ago_ms))

    today = instant_of(valkey_now(valkey)).date().isoformat()
    assert valkey.get(f"budget:{today}") == b"1"
    assert bench.spent() == 1


@pytest.mark.parametrize(
    ("word", "said"),
    [
        pytest.param("provider-error", "provider-error", id="the runner's own"),
        pytest.param("sk-live-0123456789", None, id="a word of anybody"),
    ],
)
def test_the_runners_own_word_is_told_and_no_other_that_a_job_prints(valkey, events, word, said):
    bench = Bench(valkey)
    line = f'{{"event":"exit","code":1,"reason":"{word}"}}\n'.encode()
    bench.containers.result = RunResult(container="", exit_code=1, tail=line)

    bench.attempt()

    (told,) = [one for one in events() if one["event"] == "container_exit"]
    assert told.get("said") == said
    assert word == said or word not in str(events())
