"""`manage.py reroute`: what waits for a dead or drained host goes elsewhere; the rest is told with why."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import redis

from dispatch.console.reroute import reroute, wished
from dispatch.console.rerouted import as_data, lines
from dispatch.queue import keys
from dispatch.queue.popper import Claimed
from hosts import switches
from pidispatch_site.errors import ConfigurationError, OperationalError
from tests.dispatch.consolekit import NOBODY, Case, Console, run_all
from tests.dispatch.queuekit import JOB, Host, age_beat, assert_sound, everything, hash_of, listed, now_ms
from tests.harness.forge_jobs import forge_job

OWN = "pi-jobs@alpha"


@pytest.fixture
def host(valkey):
    """A host that is dead: its queue is there, its last beat old."""
    host = Host(valkey, queue=OWN)
    host.beats._beat(())
    age_beat(valkey, host, 1000)
    return host


def appear(client, name, *, age_s=0, **fields):
    row = {"name": name, "routes": "true", "beatAt": round(now_ms(client) - age_s * 1000)}
    client.hset(f"host:h:{name}", mapping={**row, **fields})
    client.sadd("host:live", name)


def enqueue_forge(host, *deliveries, **fields):
    for delivery in deliveries:
        job_id, job = forge_job("acme/site", delivery)
        host.producer.enqueue(host.queue, job_id, replace(job, **fields))


def ask(client, to=None, *, same_folders=False, is_tried=False):
    return reroute(client, wished("alpha", to, same_folders=same_folders, is_tried=is_tried))


def test_what_can_goes_where_it_can_be_done_and_the_rest_is_told_with_why(valkey, host):
    appear(valkey, "beta", caps="s:deploy")
    appear(valkey, "gamma")
    host.enqueue("local-1", "local-2", "local-3")
    host.start()
    host.claim()
    enqueue_forge(host, "1", "2")
    enqueue_forge(host, "3", secrets_profile="deploy")
    enqueue_forge(host, "4", secrets_profile="elsewhere")
    before = everything(valkey)

    tried = ask(valkey, is_tried=True)

    assert everything(valkey) == before
    found = ask(valkey)
    assert found == replace(tried, is_tried=False)
    assert found.moved == {"pi-jobs": ("gh-1", "gh-2"), "pi-jobs@beta": ("gh-3",)}
    assert (listed(valkey), listed(valkey, OWN)) == (["gh-1", "gh-2"], ["local-3", "gh-4"])
    assert found.waiting == 3
    assert next(lines(tried)) == "Would move 3 jobs away from pi-jobs@alpha."
    lost = "1 job stays: it was started on alpha; a live worker records it as stalled, never run again."
    back = (
        "1 job stays: alpha had it in hand; a live worker puts it back within a minute, so repeat this then."
    )
    assert list(lines(found)) == [
        "Moved 3 jobs away from pi-jobs@alpha.",
        "  2 to pi-jobs",
        "  1 to pi-jobs@beta",
        "1 job stays: its folder is on alpha; --local-folders says that it is the same where the job goes.",
        "  local-3",
        "1 job stays: it needs s:elsewhere, and no live host has that.",
        "  gh-4",
        lost,
        "  local-1",
        back,
        "  local-2",
    ]
    data = as_data(found)
    assert [(one["job"], one["reason"]) for one in data["stayed"]] == [
        ("local-3", "folder"),
        ("gh-4", "needs"),
        ("local-1", "started"),
        ("local-2", "in-hand"),
    ]


def test_a_job_sent_for_what_a_host_has_stays_until_another_has_it(valkey, host):
    host.producer.enqueue(OWN, "local-1", JOB, needs=["w:green"])
    appear(valkey, "beta", caps="w:red")

    kept = ask(valkey, same_folders=True)
    to_beta = ask(valkey, "beta", same_folders=True)
    appear(valkey, "gamma", caps="w:green")
    found = ask(valkey, same_folders=True)

    assert [one.why for one in (*kept.stayed, *to_beta.stayed)] == [
        "it needs w:green, and no live host has that",
        "it needs w:green, and beta does not have that",
    ]
    assert (dict(kept.moved), dict(to_beta.moved)) == ({}, {})
    assert (dict(found.moved), found.stayed) == ({"pi-jobs@gamma": ("local-1",)}, ())
    assert hash_of(valkey, "local-1")["needs"] == "w:green"


def test_a_second_time_finds_what_was_put_back_meanwhile(valkey, host):
    host.enqueue("local-1", "local-2")
    host.claim()
    ask(valkey, same_folders=True)
    peer = Host(valkey, name="beta", host_id="bbbb")
    peer.sweeper.tick([OWN])

    found = ask(valkey, same_folders=True)

    assert (dict(found.moved), found.stayed) == ({"pi-jobs": ("local-1",)}, ())
    assert listed(valkey) == ["local-1", "local-2"]
    assert list(lines(ask(valkey))) == ["Moved 0 jobs away from pi-jobs@alpha."]


def test_a_sleeping_job_keeps_its_hour_and_is_promoted_where_it_went(valkey, host):
    host.enqueue("local-1")
    host.put_off(host.claim(), 4_000_000_000_000)

    ask(valkey, same_folders=True)

    assert valkey.zscore(keys.queue_keys("pi-jobs").scheduled, "local-1") == 4_000_000_000
    assert hash_of(valkey, "local-1")["until"] == "4000000000000"
    assert_sound(valkey, ["local-1"])


def test_what_comes_in_while_jobs_are_moved_is_moved_too(valkey_url, host):
    late = ["2", "3"]

    class Client(redis.Redis):
        def execute_command(self, *words, **options):
            is_move = words[0] == "EVALSHA" and keys.queue_keys(OWN).jobs in words
            if is_move and late:
                enqueue_forge(host, late.pop(0))
            return super().execute_command(*words, **options)

    enqueue_forge(host, "1")
    client = Client(connection_pool=redis.ConnectionPool.from_url(valkey_url))

    assert ask(client).moved == {"pi-jobs": ("gh-1", "gh-2", "gh-3")}
    client.connection_pool.disconnect()


def test_a_host_that_comes_back_takes_what_is_left_and_nothing_that_moved(valkey, host):
    appear(valkey, "alpha", age_s=60)
    host.enqueue("local-1")
    enqueue_forge(host, "1")

    found = ask(valkey)
    popped = host.popper.pop()

    assert isinstance(popped, Claimed)
    assert popped.job_id == "local-1"
    assert Host(valkey, name="beta", host_id="bbbb").claim().job_id == "gh-1"
    [note] = found.notes
    assert note.startswith("alpha was heard of 1 min ago: should it come back, it takes what is still")


def test_a_drained_host_that_lives_is_left_its_jobs_in_hand(valkey, host):
    appear(valkey, "alpha")
    host.beats._beat(())
    host.enqueue("local-1", "local-2")
    host.start()
    host.claim()
    switches.drain(valkey, "alpha", by="ann", reason="")

    found = ask(valkey)

    assert [one.why for one in found.stayed] == ["it runs on alpha", "alpha has it in hand"]


def test_it_is_said_that_a_drained_host_lets_them_wait(valkey, host):
    enqueue_forge(host, "1")
    appear(valkey, "beta")
    switches.drain(valkey, "beta", by="ann", reason="")

    assert ask(valkey, "beta").notes == ("beta is drained: its jobs wait until `manage.py undrain beta`.",)


def alive_by_its_row(client, host):
    appear(client, "alpha")


def alive_by_its_beat(client, host):
    age_beat(client, host, 44)


def no_registry(client, host):
    client.set("host:live", "x")


REFUSED = {
    "alive by its row": (alive_by_its_row, None, "alpha is alive and would .* `manage.py drain alpha` first"),
    "alive by its beat": (alive_by_its_beat, None, "alpha is alive"),
    "registry unreadable": (no_registry, None, r"cannot be read \(wrong-type\)"),
    "to nobody known": (None, "zeta", r"zeta is not alive.*queue of its own: beta\."),
    "to one that is late": (None, "late", "late is not alive"),
    "to one without a queue": (None, "bare", r"bare has no queue of its own \(pi-jobs only\)"),
}


@pytest.mark.parametrize(("spoil", "to", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_refused_and_nothing_moves(valkey, host, spoil, to, says):
    enqueue_forge(host, "1")
    appear(valkey, "beta")
    appear(valkey, "late", age_s=50)
    appear(valkey, "bare", routes="false")
    if spoil:
        spoil(valkey, host)

    with pytest.raises(OperationalError, match=says):
        ask(valkey, to)

    assert listed(valkey, OWN) == ["gh-1"]


def test_a_host_of_that_name_without_a_queue_of_its_own_is_not_in_the_way(valkey, host):
    enqueue_forge(host, "1")
    appear(valkey, "alpha", routes="false")

    assert ask(valkey).moved == {"pi-jobs": ("gh-1",)}


def test_a_name_that_nobody_knows_is_told_with_those_that_are(valkey, host):
    appear(valkey, "beta")

    with pytest.raises(OperationalError, match=r"No host alpah is known.* Known are: .*beta"):
        reroute(valkey, wished("alpah", None, same_folders=False, is_tried=False))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a@b", None), "'a@b' is no worker's name"),
        (("a", "b c"), "'b c'"),
        (("a", "a"), "--to names a itself"),
    ],
)
def test_names_that_cannot_be_meant_are_refused(words, says):
    with pytest.raises(ConfigurationError, match=says):
        wished(*words, same_folders=False, is_tried=False)


def test_the_command_says_it_to_people_and_to_programs(valkey, valkey_url, host, tmp_path):
    console = Console(tmp_path / "home", valkey_url)
    enqueue_forge(host, "1")
    host.enqueue("local-1")
    broken = {"PI_CONCURRENCY": "none"}
    cases = {
        "nobody there": Case(
            words=["reroute", "alpha"],
            changes={"VALKEY_URL": NOBODY},
            code=1,
            says="Not confirmed as rerouted: pi-jobs@alpha",
        ),
        "one stays": Case(
            words=["reroute", "alpha", "--to", "shared", "--json"],
            changes=broken,
            code=1,
            says="1 waiting job stays on pi-jobs@alpha",
        ),
    }

    said = run_all(console, cases)

    for name, case in cases.items():
        assert (said[name].code, said[name].is_plain) == (case.code, True), said
        assert case.says in said[name].err
    data = json.loads(said["one stays"].out)
    assert data == as_data(replace(ask(valkey), moved={"pi-jobs": ("gh-1",)}))
    assert listed(valkey) == ["gh-1"]
