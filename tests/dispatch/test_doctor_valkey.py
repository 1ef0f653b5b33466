"""What `doctor` says of the server, by what the server says of itself."""

from __future__ import annotations

import pytest

from dispatch.console.findings import Mark
from dispatch.doctor import valkey as checks
from dispatch.doctor.valkey import ServerFacts

GOOD = {
    "valkey_version": "8.1.1",
    "redis_version": "7.2.4",
    "maxmemory_policy": "noeviction",
    "role": "master",
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "rdb_last_bgsave_status": "ok",
}

TOLD = {
    "evicts": (
        {"maxmemory_policy": "allkeys-lru"},
        0,
        ("eviction", Mark.FAILED, "(maxmemory-policy allkeys-lru)"),
    ),
    "no file": ({"aof_enabled": 0}, 0, ("persistence", Mark.WARNING, "keeps no append-only file")),
    "replica": ({"role": "slave"}, 0, ("role", Mark.FAILED, "is a replica")),
    "full disk": (
        {"aof_last_write_status": "err", "rdb_last_bgsave_status": "err"},
        0,
        ("disk", Mark.FAILED, "(aof_last_write_status, rdb_last_bgsave_status)"),
    ),
    "too old": (
        {"valkey_version": None, "redis_version": "6.0.16"},
        0,
        ("version", Mark.FAILED, "Redis 6.0.16 is too old"),
    ),
    "ahead": ({}, 5_001, ("clock", Mark.WARNING, "this machine is 5.0 s ahead of Valkey's")),
    "behind": ({}, -300_000, ("clock", Mark.WARNING, "this machine is 300.0 s behind Valkey's")),
}


def judge(changes, skew_ms=0):
    info = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return list(checks.judge(ServerFacts(info=info, skew_ms=skew_ms), shown="unix:///s"))


def test_a_server_as_it_should_be():
    assert [(one.mark, one.text) for one in judge({}, 5_000)] == [
        (Mark.OK, "the server at unix:///s answers"),
        (Mark.OK, "Valkey 8.1.1"),
        (Mark.OK, "a full server refuses instead of throwing keys away (noeviction)"),
        (Mark.OK, "what the server is told survives its restart (appendonly)"),
    ]


@pytest.mark.parametrize("name", TOLD)
def test_what_is_wrong_with_a_server(name):
    changes, skew_ms, (check, mark, part) = TOLD[name]

    (found,) = [one for one in judge(changes, skew_ms) if one.mark is not Mark.OK]

    assert (found.check, found.mark) == (check, mark)
    assert part in found.text
    assert found.fix


def test_a_server_that_may_not_be_asked_about_itself(valkey):
    valkey.acl_setuser("guest", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-info"])
    try:
        valkey.execute_command("AUTH", "guest", "x")
        facts = checks.ask(valkey)
    finally:
        valkey.execute_command("AUTH", "default", "x")
        valkey.acl_deluser("guest")

    found = list(checks.judge(facts, shown="unix:///s"))

    assert [(one.check, one.mark) for one in found] == [("reachable", Mark.OK), ("info", Mark.WARNING)]


def test_a_real_server_is_understood(valkey):
    facts = checks.ask(valkey)

    marks = {one.check: one.mark for one in checks.judge(facts, shown="unix:///s")}

    # The tests' own server keeps no file.
    assert marks == {
        "reachable": Mark.OK,
        "version": Mark.OK,
        "eviction": Mark.OK,
        "persistence": Mark.WARNING,
    }
    assert abs(facts.skew_ms) < 1000
