"""What keeps a queue's jobs from being taken, drained and vanished hosts included, and who says it."""

from __future__ import annotations

import json

import pytest

from dispatch.console import lookup, queue_shown
from dispatch.console.obstacles import Drain, QueueFacts, obstacle
from dispatch.console.waiting import sentence
from hosts import keys, switches
from hosts.switches import PauseFlag
from tests.dispatch.queuekit import QUEUE, Host, age_beat, now_ms

NOW = 1_000_000_000_000
OWN = "pi-jobs@alpha"
A, B = "0123456789abcdea", "0123456789abcdeb"
BY_ANN = PauseFlag(by="ann", reason="new disk", since_ms=1, until_ms=None)
PAUSED = PauseFlag(by="bob", reason="", since_ms=1, until_ms=NOW + 5)
UNTIL = PauseFlag(by="", reason="", since_ms=1, until_ms=NOW + 60_000)


def facts(queue=QUEUE, *, beats=("a",), drained=(), blind=(), fleet=None, last_beat_ms=None, dead=()):
    return QueueFacts(
        queue=queue,
        now_ms=NOW,
        fleet=fleet,
        beats={**dict.fromkeys(beats, NOW), **dict.fromkeys(dead, NOW - 600_000)},
        drained=dict(drained),
        blind=dict(blind),
        last_beat_ms=last_beat_ms,
    )


ALPHA, BETA = ("a", Drain("alpha", BY_ANN)), ("b", Drain("beta", UNTIL))


@pytest.mark.parametrize(
    ("given", "reason", "said"),
    [
        (facts(), None, None),
        (facts(beats=("a", "b"), drained=(ALPHA,)), None, None),
        (facts(beats=("a", "b"), blind=(("a", "alpha"),)), None, None),
        (
            facts(beats=("a", "b"), blind=(("a", "alpha"),), drained=(BETA,), dead=("old",)),
            "engine-silent",
            (
                "The worker alpha takes no job: its container engine does not answer; look after the engine"
                " there; jobs are taken as soon as it answers."
            ),
        ),
        (
            facts(beats=("a", "b"), blind=(("a", "alpha"), ("b", "beta"))),
            "engine-silent",
            (
                "The workers alpha, beta take no job: their container engines do not answer; look after the"
                " engine there; jobs are taken as soon as it answers."
            ),
        ),
        (
            facts(drained=(ALPHA,)),
            "drained",
            (
                "The worker alpha, which alone takes jobs from pi-jobs, is drained by ann: new disk;"
                " `manage.py undrain alpha` ends that."
            ),
        ),
        (
            facts(beats=("a", "b"), drained=(ALPHA, BETA)),
            "drained",
            (
                "All workers that take jobs from pi-jobs are drained: alpha, beta;"
                " `manage.py undrain HOST` ends that for one of them."
            ),
        ),
        (
            facts(OWN, drained=(("a", Drain("alpha")),), dead=("old",)),
            "drained",
            (
                "The worker alpha, which alone takes jobs from pi-jobs@alpha, is drained; `manage.py undrain"
                " alpha` ends that, or have others do its jobs: `manage.py reroute alpha`."
            ),
        ),
        (
            facts(OWN, beats=(), last_beat_ms=NOW - 3_600_000),
            "no-worker",
            (
                "The worker alpha, which alone takes jobs from pi-jobs@alpha, is not there, silent for 1 h;"
                " start it there with `manage.py runworker`, or have others do its jobs:"
                " `manage.py reroute alpha`."
            ),
        ),
        (
            facts(beats=(), dead=("a",), drained=(ALPHA,)),
            "no-worker",
            "No worker is there to take jobs from pi-jobs; start one with `manage.py runworker`.",
        ),
        (
            facts(drained=(ALPHA,), fleet=PAUSED),
            "fleet-paused",
            "The whole fleet is paused by bob; `manage.py resume --fleet-only` ends that.",
        ),
    ],
)
def test_the_first_thing_in_the_way_is_said_with_what_ends_it(given, reason, said):
    found = obstacle(given)

    assert (found and found.reason) == reason
    assert (found and sentence(str(found))) == said


def test_a_drain_that_ends_by_itself_says_when_the_first_of_several_does():
    found = obstacle(facts(beats=("a", "b"), drained=(ALPHA, BETA)))

    assert found.until_ms == NOW + 60_000


