"""Keys of a wrong type, as anybody may leave them: what a worker of two queues still does, what is said."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command
from redis.exceptions import ConnectionError, OutOfMemoryError, ReadOnlyError, ResponseError  # noqa: A004

from dispatch.queue import keys
from dispatch.queue.apart import apart
from dispatch.queue.owner import Owner
from dispatch.queue.popper import Claimed
from dispatch.queue.timings import Timings
from dispatch.queue.transitions import Step
from dispatch.schedules import keys as schedule_keys
from dispatch.schedules.other_tables import OWNERS
from dispatch.worker.build import build
from dispatch.worker.edges import Edges
from dispatch.worker.followed import load_operator_files
from dispatch.worker.timings import WorkerTimings
from hosts import keys as hosts_keys
from pidispatch_site import clients, conf
from pidispatch_site.envfile import Environment
from pidispatch_site.errors import OperationalError
from runs.outcome import Outcome
from runs.reaper import Reaped
from runs.workspace.jobuser import Account
from tests.dispatch.queuekit import Host, age_beat, everything, hash_of, listed, records
from tests.harness.null_runs import NullBackend, NullRuns, null_prepare

SHARED, OWN, EVIL, OTHER = "pi-jobs", "pi-jobs@alpha", "pi-jobs@evil", "pi-jobs@other"
OURS = (SHARED, OWN)
BOOT, DEAD = "aaaa-00000002", "bbbb-00000001"
# Whoever is silent at all is judged; what we pop here stays in our hand.
TIMINGS = WorkerTimings(queue=Timings(late=0, gone=0, grace=1000))
KINDS = ("asleep", "started", "started2", "hand", "waiting", "waiting2")
STALLED = {"started", "started2"}
OF_THE_DEAD = {"put back", *STALLED}
ALL = {
    **{queue: {"beat", "promoted", "popped", *OF_THE_DEAD} for queue in OURS},
    **dict.fromkeys((EVIL, OTHER), OF_THE_DEAD),
}


class Ground:
    """Our worker, without its threads, and one that died with something of every kind on every queue."""

    def __init__(self, client, url, state_dir, **more):
        config = conf.load(
            Environment(
                {
                    "PI_STATE_DIR": str(state_dir),
                    "PI_EGRESS": "0",
                    "PI_WORKER_NAME": "alpha",
                    "PI_AUTH_FROM_PI": "0",
                    **more,
                }
            )
        )
        edges = Edges(
            backend=NullBackend(),
            runs=NullRuns(),
            prepare=null_prepare,
            account=Account(1000, 1000),
            timings=TIMINGS,
        )
        owner = Owner(boot=BOOT, host_id="aaaa", host="alpha")
        self.client, self.worker = client, build(config, owner, url, edges, load_operator_files(config))
        self.parts = self.worker._parts
        self.popped = set()
        client.sadd(hosts_keys.QUEUES_KNOWN, *ALL)
        for queue in ALL:
            self.leave_behind(queue)

    def leave_behind(self, queue):
        dead = Host(self.client, name="dead", host_id="bbbb", queue=queue)
        # The hash of a job and its id are the whole fleet's.
        dead.enqueue(*(f"local-{kind}-{queue.partition('@')[2] or 'shared'}" for kind in KINDS))
        dead.put_off(dead.claim(), 1000)
        dead.start()
        dead.start()
        dead.claim()
        age_beat(self.client, dead, 100)

    def go_on(self):
        """Every duty once, and a look at each queue."""
        self.worker._beat()
        self.worker._promote()
        self.worker._sweep()
        self.parts.duties.look_after_others()
        for popper in self.parts.poppers:
            try:
                self.popped |= {popper.queue} if isinstance(popper.pop(), Claimed) else set()
            except ResponseError:
                continue

    def done(self):
        """What has been done by now, queue by queue."""
        return {queue: {what for what in ALL[queue] if self.is_done(what, queue)} for queue in ALL}

    def is_done(self, what, queue):
        name = queue.partition("@")[2] or "shared"
        match what:
            case "beat":
                takers = keys.queue_keys(queue).takers
                return self.client.type(takers) == b"zset" and bool(self.client.zscore(takers, BOOT))
            case "promoted":
                return hash_of(self.client, f"local-asleep-{name}")["status"] == "queued"
            case "popped":
                return queue in self.popped
            case "put back":
                return hash_of(self.client, f"local-hand-{name}").get("putBacks") == "1"
            case _:
                return hash_of(self.client, f"local-{what}-{name}")["status"] == "failed"


@pytest.fixture
def ground(valkey, valkey_url, state_dir):
    return Ground(valkey, valkey_url, state_dir)


class Spoilt:
    """A key with somebody's text in it; `mend` brings back what stood there."""

    def __init__(self, client, key):
        self.client, self.key = client, key
        self.there = client.exists(key)
        if self.there:
            client.rename(key, "aside")
        client.set(key, "x")

    def mend(self):
        if self.there:
            self.client.rename("aside", self.key)
        else:
            self.client.delete(self.key)


