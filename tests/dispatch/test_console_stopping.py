"""`stop` as a procedure: who is asked, which containers count, and what is proven, whatever is in the way."""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
import redis

from dispatch.console import stop_shown
from dispatch.console.stopped import SCAN, SHARED, SWITCH, VALKEY, Why
from dispatch.console.stopping import Patience, stop
from dispatch.queue import containers, keys
from hosts import keys as hosts_keys
from hosts import stops, switches
from hosts.stops import Confirmed
from tests.dispatch.consolekit import own_server
from tests.dispatch.queuekit import Host, hash_of, now_ms
from tests.dispatch.test_console_queues import register

GONE, OPEN = Confirmed.GONE, Confirmed.UNCONFIRMED
ONCE = Patience(whole=0, look=0.01)
SOON = Patience(whole=10, look=0.01, word=10)
NEVER = 10**15
A, B, C, D = ("0123456789abcde" + letter for letter in "abcd")


class Ground:
    """Hosts and containers as Valkey shows them; `heard` is every word of the procedure."""

    def __init__(self, client):
        self.client = client
        self.heard = []
        self.faults = []
        self.meanwhile = []

    def host(self, name, host_id, *, silent_ms=0):
        beat = now_ms(self.client) - silent_ms
        self.client.hset(hosts_keys.HOSTS_KNOWN, host_id, json.dumps({"name": name, "beat": beat}))

    def container(self, host_id, name, *, deadline=NEVER, job="local-1"):
        entry = {"job": job, "attempt": 0, "token": "t/1", "deadline": deadline}
        self.client.hset(keys.containers(host_id), name, json.dumps(entry))

    def answers(self, host, **states):
        """Have the host answer the request as soon as it was made."""
        named = {name.replace("_", "-"): state for name, state in states.items()}
        self.meanwhile.append(
            lambda found: stops.answer(
                self.client, host=host, request_id=found.request.request_id, containers=named
            )
        )

    def gone(self, host_id, name):
        self.meanwhile.append(lambda found: containers.forget(self.client, host_id, [name]))

    def stop(self, *, only=None, patience=SOON):
        def tell(found):
            self.heard.append(found)
            while self.meanwhile:
                self.meanwhile.pop(0)(found)

        return stop(
            self.client,
            only=only,
            by="ann",
            reason="fire",
            tell=tell,
            retrying=lambda *said: self.faults.append(said),
            patience=patience,
        )


@pytest.fixture
def ground(valkey):
    return Ground(valkey)


def fates(found):
    return {one.container.name: (one.host, one.state, one.why) for one in found.fates}


def asked(client):
    return sorted(key.decode().removeprefix("stop:req:") for key in client.scan_iter("stop:req:*"))


def test_where_nothing_runs_all_is_proven_at_once_and_everything_is_paused_and_asked(ground):
    ground.host("alpha", A)
    ground.client.sadd(hosts_keys.QUEUES_KNOWN, "pi-jobs@beta", "no queue of ours")

    found = ground.stop()

    assert (found.is_proven, found.fates, found.gaps) == (True, (), {})
    assert found.asked == ("alpha", "beta")
    assert asked(ground.client) == ["alpha", "beta"]
    assert switches.read(ground.client, ("pi-jobs",)).fleet.reason == "fire"
    assert stop_shown.lines(found) == ["No container was running."]


def test_each_container_is_followed_until_its_engine_has_said_that_it_is_gone(ground):
    ground.host("alpha", A)
    ground.container(A, "pi-job-1")
    ground.container(A, "pi-job-2")
    ground.gone(A, "pi-job-1")
    ground.gone(A, "pi-job-2")

    found = ground.stop()

    assert found.is_proven
    assert fates(found) == {"pi-job-1": ("alpha", GONE, None), "pi-job-2": ("alpha", GONE, None)}
    assert stop_shown.lines(found) == [
        "alpha  pi-job-1  job local-1  confirmed gone",
        "alpha  pi-job-2  job local-1  confirmed gone",
        "2 of 2 containers are confirmed gone.",
    ]
    assert stop_shown.remedy(found) == ""


