"""Who takes: tokens, names, and the id of an execution that follows from its token."""

from __future__ import annotations

import re
import threading

import pytest

from dispatch.queue.containers import Begun, begun, forget, outlived
from dispatch.queue.owner import Owner, boot_of, execution_id
from dispatch.queue.scripts import LUA, Scripts, text_of
from hosts.keys import pending_records
from tests.dispatch.queuekit import Host

FILES = sorted(LUA.glob("*.lua"))


@pytest.fixture
def owner():
    return Owner(boot="aaaa-00000001", host_id="aaaa", host="alpha")


def test_no_token_is_given_twice_to_threads(owner):
    tokens = []
    threads = [
        threading.Thread(target=lambda: tokens.extend(owner.next_token() for _ in range(500)))
        for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    assert len(set(tokens)) == 2000


def test_a_token_tells_its_boot(owner):
    assert boot_of(owner.next_token()) == owner.boot


@pytest.mark.parametrize(
    ("host", "queue", "name"),
    [
        ("alpha", "pi-jobs", "alpha.aaaa-00000001.pi-jobs"),
        ("alpha", "pi-jobs@alpha", "alpha.aaaa-00000001.pi-jobs@alpha"),
        ("a b\n:c", "q", "a-b--c.aaaa-00000001.q"),
    ],
)
def test_rqs_name_of_a_worker_has_characters_that_its_tools_take(host, queue, name):
    assert Owner(boot="aaaa-00000001", host_id="aaaa", host=host).worker_name(queue) == name


def test_the_scripts_name_an_execution_as_we_do(valkey):
    script = text_of("end").split("local job, id")[0] + "return execution_of(ARGV[1])"

    assert valkey.eval(script, 0, "aaaa-00000001/7").decode() == execution_id("aaaa-00000001/7")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_script_opens_with_its_purpose_keys_arguments_and_answers(path):
    opening = []
    for line in path.read_text().splitlines():
        if not line.startswith("--"):
            break
        opening.append(line)
    head = "\n".join(opening)

    assert re.match(rf"-- {path.stem.replace('_', ' ')}: ", head)
    for word in ("-- KEYS  ", "-- ARGV  ", "-- Answers "):
        assert word in head, word


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_script_names_every_key_and_argument_that_it_reads(path):
    text = path.read_text()
    head, body = text.split("-- uses: ", 1) if "-- uses: " in text else text.split("\n\n", 1)
    for table in ("KEYS", "ARGV"):
        used = {int(number) for number in re.findall(rf"{table}\[(\d+)\]", body)}
        section = head.partition(f"-- {table}  ")[2].partition("-- Answers")[0].partition("-- ARGV")[0]
        named = {int(number) for number in re.findall(r"(?:^|  |, |\n--       )(\d+)(?=[, .])", section)}
        if re.search(r"per queue|the takers of each queue|the queue names", section):
            continue
        assert used <= named, f"{table} {sorted(used - named)}"


def test_a_server_that_lost_the_scripts_is_given_them_again(valkey):
    scripts = Scripts(valkey)
    scripts.call("counts", ["pause:*"], [])
    valkey.script_flush()

    assert scripts.call("counts", ["pause:*"], []) == []


def test_the_pending_records_are_the_ones_that_the_recorder_drains(valkey):
    host = Host(valkey)
    host.enqueue("local-1")
    host.refuse(host.claim())

    assert valkey.llen(pending_records("aaaa")) == 1


def test_a_container_is_listed_until_its_engine_says_that_it_is_gone(valkey):
    host = Host(valkey)
    host.enqueue("local-1", "local-2")
    first, second = host.start(), host.start()

    listed = begun(valkey, "aaaa")
    forget(valkey, "aaaa", ["pi-job-local-1"])

    assert [(one.name, one.token) for one in listed] == [
        ("pi-job-local-1", first.token),
        ("pi-job-local-2", second.token),
    ]
    assert [one.name for one in begun(valkey, "aaaa")] == ["pi-job-local-2"]
    assert begun(valkey, "bbbb") == []


def test_no_name_forgets_nothing(valkey):
    forget(valkey, "aaaa", [])

    assert not valkey.exists("containers:aaaa")


ENTRY = '{{"job": {job}, "attempt": 0, "token": "t", "deadline": {deadline}}}'


@pytest.mark.parametrize(
    "value",
    [
        *("", "x", "[]", "{}", '{"job": 1}', "[" * 100_000),
        *(
            ENTRY.format(job='"j"', deadline=said)
            for said in ("Infinity", "true", "-1", "1" + "0" * 99, '"1"')
        ),
        *(ENTRY.format(job=said, deadline=1) for said in ("[]", r'"\ud800"')),
    ],
    ids=lambda value: value[:60],
)
def test_an_entry_that_cannot_be_read_is_still_a_container(valkey, value):
    valkey.hset("containers:aaaa", "pi-job-x", value)

    [one] = begun(valkey, "aaaa")

    assert (one.name, one.job_id) == ("pi-job-x", "")


def test_a_container_five_minutes_past_its_own_deadline_has_ended():
    entry = Begun(name="c", job_id="j", attempt=0, token="t", deadline_ms=1_000_000)

    assert outlived([entry], now_ms=1_300_000) == []
    assert outlived([entry], now_ms=1_300_001) == ["c"]


def test_a_container_whose_deadline_cannot_be_read_is_never_taken_to_have_ended(valkey):
    valkey.hset("containers:aaaa", "pi-job-x", "rubbish")

    assert outlived(begun(valkey, "aaaa"), now_ms=2**53) == []
