"""`manage.py pause`, `resume`, `status` as processes: durable, never half said, whatever else is broken."""

from __future__ import annotations

import io
import json
import re
import time

import pytest
from django.core.management import call_command

from dispatch.queue import keys as queue_keys
from hosts import keys, switches
from pidispatch_site.errors import ConfigurationError
from tests.dispatch.consolekit import Console, own_server
from tests.dispatch.queuekit import QUEUE, Host, now_ms
from tests.dispatch.test_console_queues import know, register

THERE, BELOW = "pi-jobs@there", "pi-jobs@below"

EVERYTHING_BROKEN = {
    "PI_CONCURRENCY": "none",
    "PI_WORKER_NAME": "two words",
    "PI_EGRESS": "maybe",
    "PI_BACKEND": "vm",
    "PI_LOGS_DIR": "\x7f",
    "PI_GLOBAL_PI_DIR": "/nothing",
    "DATABASE_URL": "nonsense",
    "PI_WEB_ORIGINS": "nonsense",
    "PI_FORWARD_ENV": "1,2",
}


@pytest.fixture
def console(tmp_path, valkey_url):
    return Console(tmp_path / "home", valkey_url)


@pytest.fixture
def call(valkey_url, settings):
    """A way to give a command in this process, which spares the start of Python: what it says where."""
    settings.PIDISPATCH_ENVIRONMENT = {"VALKEY_URL": valkey_url}

    def call(*words):
        out, err = io.StringIO(), io.StringIO()
        call_command(*words, stdout=out, stderr=err)
        return out.getvalue(), err.getvalue()

    return call


def status(console, **changes):
    said = console.run("status", **changes)
    assert said.code == 0, said.err
    assert said.out.count("\n") == 1
    return json.loads(said.out)


def test_stopping_works_when_everything_else_is_broken(console, valkey):
    file = console.home / "broken.env"
    file.write_bytes(b"no line at all\n\xff\xfe\nPI_MAX_TURNS='quoted'\nVALKEY_URL=" + console.url.encode())
    broken = {**EVERYTHING_BROKEN, "PI_ENV_FILE": str(file), "VALKEY_URL": None}
    Host(valkey).enqueue("local-1")

    paused = console.run("pause", "--for", "2h", "--reason", b"it burns\nin the \xff kitchen", **broken)
    shown = status(console, **broken)
    resumed = console.run("resume", **broken)

    assert (paused.code, resumed.code) == (0, 0), (paused, resumed)
    assert re.fullmatch(
        rf"Paused the whole fleet \(pi-jobs\) on {console.url}, until \d{{4}}-.* UTC\.\n", paused.out
    )
    assert list(shown) == ["pausedState", "waiting", "active", "paused", "delayed", "failed", "pause"]
    assert (shown["waiting"], shown["paused"]) == (0, 1)
    assert shown["pause"]["reason"] == "it burns in the ? kitchen"
    assert shown["pause"]["until"] - shown["pause"]["since"] == 2 * 3600 * 1000
    assert resumed.out == f"Resumed the whole fleet on {console.url}; queue: pi-jobs.\n"


def test_one_queue_of_two_is_paused_and_status_says_which(call, valkey):
    Host(valkey).enqueue("local-1")
    Host(valkey, queue=THERE).enqueue("local-2", "local-3")

    call("pause", THERE)

    assert list(json.loads(call("status")[0]).items())[:7] == [
        ("pausedState", False),
        ("pausedPartial", True),
        ("pausedQueues", [THERE]),
        ("waiting", 1),
        ("active", 0),
        ("paused", 2),
        ("delayed", 0),
    ]


def test_a_queue_cannot_be_resumed_under_a_pause_of_the_fleet(console, call, valkey):
    call("pause", QUEUE)
    call("pause")

    said = console.run("resume", QUEUE)

    assert (said.code, said.out) == (1, "")
    assert f"Still paused on {console.url}: {QUEUE}, because the whole fleet is paused." in said.err
    assert "`manage.py resume --fleet-only` ends that." in said.err
    assert switches.read(valkey, [QUEUE]).queues[QUEUE] is None