def test_why_one_is_not_confirmed_is_said_by_what_is_known_of_its_host(ground):
    ground.host("alpha", A, silent_ms=2_000)
    ground.host("beta", B, silent_ms=33_000)
    ground.host("gamma", C, silent_ms=3_600_000)
    for host_id, name in ((A, "a1"), (A, "a2"), (B, "b"), (C, "c"), (D, "d")):
        ground.container(host_id, name, deadline=now_ms(ground.client) + 60_000, job=f"job-{name}")
    ground.answers("alpha", a1=OPEN)
    ground.answers("gamma", c=OPEN)

    found = ground.stop(patience=replace(SOON, whole=0.2))

    assert not found.is_proven
    assert fates(found) == {
        "a1": ("alpha", OPEN, Why.STOPPING),
        "a2": ("alpha", OPEN, Why.UNANSWERED),
        "b": ("beta", OPEN, Why.UNANSWERED),
        "c": ("gamma", OPEN, Why.HOST_SILENT),
        "d": (None, OPEN, Why.HOST_UNKNOWN),
    }
    said = "\n".join(stop_shown.lines(found))
    for part in (
        "alpha is stopping it, and its engine has not said that it is gone",
        "beta has not answered; its last beat was 33 s ago",
        "gamma has been silent for 1 h",
        f"{D}  d   job job-d   unconfirmed: nobody knows the worker of this host-id",
        "0 of 5 containers are confirmed gone.",
    ):
        assert part in said
    remedy = stop_shown.remedy(found)
    assert "`docker ps --filter label=dev.pi-dispatch.host` on alpha, beta, gamma, " + D in remedy
    assert "ends itself at its deadline" in remedy


def test_an_answer_to_an_older_request_counts_for_nothing(ground):
    ground.host("alpha", A)
    ground.container(A, "a")
    stops.answer(ground.client, host="alpha", request_id="older", containers={"a": GONE})

    assert fates(ground.stop(patience=ONCE)) == {"a": ("alpha", OPEN, Why.UNANSWERED)}


@pytest.mark.parametrize("registry", ["forgotten", "unreadable"])
def test_a_host_that_no_list_knows_is_found_by_its_containers_and_asked(ground, registry):
    host = Host(ground.client)
    host.enqueue("local-1")
    host.steps.begin(host.claim(), container="pi-job-local-1", deadline_ms=NEVER)
    if registry == "unreadable":
        ground.client.set(hosts_keys.HOSTS_LIVE, "x")

    found = ground.stop(patience=replace(SOON, whole=0.1))

    assert asked(ground.client) == ["alpha"]
    assert fates(found) == {"pi-job-local-1": ("alpha", OPEN, Why.UNANSWERED)}
    assert list(found.gaps) == (["registry"] if registry == "unreadable" else [])
    notes = stop_shown.asked(found)
    assert ("registry could not be read (wrong-type)" in " ".join(notes)) == (registry == "unreadable")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            {"taker": "other/1", "host": "other", "status": "queued"}, id="somebody else has the job by now"
        ),
        pytest.param({"host": "two words"}, id="no worker's name"),
    ],
)
def test_whose_container_it_is_a_job_tells_only_of_its_own_attempt_and_by_a_name(ground, said):
    host = Host(ground.client)
    host.enqueue("local-1")
    host.steps.begin(host.claim(), container="pi-job-local-1", deadline_ms=NEVER)
    ground.client.hset(keys.job(b"local-1"), mapping=said)

    found = ground.stop(patience=ONCE)

    assert fates(found) == {"pi-job-local-1": (None, OPEN, Why.HOST_UNKNOWN)}
    assert asked(ground.client) == []


def test_what_appears_while_waiting_counts_too(ground):
    ground.host("alpha", A)
    ground.host("beta", B)
    ground.container(A, "a")
    ground.meanwhile.append(lambda found: ground.container(B, "late"))
    ground.meanwhile.append(lambda found: containers.forget(ground.client, A, ["a"]))

    found = ground.stop(patience=replace(SOON, whole=0.3))

    assert fates(found) == {"a": ("alpha", GONE, None), "late": ("beta", OPEN, Why.UNANSWERED)}


LONG_OVER, HOUR = 40 * 60_000, 3_600_000


