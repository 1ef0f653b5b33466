from __future__ import annotations

from hosts import keys, roster
from hosts.rows import KnownHost, Presence, Roster, Unreachable, UnreadableRow
from pidispatch_site.clients import state_client


def server_ms(client):
    seconds, micro = client.time()
    return seconds * 1000 + micro // 1000


def appear(client, *names, age_ms=0, **fields):
    beat = server_ms(client) - age_ms
    for name in names:
        client.hset(keys.host_row(name), mapping={"name": name, "beatAt": beat, **fields})
        client.sadd(keys.HOSTS_LIVE, name)


def test_an_empty_registry_is_not_one_that_cannot_be_read(valkey):
    before = server_ms(valkey)
    found = roster.read(valkey)

    assert isinstance(found, Roster)
    assert (found.hosts, found.unreadable, found.known) == ((), (), ())
    assert before <= found.now_ms <= server_ms(valkey)


def test_rows_come_sorted_each_with_its_age_by_the_servers_clock(valkey):
    appear(valkey, "c", "a", version="0.1.0")
    appear(valkey, "late", age_ms=50_000)
    appear(valkey, "ahead", age_ms=-50_000)
    valkey.hset("host:h:silent", "name", "silent")
    valkey.sadd("host:live", "silent")

    found = roster.read(valkey)

    assert [(row.name, row.presence) for row in found.hosts] == [
        ("a", Presence.ALIVE),
        ("ahead", Presence.ALIVE),
        ("c", Presence.ALIVE),
        ("late", Presence.LATE),
        ("silent", Presence.GONE),
    ]
    assert [row.name for row in found.live] == ["a", "ahead", "c"]
    assert (found.hosts[0].version, found.hosts[1].stale_ms) == ("0.1.0", 0)


def test_names_without_a_row_leave_the_list(valkey):
    appear(valkey, "here")
    valkey.sadd("host:live", "expired", "a@b", "x" * 5_000, b"\xff\x00")

    assert [row.name for row in roster.read(valkey).hosts] == ["here"]
    assert valkey.smembers("host:live") == {b"here"}


def test_the_drain_is_the_switch_as_it_holds_now_and_not_what_the_row_says(valkey):
    appear(valkey, "a", "b", "c", "d", draining="true")
    valkey.hset("drain:b", "by", "ann")
    valkey.hset("drain:c", mapping={"by": "ann", "until": server_ms(valkey) - 1})
    valkey.set("drain:d", "of a wrong type holds")

    assert [row.draining for row in roster.read(valkey).hosts] == [False, True, False, True]


def test_rows_that_are_none_are_shown_and_keep_nobody_from_being_read(valkey):
    appear(valkey, "fine", unheardOf="x" * 20_000)
    appear(valkey, "a@b")
    appear(valkey, "big", image="x" * 10_000)
    appear(valkey, "huge", image="x" * 10_000, tz="x" * 10_000)
    appear(valkey, "zero", tz="a\0b")
    appear(valkey, "words", startedAt="yesterday")
    valkey.set("host:h:text", "not a hash")
    valkey.rpush("host:h:list", "not a hash")
    valkey.sadd("host:live", "text", "list")

    found = roster.read(valkey)

    assert [row.name for row in found.hosts] == ["fine"]
    assert [(row.shown, row.why) for row in found.unreadable] == [
        ("a@b", "is no worker name"),
        ("big", "image is longer than 4096 bytes"),
        ("huge", "is longer than 16384 bytes"),
        ("list", "is not a hash"),
        ("text", "is not a hash"),
        ("words", "startedAt is not an instant"),
        ("zero", "holds a zero byte"),
    ]