def test_a_host_whose_row_is_gone_is_paused_and_resumed_while_it_is_down(call, valkey, valkey_url):
    """Its row has expired and it still takes jobs; then it is down, and nothing but RQ knows of its queue."""
    host = Host(valkey, queue=THERE, name="there")
    host.beats.register()
    host.enqueue("local-1")

    fleet, _ = call("pause")
    popped = host.popper.pop()
    own, _ = call("pause", THERE)
    valkey.delete(keys.QUEUES_KNOWN, queue_keys.queue_keys(THERE).takers)
    resumed, _ = call("resume")

    assert f"Paused the whole fleet (2 queues: {QUEUE}, {THERE}) on {valkey_url}, until resumed." in fleet
    assert own == f"Paused {THERE} on {valkey_url}, until resumed.\n"
    assert type(popped).__name__ == "Paused"
    assert resumed == f"Resumed the whole fleet on {valkey_url}; 2 queues: {QUEUE}, {THERE}.\n"
    assert host.claim().job_id == "local-1"


def test_a_resume_names_the_pauses_of_others_that_it_ends_and_can_leave_them(call, valkey, valkey_url):
    def given():
        switches.pause(valkey, [THERE], by="bob", reason="disk\x1b[2J")
        switches.pause(valkey, [keys.FLEET], by="ann", reason="fire")

    given()
    fleet_only = call("resume", "--fleet-only")
    given()
    everything = call("resume")

    theirs = rf"{THERE}, paused by bob since \d.* UTC until resumed: disk \[2J\n"
    assert fleet_only[0] == f"The pause of the whole fleet is ended on {valkey_url}; still paused: {THERE}.\n"
    assert re.fullmatch(f"Still holds: {theirs}", fleet_only[1])
    assert everything[0] == f"Resumed the whole fleet on {valkey_url}; 2 queues: {QUEUE}, {THERE}.\n"
    assert re.fullmatch(f"Ended as well: {theirs}", everything[1])
    assert call("resume", "--fleet-only")[0] == (
        f"The whole fleet was not paused on {valkey_url}; no queue is paused any more.\n"
    )
    with pytest.raises(ConfigurationError, match="not both"):
        call("resume", THERE, "--fleet-only")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["resume"], "Nothing was paused on {}; 2 queues: {}, {}."),
        (["resume", "--fleet-only"], "The whole fleet was not paused on {}; no queue is paused any more."),
    ],
)
def test_resuming_takes_back_what_asks_any_known_host_to_stop_and_ends_no_drain(
    call, valkey, valkey_url, words, says
):
    register(valkey, "alive", routes="false")
    know(valkey, "0" * 16, "gone")
    valkey.sadd(keys.QUEUES_KNOWN, THERE)
    for name in ("alive", "gone", "there"):
        valkey.hset(keys.stop_request(name), "by", "me")
        valkey.hset(keys.drain(name), "by", "me")

    said, again = (call(*words)[0] for _ in range(2))

    assert again == f"{says.format(valkey_url, QUEUE, THERE)}\n"
    assert said == f"{again[:-1]} Requests to stop that were taken back: alive, gone, there.\n"
    assert not list(valkey.scan_iter("stop:req:*"))
    assert len(list(valkey.scan_iter("drain:*"))) == 3


def test_a_source_of_names_that_cannot_be_read_keeps_nobody_from_switching(call, valkey):
    know(valkey, "0" * 16, "gone")
    valkey.hset(keys.stop_request("gone"), "by", "me")
    valkey.set(keys.HOSTS_LIVE, "somebody else's")
    fleet_only = ["resume", "--fleet-only"]

    said = [call(*words)[1] for words in (["pause"], ["pause", QUEUE], ["queue"], fleet_only, ["resume"])]
    left = valkey.keys("stop:req:*")
    valkey.delete(keys.HOSTS_LIVE)
    mended = call(*fleet_only)

    assert all("could be looked up (registry: wrong-type): there may be more" in one for one in said), said
    assert "The pause holds those as well." in said[0]
    stand = "Requests to stop may stand as well. Run it again when that is mended.\n"
    assert [one.endswith(stand) for one in said] == [False, False, False, True, True]
    assert left == [b"stop:req:gone"]
    assert ("that were taken back: gone." in mended[0], mended[1]) == (True, "")


def test_a_name_that_was_never_heard_of_is_paused_and_asked_about(call, valkey_url):
    assert call("pause", "pi-jobs@tpyo") == (
        f"Paused pi-jobs@tpyo on {valkey_url}, until resumed.\n",
        "pi-jobs@tpyo was not known here before: is the name right?\n",
    )