@pytest.mark.parametrize(
    ("silent_ms", "over_ms", "counts"),
    [
        pytest.param(0, LONG_OVER, True, id="lives, its clock is behind"),
        pytest.param(HOUR - 60_000, LONG_OVER, True, id="lived lately"),
        pytest.param(None, 10**10, True, id="nobody knows how long it has been silent"),
        pytest.param(HOUR + 60_000, containers.KEPT_AFTER_DEADLINE_MS - 10_000, True, id="may run yet"),
        pytest.param(HOUR + 60_000, LONG_OVER, False, id="has vanished"),
    ],
)
def test_only_what_a_vanished_host_began_is_left_out_as_over(ground, silent_ms, over_ms, counts):
    if silent_ms is not None:
        ground.host("alpha", A, silent_ms=silent_ms)
    ground.container(A, "old", deadline=now_ms(ground.client) - over_ms)

    found = ground.stop(patience=ONCE)

    assert (found.is_proven, list(fates(found)), found.over) == (
        (False, ["old"], 0) if counts else (True, [], 1)
    )
    assert ("1 container is left out" in " ".join(stop_shown.asked(found))) is not counts


def test_what_another_host_forgets_of_a_vanished_one_is_never_called_confirmed(ground):
    ground.host("alpha", A, silent_ms=HOUR - 200)
    ground.container(A, "old", deadline=now_ms(ground.client) - LONG_OVER)

    def forget(found):
        time.sleep(0.3)
        assert containers.forget_vanished(ground.client, [A], now_ms=now_ms(ground.client)) == 1

    ground.meanwhile.append(forget)

    assert ground.stop().fates == ()


def test_nobody_vanishes_because_the_registry_cannot_be_read(ground):
    ground.host("alpha", A, silent_ms=HOUR - 200)
    ground.container(A, "old", deadline=now_ms(ground.client) - LONG_OVER)
    ground.meanwhile.append(lambda found: ground.client.set(hosts_keys.HOSTS_LIVE, "x"))

    assert list(fates(ground.stop(patience=replace(SOON, whole=0.4)))) == ["old"]


@pytest.mark.parametrize(
    ("only", "blind"), [(None, True), ("alpha", True), ("beta", False)], ids=["fleet", "its host", "another"]
)
def test_a_list_that_cannot_be_read_is_told_and_proves_nothing(ground, only, blind):
    ground.host("alpha", A)
    ground.host("beta", B)
    ground.client.set(keys.containers(A), "x")

    found = ground.stop(only=only, patience=ONCE)

    assert (found.is_proven, found.fates, found.gaps) == (
        not blind,
        (),
        {keys.containers(A): "wrong-type"} if blind else {},
    )
    if blind:
        said = " ".join(stop_shown.asked(found))
        assert f"more containers than are named here: containers:{A} could not be read (wrong-type)" in said
        assert stop_shown.lines(found) == ["No container was found."]
        assert f"on {A} shows what runs there" in stop_shown.remedy(found)


def test_what_was_listed_stays_unconfirmed_when_its_list_cannot_be_read_any_more(ground):
    ground.container(A, "a")
    ground.meanwhile.append(lambda found: ground.client.delete(keys.containers(A)))
    ground.meanwhile.append(lambda found: ground.client.set(keys.containers(A), "x"))

    assert fates(ground.stop(patience=replace(SOON, whole=0.1))) == {"a": (None, OPEN, Why.HOST_UNKNOWN)}


def test_a_server_that_has_not_loaded_yet_has_confirmed_nothing():
    with served() as ground:
        ground.host("alpha", A)
        ground.container(A, "a")
        ground.client.config_set("replica-serve-stale-data", "no")
        # From then on it answers as one that loads: it refuses to read.
        ground.meanwhile.append(lambda found: ground.client.replicaof("127.0.0.1", "1"))

        found = ground.stop(patience=replace(SOON, whole=0.2))

    assert (found.is_proven, fates(found)) == (False, {"a": ("alpha", OPEN, Why.UNANSWERED)})
    assert list(found.gaps) == [VALKEY]


