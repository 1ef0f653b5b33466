from __future__ import annotations

import json
import multiprocessing
import threading
import time

import pytest
import redis

from hosts import registry, roster
from hosts.registry import Registry
from hosts.rivals import Rivals
from hosts.rows import Presence
from pidispatch_site.clients import VALKEY_FAULTS, state_client
from pidispatch_site.errors import OperationalError

ID, OTHER = "0123456789abcdef", "fedcba9876543210"
BOOT = f"{ID}-00000001"
QUEUES = ("pi-jobs", "pi-jobs@mac")
MONTH_MS = 30 * 24 * 3600 * 1000


def server_ms(client):
    seconds, micro = client.time()
    return seconds * 1000 + micro // 1000


def host(client, host_id=ID, boot=None, queues=QUEUES, facts=None, name="mac", **rest):
    boot = boot or f"{host_id}-00000001"
    return Registry(client, name=name, host_id=host_id, boot=boot, queues=queues, facts=facts or {}, **rest)


def row_of(client, name="mac"):
    return {field.decode(): value.decode() for field, value in client.hgetall(f"host:h:{name}").items()}


def read_one(client):
    (row,) = roster.read(client).hosts
    return row


def named(events, name):
    return [{k: v for k, v in line.items() if k != "event"} for line in events() if line["event"] == name]


@pytest.mark.parametrize("step", ["register", "publish"])
def test_a_beat_says_what_the_host_is(valkey, step):
    facts = {"version": "0.1.0", "concurrency": lambda: 3, "caps": "s:prod", "cronCount": None, "tz": "UTC"}
    ours = host(valkey, facts=facts, wall_clock_ms=lambda: 5)
    before = server_ms(valkey)
    getattr(ours, step)()
    after = server_ms(valkey)

    row = row_of(valkey)
    beat = int(row.pop("beatAt"))
    assert before <= beat <= after
    assert before - 500 <= int(row.pop("startedAt")) <= beat
    assert row == {
        "name": "mac",
        "hostId": ID,
        "boot": BOOT,
        "routes": "true",
        "draining": "false",
        "clockAt": "5",
        "version": "0.1.0",
        "concurrency": "3",
        "caps": "s:prod",
        "cronCount": "",
        "tz": "UTC",
    }
    assert 89_000 < valkey.pttl("host:h:mac") <= 90_000
    assert valkey.smembers("host:live") == {b"mac"}
    assert {one.decode() for one in valkey.smembers("queues:known")} == set(QUEUES)
    assert json.loads(valkey.hget("known:hosts", ID)) == {"name": "mac", "beat": beat, "boot": BOOT}
    assert valkey.ttl("known:hosts") == -1
    read = read_one(valkey)
    assert (read.presence, read.routes, read.caps) == (Presence.ALIVE, True, {"s:prod"})


def test_each_beat_writes_the_whole_row_anew_and_asks_again(valkey):
    slots = iter([3, 5])
    ours = host(valkey, queues=("pi-jobs",), facts={"concurrency": lambda: next(slots)})
    ours.register()
    started = row_of(valkey)["startedAt"]
    valkey.hset("host:h:mac", mapping={"leftover": "of an older version", "startedAt": 1})
    valkey.hset("drain:mac", "by", "ann")
    valkey.pexpire("host:h:mac", 5_000)

    ours.publish()

    row = row_of(valkey)
    assert (row["concurrency"], row["startedAt"], row["draining"], row["routes"]) == (
        *("5", started, "true", "false"),
    )
    assert "leftover" not in row
    assert valkey.pttl("host:h:mac") > 80_000


def test_all_that_is_lost_is_back_with_the_next_beat(valkey):
    ours = host(valkey)
    ours.register()
    started = row_of(valkey)["startedAt"]
    valkey.flushall()

    ours.publish()

    assert row_of(valkey)["startedAt"] == started
    assert valkey.exists("host:live", "known:hosts", "queues:known") == 3


def test_a_fact_that_cannot_be_told_or_must_not_be_is_blank_and_said_once(valkey, events):
    def away():
        raise OSError("/secret/path")

    facts = {"image": "/srv/img", "tz": "C:/zone", "version": away, "blind": "x" * 5_000, "fpCron": "\ud800"}
    ours = host(valkey, facts=facts)
    ours.register()
    ours.publish()

    assert {field: row_of(valkey)[field] for field in facts} == {**dict.fromkeys(facts, ""), "fpCron": "?"}
    assert named(events, "host_registry_field_refused") == [
        {"field": "image", "reason": "path-shaped"},
        {"field": "tz", "reason": "path-shaped"},
        {"field": "version", "reason": "unreadable"},
        {"field": "blind", "reason": "too-long"},
    ]
    assert "secret" not in json.dumps(events())