class Fleet:
    """Workers as the registry and the queues show them."""

    def __init__(self, client):
        self.client = client

    def worker(self, name, host_id, *queues, row=True):
        for queue in queues:
            host = Host(self.client, name=name, host_id=host_id, queue=queue)
            host.beats.register()
        if row:
            beat = now_ms(self.client)
            self.client.sadd(keys.HOSTS_LIVE, name)
            self.client.hset(
                keys.host_row(name),
                mapping={"name": name, "hostId": host_id, "boot": host.owner.boot, "beatAt": beat},
            )
            self.client.hset(keys.HOSTS_KNOWN, host_id, json.dumps({"name": name, "beat": beat}))
        return host


@pytest.fixture
def fleet(valkey):
    return Fleet(valkey)


def reasons(client, *queues):
    """The obstacle of each queue, by the three ways that tell it."""
    views = lookup.view(client, queues, limit=5, unreadable={})
    told = [queue["blocked"] and queue["blocked"]["reason"] for queue in queue_shown.as_data(views)["queues"]]
    waits = [lookup.why_it_waits(client, queue) for queue in queues]
    assert [bool(one) for one in told] == [bool(one) for one in waits]
    return told


def test_a_shared_queue_is_held_up_when_every_worker_that_takes_from_it_is_drained(fleet, valkey):
    fleet.worker("alpha", A, QUEUE, OWN)
    fleet.worker("beta", B, QUEUE)
    assert reasons(valkey, QUEUE, OWN) == [None, None]

    switches.drain(valkey, "alpha", by="ann", reason="")
    assert reasons(valkey, QUEUE, OWN) == [None, "drained"]

    switches.drain(valkey, "beta", by="ann", reason="")
    assert reasons(valkey, QUEUE, OWN) == ["drained", "drained"]

    switches.undrain(valkey, "alpha")
    assert reasons(valkey, QUEUE, OWN) == [None, None]


def test_a_host_whose_row_is_lost_is_drained_all_the_same_as_to_its_own_queue(fleet, valkey):
    fleet.worker("alpha", A, OWN, row=False)
    switches.drain(valkey, "alpha", by="ann", reason="")
    valkey.set(keys.HOSTS_LIVE, "no set")

    assert reasons(valkey, OWN) == ["drained"]


def test_a_host_that_is_gone_is_named_with_its_silence_and_reroute(fleet, valkey):
    host = fleet.worker("alpha", A, OWN)
    age_beat(valkey, host, 3600)
    beat = now_ms(valkey) - 3_600_000
    valkey.hset(keys.HOSTS_KNOWN, A, json.dumps({"name": "alpha", "beat": beat}))
    valkey.delete(keys.host_row("alpha"))
    host.enqueue("local-1")

    found = lookup.why(valkey, "local-1")

    assert found.reason == "no-worker"
    assert "is not there, silent for 1 h" in found.sentence
    assert "`manage.py reroute alpha`" in found.remedy


def test_a_job_in_line_and_one_that_sleeps_say_that_nobody_takes_it(fleet, valkey):
    host = fleet.worker("alpha", A, QUEUE)
    switches.drain(valkey, "alpha", by="ann", reason="new disk")
    host.enqueue("local-1")

    found = lookup.why(valkey, "local-1")

    assert found.reason == "drained"
    assert found.remedy == "`manage.py undrain alpha` ends that."
    valkey.delete(keys.drain("alpha"))
    host.put_off(host.claim(), until_ms=now_ms(valkey) + 60_000)
    switches.drain(valkey, "alpha", by="ann", reason="new disk")
    (note,) = lookup.why(valkey, "local-1").notes
    assert note.startswith("Besides, the worker alpha, which alone takes jobs from pi-jobs, is drained")


def test_many_queues_are_looked_up_in_as_many_round_trips_as_few(fleet, valkey):
    fleet.worker("alpha", A, QUEUE)
    switches.drain(valkey, "alpha", by="", reason="")
    counts = []
    for hosts in (1, 30):
        queues = [f"pi-jobs@h{number}" for number in range(hosts)]
        counted = Counting(valkey)
        lookup.circumstances.read(counted, queues)
        counts.append(counted.calls)
    assert counts == [3, 3]


class Counting:
    """A client that counts what it is asked."""

    def __init__(self, client):
        self._client, self.calls = client, 0

    def register_script(self, text):
        script = self._client.register_script(text)

        def call(**options):
            self.calls += 1
            return script(**options)

        return call

    def eval(self, *arguments):
        self.calls += 1
        return self._client.eval(*arguments)