def test_a_pause_ends_by_the_servers_clock_alone(call, valkey):
    call("pause", "--for", "1d")
    assert json.loads(call("status")[0])["pausedState"] is True

    # The host's clock has not moved.
    valkey.hset(keys.pause(keys.FLEET), "until", now_ms(valkey))

    assert json.loads(call("status")[0]) == {
        "pausedState": False,
        "waiting": 0,
        "active": 0,
        "paused": 0,
        "delayed": 0,
        "failed": 0,
    }


@pytest.fixture
def server():
    with own_server() as server:
        yield server


def test_a_pause_outlives_the_server_and_holds_a_worker_that_comes_later(tmp_path, server):
    console = Console(tmp_path / "home", server.url)

    console.run("pause", "--reason", "upgrade")
    server.kill()
    server.start()
    shown = status(console)
    with server.client() as client:
        host = Host(client)
        host.enqueue("local-1")
        popped = host.popper.pop()

    assert (shown["pausedState"], shown["pause"]["reason"]) == (True, "upgrade")
    assert type(popped).__name__ == "Paused"


def test_a_pause_that_is_refused_half_way_tells_of_each_queue(console, valkey):
    # Its script fails after the first switch, at the list of queues.
    valkey.set(keys.QUEUES_KNOWN, "somebody else's")

    said = console.run("pause", QUEUE, THERE)

    assert (said.code, said.out) == (1, "")
    assert "refused what was asked of it (ResponseError: " in said.err
    told = f"Not confirmed as paused: {QUEUE}, {THERE}. `manage.py status` tells; repeating this is safe.\n"
    assert f"{told}Paused now: {QUEUE}; not paused: {THERE}.\n" in said.err
    assert said.is_plain


def test_a_resume_needs_no_list_of_queues(call, valkey):
    switches.pause(valkey, [keys.FLEET, BELOW], by="me", reason="")
    valkey.sadd(queue_keys.QUEUES, f"rq:queue:{BELOW}")
    valkey.delete(keys.QUEUES_KNOWN)
    valkey.set(keys.QUEUES_KNOWN, "somebody else's")

    assert call("resume")[0].startswith("Resumed the whole fleet")
    assert not switches.read(valkey, (QUEUE, BELOW)).paused_queues


def test_what_stands_in_the_list_of_queues_and_is_none_is_not_shown(call, valkey, valkey_url):
    valkey.sadd(keys.QUEUES_KNOWN, "\x1b[2J")
    valkey.hset(keys.pause("\x1b[2J"), "by", "x")

    assert call("resume")[0] == f"Nothing was paused on {valkey_url}; queue: {QUEUE}.\n"


def test_a_thousand_hosts_are_paused_counted_and_resumed_in_two_seconds(call, valkey):
    names = [f"host-{number}" for number in range(1000)]
    for number, name in enumerate(names):
        register(valkey, name)
        know(valkey, f"{number:016x}", name)
    queues = [f"pi-jobs@{name}" for name in names]
    for queue in queues[:50]:
        Host(valkey, queue=queue).enqueue(f"local-{queue}")

    seconds = {}

    def timed(title, *words):
        began = time.monotonic()
        out, _ = call(*words)
        seconds[title] = round(time.monotonic() - began, 3)
        return out

    assert "(1001 queues: " in timed("pause", "pause")
    assert json.loads(timed("status", "status"))["paused"] == 50
    assert "; 1001 queues: " in timed("resume", "resume")
    assert "Paused 1000 queues: " in timed("pause by name", "pause", *queues)
    assert len(json.loads(timed("status by name", "status"))["pausedQueues"]) == 1000
    assert "Resumed 1000 queues: " in timed("resume by name", "resume", *queues)
    print(seconds)
    assert max(seconds.values()) < 2


def test_a_wrong_password_is_said_and_not_shown(console, valkey):
    try:
        valkey.execute_command("ACL", "SETUSER", "guarded", "on", ">right", "~*", "+@all")
        url = console.url.replace("unix://", "unix://guarded:hidden@")
        said = console.run("status", VALKEY_URL=url)
    finally:
        valkey.execute_command("ACL", "DELUSER", "guarded")

    assert (said.code, said.out) == (2, "")
    assert "refused the user or password in VALKEY_URL" in said.err
    assert "hidden" not in said.err