def test_two_machines_do_not_share_a_name(valkey, events):
    host(valkey).register()
    before = valkey.hgetall("host:h:mac")

    with pytest.raises(OperationalError, match=r"mac.*PI_WORKER_NAME.*free 90 s after") as refusal:
        host(valkey, OTHER).register()

    assert ID in str(refusal.value)
    assert valkey.hgetall("host:h:mac") == before
    assert not valkey.hexists("known:hosts", OTHER)
    assert events() == []


@pytest.mark.parametrize(
    "found",
    [
        {"hostId": ID, "boot": f"{ID}-0000dead", "beatAt": "now"},
        {"hostId": OTHER, "beatAt": "old"},
        {"hostId": OTHER, "beatAt": "far ahead"},
        *({"hostId": OTHER, "beatAt": beat} for beat in ("", "soon", "-1", "1e999", "nan", "inf", "9" * 40)),
        {"hostId": OTHER},
        {"beatAt": "now"},
        *({"hostId": strange, "beatAt": "now"} for strange in ("", "x", "@" * 9_000, OTHER.upper())),
    ],
)
def test_a_name_that_no_other_host_has_freshly_can_be_used_at_once(valkey, found):
    now = server_ms(valkey)
    instants = {"now": now, "old": now - 90_500, "far ahead": now + 99_000}
    valkey.hset("host:h:mac", mapping={k: instants.get(v, v) for k, v in found.items()})

    host(valkey).register()

    assert read_one(valkey).boot == BOOT


def test_a_name_is_free_again_when_its_row_has_expired(valkey):
    host(valkey, ttl_ms=60).register()
    heir = host(valkey, OTHER)

    deadline = time.monotonic() + 5
    while True:
        try:
            heir.register()
            break
        except OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert row_of(valkey)["hostId"] == OTHER


def test_a_host_whose_name_another_has_taken_leaves_its_row_alone_and_says_so_once(valkey, events):
    ours, theirs = host(valkey), host(valkey, OTHER)
    ours.register()
    valkey.delete("host:h:mac")
    theirs.register()
    before = valkey.hgetall("host:h:mac")
    valkey.hdel("known:hosts", ID)

    ours.publish()
    ours.publish()
    ours.close()

    assert valkey.hgetall("host:h:mac") == before
    assert valkey.smembers("host:live") == {b"mac"}
    assert valkey.hexists("known:hosts", ID)
    assert named(events, "host_name_taken") == [{"otherHostId": OTHER}]

    theirs.close()
    assert not valkey.exists("host:h:mac", "host:live")


def test_who_lost_its_name_is_contested_until_it_has_it_again(valkey, events):
    ours, theirs = host(valkey), host(valkey, OTHER)
    ours.register()
    valkey.delete("host:h:mac")
    theirs.register()

    told = []
    for beat in (ours.publish, theirs.publish, ours.publish, theirs.close, ours.publish, ours.publish):
        beat()
        told.append((ours.is_contested, theirs.is_contested))

    assert told == [(True, False)] * 4 + [(False, False)] * 2
    assert events() == [{"event": "host_name_taken", "otherHostId": OTHER}, {"event": "host_name_restored"}]
    assert not ours.shares_host_id


@pytest.mark.parametrize("name", ["mac", "other"])
def test_the_copy_of_a_state_directory_is_noticed_by_both(valkey, events, name):
    copy = f"{ID}-0000c0c0"
    ours, theirs = host(valkey), host(valkey, boot=copy, name=name)
    ours.register()
    theirs.register()
    assert not theirs.is_contested
    ours.publish()
    theirs.publish()
    ours.publish()
    # Twice in a row: that no beat of the copy came between does not end it.
    ours.publish()

    assert (ours.is_contested, theirs.is_contested, ours.shares_host_id) == (True, True, True)
    assert roster.read(valkey).known[0].other_boot == copy
    assert events() == [
        {"event": "host_id_taken", "otherBoot": copy},
        {"event": "host_id_taken", "otherBoot": BOOT},
    ]


def test_a_copy_counts_for_a_while_after_its_last_beat(events):
    rivals = Rivals(lasting_ms=100)
    told = []
    for now_ms, boot in ((1000, b""), (1001, b"x"), (1050, b"y"), (1150, b""), (1151, b""), (1152, b"")):
        rivals.met(host_id=b"", boot=boot, now_ms=now_ms)
        told.append((rivals.is_contested, rivals.boot))

    assert told == [*((False, ""), (True, "x"), (True, "y"), (True, "y")), *[(False, "")] * 2]
    assert events() == [{"event": "host_id_taken", "otherBoot": "x"}, {"event": "host_id_restored"}]


