"""`manage.py stop`, `cancel`, `drain`, `undrain`: what they say where, and how they end."""

from __future__ import annotations

import io
import json
import re
import socket
import threading

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from dispatch.queue import containers
from hosts import keys, stops, switches
from pidispatch_site.errors import PidispatchError
from pidispatch_site.worker_name import defaulted
from tests.dispatch.consolekit import NOBODY, Case, Console, run_all
from tests.dispatch.queuekit import QUEUE, Host, now_ms
from tests.dispatch.test_command_switch import EVERYTHING_BROKEN
from tests.dispatch.test_console_queues import know, register

HOST_ID = "0123456789abcdef"


@pytest.fixture
def manage(settings, valkey, valkey_url):
    """Run a command in this process, as a shell would see it: exit code, stdout, stderr."""
    settings.PIDISPATCH_ENVIRONMENT = {"VALKEY_URL": valkey_url, "PI_WORKER_NAME": "here"}

    def run(*words):
        out, err = io.StringIO(), io.StringIO()
        code = 0
        try:
            call_command(*words, stdout=out, stderr=err)
        except PidispatchError as error:
            code = error.exit_code
            err.write(str(error))
        except CommandError:
            code = 2
        except SystemExit as end:
            code = end.code
        return code, out.getvalue(), err.getvalue()

    return run


def running(client, job_id="local-1"):
    """A job that runs on the host `there`, which is known and does not answer."""
    host = Host(client, name="there", host_id=HOST_ID)
    host.beats.register()
    register(client, "there", hostId=HOST_ID, boot=host.owner.boot, slotsUsed=1)
    know(client, HOST_ID, "there")
    host.enqueue(job_id)
    host.steps.begin(host.claim(), container=f"pi-job-{job_id}", deadline_ms=now_ms(client) + 60_000)
    return host


def test_stopping_works_when_everything_else_is_broken(tmp_path, valkey, valkey_url):
    console = Console(tmp_path / "home", valkey_url)
    running(valkey, "local-1")
    said = run_all(
        console,
        {
            words[0]: Case(words=words, code=code, says=says, changes=EVERYTHING_BROKEN)
            for words, code, says in [
                (("stop", "--timeout", "0", "--reason", b"in the \xff\nkitchen"), 1, "unconfirmed"),
                (("drain", "there"), 0, "takes no new job"),
                (("cancel", "nobody"), 2, "is not known there"),
                (("undrain", "elsewhere"), 0, "was not drained"),
            ]
        },
    )

    assert {name: one.code for name, one in said.items()} == {
        "stop": 1,
        "drain": 0,
        "cancel": 2,
        "undrain": 0,
    }
    assert all(one.is_plain for one in said.values())
    assert switches.read(valkey, (QUEUE,)).fleet.reason == "in the ? kitchen"


def test_a_stop_of_nothing_is_proven_and_what_was_paused_stays_so(manage, valkey, valkey_url):
    code, out, err = manage("stop", "--reason", "fire")

    assert (code, out.splitlines()) == (
        0,
        ["No container was running.", "The whole fleet is paused, until `manage.py resume --fleet-only`."],
    )
    assert err.startswith(f"Valkey: {valkey_url}")
    assert "Asked to stop what runs: nobody, no host is known." in err
    flag = switches.read(valkey, (QUEUE,)).fleet
    assert (flag.reason, flag.until_ms, "@" in flag.by) == ("fire", None, True)


def test_what_is_not_confirmed_is_listed_with_its_host_and_what_to_do(manage, valkey):
    running(valkey)

    code, out, err = manage("stop", "--timeout", "0")
    as_json = json.loads(manage("stop", "--timeout", "0", "--json")[1])

    assert code == 1
    assert out.splitlines()[0].startswith("there  pi-job-local-1  job local-1  unconfirmed: there has not")
    assert "Asked to stop what runs: there." in err
    assert "0 of 1 confirmed gone; waiting for there" in err
    assert "Repeating this command asks and looks again." in err
    (container,) = as_json["containers"]
    assert (container["host"], container["job"], container["state"]) == ("there", "local-1", "unconfirmed")
    assert (as_json["proven"], as_json["asked"]) == (False, ["there"])
    assert stops.read(valkey, host="there", containers="x", job_ids=()).stop.request_id == as_json["request"]


def test_what_goes_within_the_time_is_confirmed_and_the_command_ends_then(manage, valkey):
    running(valkey)

    def end():
        containers.forget(valkey, HOST_ID, ["pi-job-local-1"])
        valkey.hset("rq:job:local-1", "status", "finished")

    gone = threading.Timer(0.3, end)
    gone.start()

    code, out, _err = manage("stop", "--host", "there", "--timeout", "20")

    gone.join()
    assert (code, out.splitlines()) == (
        0,
        [
            "there  pi-job-local-1  job local-1  confirmed gone",
            "1 of 1 container is confirmed gone.",
            "there takes no job, until `manage.py undrain there`.",
        ],
    )
    assert switches.read(valkey, (QUEUE,)).fleet is None


def test_a_host_that_nobody_knows_is_no_proof(manage, valkey):
    code, _, err = manage("stop", "--host", "There")

    assert (code, "`manage.py undrain There` takes back" in err) == (1, True)
    taken_back = " The request to stop that came with its drain is taken back.\n"
    assert manage("undrain", "There")[1].endswith(taken_back)
    assert valkey.keys("*There*") == []