@pytest.mark.parametrize("lost", [False, True], ids=["resumed", "Valkey has lost its data"])
@pytest.mark.parametrize("only", [None, "alpha"])
def test_once_the_switch_is_off_nothing_more_is_confirmed(ground, lost, only):
    ground.host("alpha", A)
    ground.container(A, "a")

    def end(found):
        if lost:
            ground.client.flushdb()
        switches.resume_all(ground.client)
        switches.undrain(ground.client, "alpha")
        ground.client.delete(keys.containers(A))

    ground.meanwhile.append(end)

    found = ground.stop(only=only, patience=replace(SOON, whole=0.1))

    assert (found.gaps, found.is_proven) == ({SWITCH: "ended"}, False)
    assert fates(found) == {"a": ("alpha", OPEN, Why.UNANSWERED)}
    assert "may take jobs" in stop_shown.switched(found)


@pytest.mark.parametrize(("only", "counts"), [(None, True), ("beta", True), ("gamma", False)])
def test_workers_that_share_a_host_id_prove_nothing_of_each_other(ground, only, counts):
    for name in ("alpha", "beta"):
        register(ground.client, name, hostId=A)
    register(ground.client, "gamma", hostId=C)

    assert ground.stop(only=only, patience=ONCE).gaps == ({SHARED: "alpha+beta"} if counts else {})


def test_one_host_alone_is_drained_asked_and_watched(ground):
    ground.host("alpha", A)
    ground.host("beta", B)
    ground.container(A, "a")
    ground.container(B, "b")
    ground.gone(B, "b")

    found = ground.stop(only="beta")

    assert (found.is_proven, found.asked, found.is_known) == (True, ("beta",), True)
    assert fates(found) == {"b": ("beta", GONE, None)}
    assert asked(ground.client) == ["beta"]
    held = switches.read(ground.client, ("pi-jobs",), host="beta")
    assert (held.fleet, held.drain.reason) == (None, "fire")
    assert "`manage.py undrain beta`" in stop_shown.switched(found)


def test_whose_container_nobody_knows_may_be_of_the_one_host(ground):
    ground.host("beta", B)
    ground.container(B, "b")
    ground.container(D, "lost", job="nobody knows it")

    found = ground.stop(only="alpha", patience=ONCE)

    assert (found.is_proven, fates(found)) == (False, {"lost": (None, OPEN, Why.HOST_UNKNOWN)})


@pytest.mark.parametrize("name", ["alpha", "new"])
def test_a_renamed_host_is_meant_by_both_names(ground, name):
    host = Host(ground.client, host_id=A)
    host.enqueue("local-1")
    host.steps.begin(host.claim(), container="a", deadline_ms=NEVER)
    ground.host("new", A)

    assert fates(ground.stop(only=name, patience=ONCE)) == {"a": (name, OPEN, Why.UNANSWERED)}
    assert ground.stop(patience=ONCE).asked == ("alpha", "new")


def test_a_host_never_heard_of_is_drained_and_asked_about_and_proves_nothing(ground):
    ground.host("beta", B)

    found = ground.stop(only="betta")

    assert (found.is_proven, found.is_known, found.seconds < SOON.whole) == (False, False, True)
    assert "is the name right?" in " ".join(stop_shown.asked(found))
    assert stop_shown.lines(found) == ["No container was found."]
    assert "`manage.py undrain betta` takes back" in stop_shown.remedy(found)
    assert switches.undrain(ground.client, "betta") == switches.Undrained(True, False, True)


def test_a_host_that_is_heard_of_while_it_is_asked_is_known(ground):
    ground.container(D, "a")
    ground.meanwhile.append(lambda found: ground.host("beta", D))
    ground.gone(D, "a")

    found = ground.stop(only="beta")

    assert (found.is_proven, fates(found)) == (True, {"a": ("beta", GONE, None)})


def lost(ground, *, name="alpha", host_id=A, how="deleted"):
    """A job that runs on a host whose list of containers is lost."""
    host = Host(ground.client, name=name, host_id=host_id, queue=f"pi-jobs@{name}")
    host.enqueue("local-1")
    claimed = host.claim()
    host.steps.begin(claimed, container="pi-job-1", deadline_ms=NEVER)
    ground.client.delete(keys.containers(host_id))
    if how == "emptied":
        ground.container(host_id, "another")
        ground.gone(host_id, "another")
    return host, claimed