def test_known_hosts_come_along_and_what_is_none_is_shown(valkey):
    one, two = "0" * 16, "1" * 16
    valkey.hset(
        "known:hosts", mapping={two: '{"name":"b","beat":2}', one: '{"name":"a","beat":1}', "x": "{}"}
    )

    found = roster.read(valkey)

    assert found.known == (
        KnownHost(host_id=one, name="a", beat_at_ms=1),
        KnownHost(host_id=two, name="b", beat_at_ms=2),
    )
    assert [host.name for host in found.gone] == ["b", "a"]
    assert [row.shown for row in found.unreadable] == ["x"]


def test_without_a_list_of_known_hosts_the_rows_are_read_all_the_same(valkey):
    appear(valkey, "a")
    valkey.set("known:hosts", "x")

    found = roster.read(valkey)

    assert ([row.name for row in found.hosts], found.known) == (["a"], ())
    assert found.unreadable == (UnreadableRow(shown="known:hosts", why="is not a hash"),)


def test_a_list_of_a_wrong_type_cannot_be_read(valkey):
    valkey.set("host:live", "x")

    assert roster.read(valkey) == Unreachable("wrong-type")


def test_a_server_that_is_away_silent_or_refuses_is_named_by_a_token(valkey, valkey_url, tmp_path):
    valkey.acl_setuser("mute", enabled=True, nopass=True, keys=["*"], commands=["+ping"])
    clients = {
        "no-connection": state_client(f"unix://{tmp_path}/nobody"),
        "timeout": state_client(valkey_url, socket_timeout=0.05),
        "not-allowed": state_client(valkey_url.replace("//", "//mute:x@")),
    }
    valkey.client_pause(10_000, all=False)
    try:
        assert {token: roster.read(client) for token, client in clients.items()} == {
            token: Unreachable(token) for token in clients
        }
    finally:
        valkey.client_unpause()
        valkey.acl_deluser("mute")
    for client in clients.values():
        client.close()


def test_a_server_that_takes_no_writes_is_read(valkey):
    appear(valkey, "a")
    valkey.sadd("host:live", "expired")
    valkey.config_set("min-replicas-to-write", 1)
    try:
        found = roster.read(valkey)
    finally:
        valkey.config_set("min-replicas-to-write", 0)

    assert [row.name for row in found.hosts] == ["a"]


def test_however_many_they_are_it_is_one_command(valkey):
    appear(valkey, *(f"host-{number}" for number in range(60)))
    valkey.script_flush()
    valkey.config_resetstat()

    roster.read(valkey)

    calls = {name: stat["calls"] for name, stat in valkey.info("commandstats").items()}
    assert calls["cmdstat_eval"] == 1
    # The rest is what the script does inside.
    assert not {"cmdstat_evalsha", "cmdstat_script|load"} & calls.keys()


def test_more_names_than_anybody_has_hosts_are_not_all_looked_at(valkey, monkeypatch):
    monkeypatch.setattr(roster, "MOST_HOSTS", 3)
    appear(valkey, "a", "b", "c", "d")
    valkey.hset("known:hosts", mapping={f"{n:016x}": '{"name":"a","beat":1}' for n in range(5)})

    found = roster.read(valkey)

    assert (len(found.hosts), len(found.known)) == (3, 3)
    assert [row.why for row in found.unreadable] == [
        "names 4 hosts; 3 were read",
        "names 5 hosts; 3 were read",
    ]


def test_rows_without_end_are_left_out_and_said(valkey, monkeypatch):
    monkeypatch.setattr(roster, "MOST_BYTES", 5_000)
    appear(valkey, *"abcd", image="x" * 4_000)
    valkey.sadd("host:live", "expired")
    valkey.hset("known:hosts", mapping=dict.fromkeys("abcd", "x" * 4_000))

    found = roster.read(valkey)

    assert (len(found.hosts), len(found.unreadable)) == (2, 5)
    assert {row.why for row in found.unreadable} == {
        "is left out: other rows are too long",
        "is no known host",
        "names 4 hosts; 2 were read",
    }
    assert not valkey.sismember("host:live", "expired")