def told(events):
    kinds = ("queue_", "known_queues_", "worker_thread_error")
    return [(one["event"], one.get("queue")) for one in events() if one["event"].startswith(kinds)]


# Key, queue, and what that queue does without meanwhile. Every other queue does everything.
CASES = [
    (f"takers:{EVIL}", EVIL, OF_THE_DEAD),
    (f"rq:wip:{EVIL}", EVIL, STALLED),
    (f"rq:queue:{EVIL}", EVIL, {"put back"}),
    (f"rq:failed:{EVIL}", EVIL, STALLED),
    (f"{EVIL}:taken:{DEAD}", EVIL, {"put back"}),
    (f"takers:{SHARED}", SHARED, {"beat", "popped", *OF_THE_DEAD}),
    (f"takers:{OWN}", OWN, {"beat", "popped", *OF_THE_DEAD}),
    (f"rq:wip:{SHARED}", SHARED, STALLED),
    (f"rq:queue:{SHARED}", SHARED, {"promoted", "popped", "put back"}),
    (f"rq:scheduled:{SHARED}", SHARED, {"promoted"}),
    (f"rq:scheduled:{OWN}", OWN, {"promoted"}),
    (f"{SHARED}:taken:{DEAD}", SHARED, {"put back"}),
    ("rq:results:local-started-shared", SHARED, {"started"}),
    (f"rq:worker:alpha.{BOOT}.{SHARED}", SHARED, set()),
    (f"waiters:{SHARED}:scope-busy", None, set()),
    ("rq:executions:local-started-shared", None, set()),
    (hosts_keys.HOSTS_KNOWN, None, set()),
    (hosts_keys.HOSTS_LIVE, None, set()),
    ("rq:workers", None, set()),
    ("rq:queues", None, set()),
]
cases = pytest.mark.parametrize(("key", "queue", "without"), CASES, ids=[case[0] for case in CASES])


@cases
def test_a_key_of_a_wrong_type_costs_what_needs_it_and_it_is_done_when_it_is_mended(
    valkey, ground, events, key, queue, without
):
    ground.parts.beats.register()
    spoilt = Spoilt(valkey, key)
    ground.go_on()
    ground.go_on()

    assert ground.done() == {**ALL, **({queue: ALL[queue] - without} if queue else {})}
    assert told(events) == ([("queue_unreadable", queue)] if queue else [])

    spoilt.mend()
    ground.go_on()

    assert ground.done() == ALL
    assert told(events)[1:] == ([("queue_readable", queue)] if queue else [])
    assert len(records(valkey)) == len(STALLED) * len(ALL)


@cases
def test_such_a_key_keeps_no_worker_from_its_boot(valkey, ground, key, queue, without):
    Spoilt(valkey, key)

    ground.worker._enter_the_queue(Reaped(enumerated=True))
    ground.go_on()

    assert ground.done() == {**ALL, **({queue: ALL[queue] - without} if queue else {})}