def sweep(host):
    other = Host(host.client, "beta", B)
    for _ in range(3):
        other.sweeper.tick([host.queue])
        other.clock.seconds += 10


@pytest.mark.parametrize("how", ["deleted", "emptied"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("only", "counts"), [(None, True), ("alpha", True), ("new", True), ("beta", False)])
def test_a_job_that_runs_is_unconfirmed_though_no_list_names_its_container(ground, how, known, only, counts):
    lost(ground, how=how)
    ground.host("beta", B)
    if known or only == "new":
        ground.host("new" if only == "new" else "alpha", A)

    found = ground.stop(only=only, patience=replace(SOON, whole=0.1))

    named = {name: why for name, why in fates(found).items() if name != "another"}
    assert named == ({"": ("new" if only == "new" else "alpha", OPEN, Why.UNANSWERED)} if counts else {})
    assert found.is_proven is not counts
    if counts and how == "deleted":
        assert (found.asked, found.gaps) == ((only,) if only else ("alpha", "beta"), {})
        assert "(container in no list)  job local-1  unconfirmed" in stop_shown.lines(found)[0]
        (container,) = stop_shown.as_data(found)["containers"]
        assert (container["container"], container["hostId"], container["job"]) == (None, A, "local-1")


@pytest.mark.parametrize(
    ("end", "proven"),
    [
        pytest.param(lambda host, claimed: host.end(claimed), True, id="its worker ended it"),
        pytest.param(lambda host, claimed: host.again(claimed), True, id="its worker tries it again"),
        pytest.param(lambda host, claimed: sweep(host), False, id="another took it for lost"),
        pytest.param(lambda host, claimed: host.client.flushdb(), False, id="everything was lost"),
    ],
)
def test_only_its_own_worker_settles_a_job_without_a_list(ground, end, proven):
    ground.host("alpha", A)
    host, claimed = lost(ground)
    ground.meanwhile.append(lambda found: end(host, claimed))

    found = ground.stop(patience=replace(SOON, whole=10 if proven else 0.2))

    assert hash_of(ground.client, "local-1").get("status") != "started"
    assert (found.is_proven, [one.state for one in found.fates]) == (proven, [GONE if proven else OPEN])
    assert ("its worker has ended the job" in stop_shown.lines(found)[0]) is proven


def test_a_list_lost_meanwhile_confirms_nothing_of_what_still_runs(ground):
    ground.host("alpha", A)
    host = Host(ground.client, host_id=A)
    host.enqueue("local-1")
    host.start()
    ground.meanwhile.append(lambda found: ground.client.delete(keys.containers(A)))

    found = ground.stop(patience=replace(SOON, whole=0.1))

    assert fates(found) == {"pi-job-local-1": ("alpha", OPEN, Why.UNANSWERED)}


def test_what_runs_in_a_queue_that_cannot_be_read_is_a_gap(ground):
    ground.client.set(keys.queue_keys("pi-jobs").started, "x")

    found = ground.stop(patience=ONCE)

    assert (found.gaps, found.is_blind) == ({"rq:wip:pi-jobs": "wrong-type"}, True)


def test_hostile_names_and_entries_are_shown_as_they_can_be_and_never_asked(ground):
    ground.client.hset(hosts_keys.HOSTS_KNOWN, "eeee", json.dumps({"name": "a b:@", "beat": 5}))
    ground.client.hset(hosts_keys.HOSTS_KNOWN, "ffff", "x" * 10_000)
    ground.client.hset(keys.containers("eeee"), b"\xff\x1b[2J", b"\xff")
    ground.client.set(keys.containers("wrong"), "x")
    ground.container("ffff", "pi-job-1", job="no such\njob")

    found = ground.stop(patience=ONCE)

    assert asked(ground.client) == []
    assert {one.host for one in found.fates} == {None}
    lines = stop_shown.lines(found)
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert json.loads(json.dumps(stop_shown.as_data(found)))["proven"] is False


def test_repeating_it_asks_anew_and_finds_the_same(ground):
    ground.host("alpha", A)
    ground.container(A, "a")

    first, second = ground.stop(patience=ONCE), ground.stop(patience=ONCE)

    assert fates(first) == fates(second)
    assert first.request.request_id != second.request.request_id
    assert stops.read(ground.client, host="alpha", containers="x", job_ids=()).stop == second.request


@contextmanager
def served():
    """A ground on a server that the test may spoil, with a client of little patience."""
    with own_server() as server:
        client = redis.Redis.from_url(server.url, socket_timeout=0.2, retry=None)
        try:
            yield Ground(client)
        finally:
            client.close()


SHORT = replace(SOON, first=1)


def test_a_server_that_never_answers_is_given_up_soon():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ground = Ground(redis.Redis(port=silent.getsockname()[1], socket_timeout=0.1, retry=None))
        began = time.monotonic()
        with pytest.raises(redis.exceptions.TimeoutError):
            ground.stop(patience=SHORT)

    assert (time.monotonic() - began < 3, ground.faults) == (True, [("timeout", False)])


@pytest.mark.parametrize(
    ("spoil", "fault", "heard"),
    [
        pytest.param(
            lambda client: client.replicaof("127.0.0.1", "1"),
            redis.exceptions.ReadOnlyError,
            [("refused", False)],
            id="takes no writes",
        ),
        pytest.param(
            lambda client: client.config_set("requirepass", "x"),
            redis.exceptions.AuthenticationError,
            [],
            id="wants a password",
        ),
    ],
)
def test_a_server_that_refuses_the_request_is_given_up_soon(spoil, fault, heard):
    with served() as ground:
        spoil(ground.client)
        ground.client.connection_pool.disconnect()
        began = time.monotonic()
        with pytest.raises(fault):
            ground.stop(patience=SHORT)

    assert (time.monotonic() - began < 3, ground.faults) == (True, heard)


def test_a_request_whose_answer_was_lost_may_stand_and_is_insisted_on():
    with served() as ground:
        # Writes and scripts wait; everything else is answered.
        ground.client.client_pause(1200, all=False)

        found = ground.stop(patience=replace(SOON, first=0.1))

    assert (ground.faults, found.is_proven) == ([("timeout", True)], True)


def test_through_an_outage_it_goes_on_and_proves_nothing_that_it_could_not_see():
    with own_server() as server:
        client = redis.Redis.from_url(server.url, socket_timeout=0.3)
        ground = Ground(client)
        ground.host("alpha", A)
        ground.container(A, "a")
        ground.meanwhile.append(lambda found: server.kill())

        found = ground.stop(patience=replace(SOON, whole=0.5))

        assert (found.is_blind, found.is_proven) == (True, False)
        assert fates(found) == {"a": ("alpha", OPEN, Why.UNANSWERED)}
        assert "Valkey did not answer" in " ".join(stop_shown.asked(found))
        with pytest.raises(redis.exceptions.ConnectionError):
            ground.stop(patience=ONCE)
        client.close()


@pytest.mark.parametrize(
    ("gaps", "blind"),
    [({"registry": "x"}, False), ({"registry": "x", SCAN: "y"}, True), ({VALKEY: "x"}, True)],
)
def test_containers_may_be_missing_where_not_all_keys_were_seen_but_not_for_a_name(ground, gaps, blind):
    found = replace(ground.stop(), gaps=gaps)

    assert (found.is_blind, found.is_proven) == (blind, not blind)


def test_all_keys_are_looked_through_in_bounded_steps(valkey):
    with valkey.pipeline() as pipeline:
        for number in range(3000):
            pipeline.set(f"other:{number}", "")
        pipeline.execute()
    ids = {"aaaa", "\udcff"}
    valkey.hset("containers:aaaa", "a", "{}")
    valkey.hset(b"containers:\xff", "b", "{}")
    listing = containers.ListingHosts(valkey)

    listing.seek(seconds=0)
    assert not listing.is_whole
    # It goes on where it was.
    for _ in range(10):
        listing.seek(seconds=0)
    assert (listing.found, listing.is_whole) == (ids, True)
    assert {len(listed) for listed in containers.begun_everywhere(valkey, ids).values()} == {1}