@pytest.mark.parametrize(
    "left",
    [
        {"boot": f"{ID}-0000dead"},
        {"boot": f"{OTHER}-0000dead", "beat": "now"},
        {"boot": f'{ID}-0000dea"', "beat": "now"},
        {"boot": 5, "beat": "now"},
        {"boot": f"{ID}-0000dead", "beat": "soon"},
        {"beat": "now"},
        [],
    ],
)
def test_a_predecessor_and_what_is_no_entry_contest_nothing(valkey, events, left):
    host(valkey, boot=f"{ID}-0000dead").register()
    ours = host(valkey)
    ours.register()
    if isinstance(left, dict):
        beat = {"now": server_ms(valkey), "soon": 9 * 10**14}.get(left.get("beat"), 1)
        left = {"name": "mac", **left, "beat": beat}
    valkey.hset("known:hosts", ID, json.dumps(left))
    ours.publish()

    assert not ours.is_contested
    assert events() == []


@pytest.mark.parametrize("key", ["host:h:mac", "known:hosts", "queues:known", "drain:mac"])
def test_a_key_of_a_wrong_type_costs_no_beat(valkey, events, key):
    valkey.set(key, "x")
    ours = host(valkey)
    ours.register()
    ours.publish()

    assert read_one(valkey).presence is Presence.ALIVE
    assert events() == []


def test_a_list_of_a_wrong_type_is_said_and_the_row_is_written_all_the_same(valkey, events):
    valkey.set("host:live", "x")
    ours = host(valkey)
    ours.register()
    ours.publish()
    assert row_of(valkey)["boot"] == BOOT
    valkey.delete("host:live")
    ours.publish()
    ours.close()

    assert events() == [
        {"event": "host_registry_unreachable", "reason": "wrong-type"},
        {"event": "host_registry_restored"},
    ]


def test_a_server_that_is_away_is_said_once_each_way(valkey, valkey_server, events, tmp_path):
    door = tmp_path / "door"
    client = state_client(f"unix://{door}")
    ours = host(client)
    for is_open in (True, False, False, True, True):
        client.connection_pool.disconnect()
        door.symlink_to(valkey_server) if is_open else door.unlink(missing_ok=True)
        ours.publish()
        assert valkey.delete("host:h:mac") == is_open
        door.unlink(missing_ok=True)
    client.close()

    assert events() == [
        {"event": "host_registry_unreachable", "reason": "no-connection"},
        {"event": "host_registry_restored"},
    ]


def test_at_boot_a_server_that_is_away_is_raised_and_one_that_refuses_is_said(
    valkey, valkey_url, events, tmp_path
):
    nobody = state_client(f"unix://{tmp_path}/nobody")
    with pytest.raises(VALKEY_FAULTS):
        host(nobody).register()
    host(nobody).close()
    nobody.close()

    valkey.acl_setuser("mute", enabled=True, nopass=True, keys=["*"], commands=["+ping"])
    mute = state_client(valkey_url.replace("//", "//mute:x@"))
    host(mute).register()
    mute.close()
    valkey.acl_deluser("mute")
    assert named(events, "host_registry_unreachable") == [
        {"reason": "no-connection"},
        {"reason": "not-allowed"},
    ]


def test_a_host_of_a_full_server_does_not_look_dead(valkey):
    ours = host(valkey)
    ours.register()
    valkey.config_set("maxmemory", 1)
    try:
        valkey.delete("host:h:mac", "host:live", "known:hosts")
        ours.publish()
        assert read_one(valkey).presence is Presence.ALIVE
        assert valkey.hexists("known:hosts", ID)
    finally:
        valkey.config_set("maxmemory", 0)


def test_closing_leaves_nothing_but_that_the_host_was_known_and_can_be_repeated(valkey, events):
    ours = host(valkey)
    ours.register()
    for _ in range(2):
        ours.close()
        assert not valkey.exists("host:h:mac", "host:live")
    ours.publish()
    ours.register()

    assert not valkey.exists("host:h:mac", "host:live")
    assert valkey.hexists("known:hosts", ID)
    assert events() == []


@pytest.mark.parametrize("change", [{"boot": f"{ID}-00000002"}, {"hostId": OTHER}, {"hostId": ""}])
def test_closing_leaves_a_row_that_is_not_its_own(valkey, change):
    ours = host(valkey)
    ours.register()
    valkey.hset("host:h:mac", mapping=change)

    ours.close()

    assert valkey.exists("host:h:mac", "host:live") == 2