def test_a_running_host_is_drained_and_told_of_what_it_still_runs(manage, valkey, valkey_url):
    running(valkey)

    drained = manage("drain", "there", "--reason", "new disk")
    shown = switches.read(valkey, (QUEUE,), host="there").drain
    undrained = manage("undrain", "there")

    assert drained == (
        0,
        (
            f"there takes no new job on {valkey_url}, until `manage.py undrain there`. 1 job that it has goes"
            " on to the end.\n"
        ),
        "Jobs of pi-jobs@there wait for it; `manage.py reroute there` gives others what they can do.\n",
    )
    assert (shown.reason, shown.until_ms) == ("new disk", None)
    assert undrained == (0, f"there takes jobs again on {valkey_url}.\n", "")


@pytest.mark.parametrize(
    ("given", "note"),
    [
        pytest.param(lambda client: None, "No worker named there was ever seen here", id="unknown"),
        pytest.param(
            lambda client: client.hset(
                keys.HOSTS_KNOWN,
                HOST_ID,
                json.dumps({"name": "there", "beat": now_ms(client) - 7_200_000}),
            ),
            "there is not there, its last beat was 2 h ago; when it comes back it takes no job.",
            id="gone",
        ),
        pytest.param(
            lambda client: client.set(keys.HOSTS_LIVE, "x"),
            "the registry cannot be read (wrong-type)",
            id="registry unreadable",
        ),
    ],
)
def test_a_host_that_is_not_seen_is_drained_all_the_same(manage, valkey, given, note):
    given(valkey)

    code, out, err = manage("drain", "there", "--for", "2h")

    assert code == 0
    assert "until 20" in out
    assert note in err
    flag = switches.read(valkey, (QUEUE,), host="there").drain
    assert flag.until_ms - flag.since_ms == 7_200_000


def test_without_a_name_this_host_is_meant_by_its_own_name_or_the_machines(manage, valkey, settings):
    manage("drain")
    assert list(switches.drains(valkey, ("here",))) == ["here"]
    assert manage("undrain")[1].startswith("here takes jobs again")

    del settings.PIDISPATCH_ENVIRONMENT["PI_WORKER_NAME"]
    assert manage("undrain")[1].startswith(f"{defaulted(socket.gethostname)} was not drained")

    settings.PIDISPATCH_ENVIRONMENT["PI_WORKER_NAME"] = "two words"
    code, _, err = manage("drain")
    assert (code, "PI_WORKER_NAME" in err, "name the host" in err) == (2, True, True)


def test_a_drain_ended_under_a_pause_of_the_fleet_says_what_still_holds(manage, valkey):
    know(valkey, HOST_ID, "there")
    manage("stop", "--timeout", "0")
    manage("drain", "there")

    said = manage("undrain", "there")[2]
    assert "The whole fleet is paused all the same; `manage.py resume --fleet-only` ends that." in said
    assert "The fleet's request to stop stands for there" in said

    manage("resume")
    assert manage("undrain", "there")[2] == ""


def test_after_a_stop_every_command_names_the_one_that_ends_all_of_it(manage, valkey):
    Host(valkey).enqueue("local-1")
    know(valkey, HOST_ID, "there")

    stop = ("stop", "--timeout", "0")
    for words in (stop, ("why", "local-1"), ("queue",), ("fleet",), ("undrain", "there")):
        said = " ".join(" ".join(manage(*words)[1:]).split())
        assert set(re.findall("`manage.py (resume[^`]*)`", said)) == {"resume --fleet-only"}, words
    manage("resume", "--fleet-only")

    assert valkey.keys("stop:*") + valkey.keys("pause:*") == []


def test_jobs_are_cancelled_by_name_and_each_is_said_on_its_own(manage, valkey):
    host = Host(valkey)
    host.enqueue("local-1", "local-2")
    host.end(host.start())

    code, out, err = manage("cancel", "local-1", "local-2", "nobody")
    again = manage("cancel", "local-2")
    as_json = json.loads(manage("cancel", "local-1", "--json")[1])

    assert code == 1
    assert out == "Job local-2 was taken out of the queue: it never runs.\n"
    assert "Job local-1 is not there to be cancelled any more: completed." in err
    assert "Job nobody is not known there" in err
    assert again[0] == 2
    assert as_json["jobs"][0]["outcome"] == "completed"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("stop", "--host", "a b"), "'a b' is no worker's name"),
        (("drain", "x" * 65), "1 to 64 characters"),
        (("undrain", ""), "is no worker's name"),
        (("stop", "--timeout", "soon"), ""),
        (("stop", "--timeout", "99999"), ""),
        (("drain", "--for", "2 weeks"), ""),
        (("cancel",), ""),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(manage, valkey, words, says):
    code, out, err = manage(*words)

    assert (code, out, valkey.keys()) == (2, "", [])
    assert says in err


@pytest.mark.parametrize(
    "words", [("stop", "--timeout", "1"), ("cancel", "local-1"), ("drain", "a"), ("undrain", "a")]
)
def test_a_server_that_is_not_there_is_said_and_nothing_is_claimed(manage, settings, words):
    settings.PIDISPATCH_ENVIRONMENT["VALKEY_URL"] = NOBODY

    code, out, err = manage(*words)

    assert (code, out) == (1, "")
    assert "does not answer (ConnectionError)" in err
    assert "Not confirmed as" in err
    assert ("Nothing is asked yet; trying again." in err) == (words[0] == "stop")