@pytest.mark.parametrize(
    "key",
    [
        *(
            name(OWN)
            for name in (
                schedule_keys.definitions,
                schedule_keys.upcoming,
                schedule_keys.since,
                schedule_keys.fired,
                schedule_keys.torn,
            )
        ),
        *(schedule_keys.occurred("tidy"), schedule_keys.stalls("tidy"), OWNERS),
    ],
)
def test_such_a_key_of_schedules_keeps_nothing_else_from_being_done(valkey, valkey_url, state_dir, key):
    run = {"kind": "local", "folder": str(state_dir), "flow": "nightly", "task": "tidy up"}
    entry = {"on": {"type": "cron", "id": "tidy", "pattern": "* * * * *"}, "run": run}
    (state_dir / "triggers.json").write_text(json.dumps({"triggers": [entry]}))
    ground = Ground(valkey, valkey_url, state_dir, PI_TRIGGERS_FILE=str(state_dir / "triggers.json"))
    valkey.set(key, "x")

    ground.worker._enter_the_queue(Reaped(enumerated=True))
    ground.parts.schedules.tick()
    ground.parts.schedules.keeper.look()
    ground.parts.stall_guard.stalled("repeat:tidy:1", OWN)
    ground.go_on()

    assert ground.done() == ALL


def test_queues_that_nobody_can_list_are_not_swept_and_ours_are(valkey, ground, events):
    spoilt = Spoilt(valkey, hosts_keys.QUEUES_KNOWN)
    ground.go_on()
    ground.go_on()

    assert ground.done() == {**ALL, EVIL: set(), OTHER: set()}
    spoilt.mend()
    ground.go_on()

    assert ground.done() == ALL
    assert told(events) == [("known_queues_unreadable", None), ("known_queues_readable", None)]


@pytest.mark.parametrize("how", ["pop", "wait"])
def test_nothing_is_taken_that_the_sweep_could_not_find(valkey, ground, how):
    Spoilt(valkey, f"takers:{SHARED}")
    before = listed(valkey)

    with pytest.raises(ResponseError, match="WRONGTYPE"):
        ground.parts.poppers[0].pop() if how == "pop" else ground.parts.poppers[0].wait(1)

    assert listed(valkey) == before


@pytest.mark.parametrize("key", [f"rq:failed:{SHARED}", "rq:results:local-1", "records:pending:aaaa"])
def test_a_job_whose_end_cannot_be_written_has_not_ended(valkey, key):
    host = Host(valkey)
    host.enqueue("local-1")
    claimed = host.start()
    spoilt = Spoilt(valkey, key)
    before = everything(valkey)

    with pytest.raises(ResponseError):
        host.end(claimed, Outcome.FAILED)
    assert everything(valkey) == before

    spoilt.mend()
    assert host.end(claimed, Outcome.FAILED) is Step.DONE


@pytest.mark.parametrize(
    "fault", [ConnectionError(), OutOfMemoryError(), ReadOnlyError(), clients.ServerBusyError()], ids=repr
)
def test_a_fault_of_valkey_is_no_queues_own(fault):
    with pytest.raises(type(fault)), apart(SHARED, {}):
        raise fault


def test_commands_show_what_can_be_read_and_name_the_rest(valkey, ground, valkey_url, settings):
    settings.PIDISPATCH_ENVIRONMENT = {"VALKEY_URL": valkey_url}

    def say(*words):
        out, err = io.StringIO(), io.StringIO()
        call_command(*words, stdout=out, stderr=err)
        return json.loads(out.getvalue()), err.getvalue()

    whole, _ = say("status")
    Spoilt(valkey, f"takers:{EVIL}")
    # A list of a boot that nobody has is of no account.
    Spoilt(valkey, f"{SHARED}:taken:{DEAD}")

    shown, _ = say("status")
    assert shown["fleet"] == f"{EVIL}: wrong-type"
    assert [whole[name] - shown[name] for name in ("waiting", "active", "delayed")] == [2, 3 + 1, 1]

    shown, said = say("queue", "--json")
    assert ([one["queue"] for one in shown["queues"]], shown["unreadable"]) == (
        [SHARED, OWN, OTHER],
        {EVIL: "wrong-type"},
    )
    assert f"{EVIL} is left out: a key of it cannot be read (wrong-type)." in said
    with pytest.raises(OperationalError, match=f"{EVIL} cannot be read"):
        say("queue", EVIL, "--json")

    # Who has the folder that it sleeps for is looked for on every queue.
    shown, _ = say("why", "local-asleep-shared", "--json")
    assert shown["job"] == "local-asleep-shared"