class Gated(redis.Redis):
    """A client whose next command waits at a gate on its way out."""

    def __init__(self, **rest):
        super().__init__(**rest)
        self.reached, self.gate = threading.Event(), threading.Event()
        self.is_armed = False

    def eval(self, *args):
        if self.is_armed:
            self.is_armed = False
            self.reached.set()
            assert self.gate.wait(20)
        return super().eval(*args)


@pytest.fixture
def gated(valkey):
    client = Gated(unix_socket_path=valkey.connection_pool.connection_kwargs["path"])
    yield client
    client.close()


def in_thread(step):
    thread = threading.Thread(target=step)
    thread.start()
    return thread


def test_no_row_comes_back_after_closing_while_a_beat_is_under_way(valkey, gated):
    ours = host(gated)
    ours.register()
    gated.is_armed = True
    beating = in_thread(ours.publish)
    assert gated.reached.wait(20)
    closing = in_thread(ours.close)
    closing.join(0.05)
    assert closing.is_alive()

    gated.gate.set()
    closing.join(20)

    assert not valkey.exists("host:h:mac", "host:live")
    beating.join(20)
    assert not valkey.exists("host:h:mac", "host:live")


def test_closing_waits_for_a_stuck_beat_no_longer_than_it_may_and_that_beat_leaves_nothing(
    valkey, gated, monkeypatch
):
    monkeypatch.setattr(registry, "DRAIN_SECONDS", 0.05)
    ours = host(gated)
    ours.register()
    gated.is_armed = True
    beating = in_thread(ours.publish)
    assert gated.reached.wait(20)

    ours.close()
    assert not valkey.exists("host:h:mac", "host:live")
    gated.gate.set()
    beating.join(20)

    assert not valkey.exists("host:h:mac", "host:live")


def test_a_fact_that_takes_long_does_not_bring_a_closed_row_back(valkey, monkeypatch):
    monkeypatch.setattr(registry, "DRAIN_SECONDS", 0.05)
    asked, told = threading.Event(), threading.Event()

    def slow():
        asked.set()
        return told.wait(20)

    ours = host(valkey, facts={"blind": slow})
    beating = in_thread(ours.publish)
    assert asked.wait(20)
    ours.close()
    told.set()
    beating.join(20)

    assert not valkey.exists("host:h:mac", "host:live", "known:hosts")


def test_hosts_that_are_long_silent_are_forgotten_unless_something_is_left_of_them(valkey):
    now = server_ms(valkey)

    def entry(age):
        return json.dumps({"name": "x", "beat": now - age})

    kept = {
        "recent": entry(MONTH_MS - 60_000),
        "records": entry(2 * MONTH_MS),
        "container": entry(2 * MONTH_MS),
    }
    dead = {f"dead-{n}": entry(MONTH_MS + 1) for n in range(5)}
    broken = {"a": "{", "b": "7", "c": '{"beat":"x"}', "d": "[" * 2_000, "e": '{"beat":null}', "f": "[]"}
    valkey.hset("known:hosts", mapping={**kept, **dead, **broken})
    valkey.rpush("records:pending:records", "r")
    valkey.hset("containers:container", "c", "{}")
    ours = host(valkey)

    ours.publish()
    # A beat looks at a few only, however many there are.
    assert valkey.hlen("known:hosts") >= len(kept) + len(dead) + len(broken) + 1 - 3
    deadline = time.monotonic() + 10
    while valkey.hlen("known:hosts") > len(kept) + 1:
        assert time.monotonic() < deadline
        ours.publish()

    assert {field.decode() for field in valkey.hkeys("known:hosts")} == {*kept, ID}


PROCESSES = multiprocessing.get_context("forkserver")


def register_at(url, host_id, together, answers):
    client = state_client(url)
    together.wait(20)
    try:
        host(client, host_id).register()
        answers.put(host_id)
    except OperationalError:
        answers.put(None)
    client.close()


def test_of_processes_that_register_one_name_at_once_exactly_one_gets_it(valkey, valkey_url):
    together, answers = PROCESSES.Barrier(3), PROCESSES.Queue()
    processes = [
        PROCESSES.Process(target=register_at, args=(valkey_url, f"{number:016x}", together, answers))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    said = [answers.get(timeout=30) for _ in processes]
    for process in processes:
        process.join(30)
    answers.close()
    answers.join_thread()

    (winner,) = (host_id for host_id in said if host_id)
    assert row_of(valkey)["hostId"] == winner
    assert valkey.hkeys("known:hosts") == [winner.encode()]
