"""A queue's table follows its file: what is new, changed or gone, in one step or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from dispatch.ids import rq_id
from dispatch.instants import epoch_ms
from dispatch.queue import keys as queue_keys
from dispatch.schedules import keys, notes, remembered
from dispatch.schedules.notes import Acted, Torn
from dispatch.schedules.table import Table, read_tables
from pidispatch_site.errors import ConfigurationError, OperationalError
from tests.dispatch.queuekit import everything
from tests.dispatch.schedules.schedulekit import (
    DAY,
    HOUR,
    MINUTE,
    OTHER,
    QUEUE,
    START,
    Ground,
    schedule,
    shown,
)

LATER = START + 2 * HOUR
NAMES = (keys.definitions, keys.upcoming, keys.since, keys.fired, keys.torn)
ALL_KEYS = [*(name(QUEUE) for name in NAMES), "queues:known"]
ACTED = Acted(
    instant_ms=epoch_ms(START), at_ms=epoch_ms(START) + 7, skipped=3, job_id="repeat:tidy:1", waited=True
)


@pytest.fixture
def table(valkey):
    return Table(valkey, QUEUE)


def test_what_is_put_in_can_be_read(valkey, table):
    assert table.resident() == {}
    done = table.reconcile([schedule(), schedule("weekly", "0 3 * * sun", "Europe/Paris")], now=START)

    assert (done.installed, done.removed, done.torn) == (("tidy", "weekly"), (), ())
    assert {one: shown(found.next_ms) for one, found in table.resident().items()} == {
        "tidy": "03. 10:05",
        "weekly": "08. 02:00",
    }
    tidy = table.resident()["tidy"]
    assert (tidy.definition, tidy.since_ms, tidy.fired, tidy.torn) == (
        schedule().text(),
        epoch_ms(START),
        None,
        None,
    )
    assert valkey.smembers("queues:known") == {QUEUE.encode()}
    assert read_tables(valkey, [QUEUE, OTHER]) == {QUEUE: table.resident(), OTHER: {}}


@pytest.mark.parametrize(
    ("edited", "next_instant", "counts_anew"),
    [
        pytest.param(schedule(), "03. 10:05", False, id="nothing"),
        pytest.param(schedule(task="tidy more"), "03. 10:05", False, id="its job"),
        pytest.param(schedule(pattern="*/10 * * * *"), "03. 12:10", True, id="its pattern"),
        pytest.param(schedule(zone="Europe/Paris"), "03. 12:05", True, id="its zone"),
    ],
)
def test_an_edit_keeps_what_is_due_unless_it_is_about_when(valkey, table, edited, next_instant, counts_anew):
    table.reconcile([schedule()], now=START)
    valkey.hset(keys.fired(QUEUE), "tidy", ACTED.text())

    assert table.reconcile([edited], now=LATER).installed == ("tidy",)

    tidy = table.resident()["tidy"]
    assert (tidy.definition, tidy.fired) == (edited.text(), ACTED)
    assert (shown(tidy.next_ms), tidy.since_ms) == (next_instant, epoch_ms(LATER if counts_anew else START))


def junk_definition(valkey):
    valkey.hset(keys.definitions(QUEUE), mapping={b"\xff": "x", "tidy": "[" * 100_000})


def junk_next(valkey):
    valkey.zadd(keys.upcoming(QUEUE), {"ghost": 1, b"\xff": float("inf")})


def junk_since(valkey):
    valkey.hset(keys.since(QUEUE), mapping={"ghost": "x", "tidy": "x"})


def junk_notes(valkey):
    valkey.hset(keys.torn(QUEUE), mapping={"tidy": "{}", "ghost": "[" * 100_000})
    valkey.hset(keys.fired(QUEUE), "tidy", '{"instant":1,"at":1,"skipped":1,"job":"\\ud800"}')


def no_next(valkey):
    valkey.delete(keys.upcoming(QUEUE), keys.since(QUEUE))


@pytest.mark.parametrize("spoil", [junk_definition, junk_next, junk_since, junk_notes, no_next])
def test_what_others_wrote_is_read_and_put_right(valkey, table, spoil):
    table.reconcile([schedule()], now=START)
    spoil(valkey)
    assert table.resident()["tidy"].next_ms is None or spoil is not no_next

    table.reconcile([schedule()], now=START)

    assert list(table.resident()) == ["tidy"]
    tidy = table.resident()["tidy"]
    assert (tidy.definition, shown(tidy.next_ms), tidy.torn) == (schedule().text(), "03. 10:05", None)
    assert valkey.zcard(keys.upcoming(QUEUE)) == valkey.hlen(keys.definitions(QUEUE)) == 1
    assert {*valkey.hkeys(keys.since(QUEUE)), *valkey.hkeys(keys.torn(QUEUE))} == {b"tidy"}


def test_what_is_not_in_the_file_leaves_and_each_is_told(valkey, table, events):
    table.reconcile([schedule("a"), schedule("b"), schedule("c")], now=START)
    valkey.hset(keys.fired(QUEUE), mapping={"a": ACTED.text(), "b": ACTED.text()})

    assert table.reconcile([schedule("b")], now=LATER).removed == ("a", "c")

    assert list(table.resident()) == ["b"]
    assert valkey.hkeys(keys.fired(QUEUE)) == [b"b"]
    assert events() == [{"event": "scheduler_removed_orphan", "schedulerId": one} for one in ("a", "c")]
    assert table.reconcile([schedule("b")], now=LATER).removed == ()


def test_what_left_is_remembered_while_its_job_is_known(valkey, table):
    table.reconcile([schedule("a"), schedule("b"), schedule("c")], now=START)
    valkey.hset(keys.fired(QUEUE), mapping=dict.fromkeys("abcd", ACTED.text()) | {"e": "no note"})
    job = queue_keys.job(rq_id(ACTED.job_id).encode())
    valkey.hset(job, "status", "queued")

    table.reconcile([schedule("a")], now=START)
    table.remove(["b"])
    assert valkey.hkeys(keys.fired(QUEUE)) == [b"a", b"b", b"c", b"d"]
    table.reconcile([schedule("a"), schedule("b")], now=LATER)
    assert (table.resident()["b"].fired, table.resident()["b"].since_ms) == (ACTED, epoch_ms(LATER))

    valkey.delete(job)
    table.remove(["b"])
    assert valkey.hkeys(keys.fired(QUEUE)) == [b"a", b"c", b"d"]
    table.reconcile([schedule("a")], now=LATER)
    assert valkey.hkeys(keys.fired(QUEUE)) == [b"a"]


@pytest.mark.parametrize(
    ("wanted", "due", "since"),
    [
        pytest.param(schedule(task="tidy more"), "03. 10:05", START, id="as it was"),
        pytest.param(schedule(pattern="*/10 * * * *"), "03. 12:10", LATER, id="at another time"),
    ],
)
def test_in_another_table_it_goes_on_from_where_it_was(valkey, table, wanted, due, since):
    Table(valkey, OTHER).reconcile([schedule()], now=START)
    valkey.hset(keys.fired(OTHER), mapping={"tidy": ACTED.text(), "gone": ACTED.text()})

    former = [remembered.read(valkey, OTHER, with_fired=True)]
    table.reconcile([wanted], now=LATER, former=former)

    tidy = table.resident()["tidy"]
    assert (shown(tidy.next_ms), tidy.since_ms, tidy.fired) == (due, epoch_ms(since), ACTED)
    assert valkey.hkeys(keys.fired(QUEUE)) == [b"tidy"]
    # What it has it keeps.
    table.reconcile([schedule(pattern="0 * * * *")], now=LATER, former=former)
    assert shown(table.resident()["tidy"].next_ms) == "03. 13:00"


@pytest.mark.parametrize(
    ("origin", "status", "kept"),
    [(QUEUE, "queued", True), (QUEUE, "started", False), (OTHER, "queued", False), (None, None, False)],
)
def test_of_two_notes_the_one_whose_job_waits_here_counts_and_else_the_newest(
    valkey, table, origin, status, kept
):
    own, newer = ACTED.text(), replace(ACTED, at_ms=ACTED.at_ms + 1, job_id="repeat:tidy:2").text()
    valkey.hset(keys.fired(QUEUE), "tidy", own)
    valkey.hset(keys.fired(OTHER), "tidy", newer)
    for job_id in ("repeat:tidy:1", "repeat:tidy:2") if origin else ():
        job = queue_keys.job(rq_id(job_id).encode())
        valkey.hset(job, mapping={"status": status, "origin": origin if job_id.endswith("1") else OTHER})

    table.reconcile([schedule()], now=START, former=[remembered.read(valkey, OTHER, with_fired=True)])
    assert valkey.hget(keys.fired(QUEUE), "tidy").decode() == (own if kept else newer)


def test_tables_of_two_queues_know_nothing_of_each_other(valkey):
    ground = Ground(valkey, schedule("a"), schedule("b"), queues=(QUEUE, OTHER))

    ground.reconcile(queue=QUEUE)
    assert (list(ground.tables[QUEUE].resident()), list(ground.tables[OTHER].resident())) == ([], ["a", "b"])
    assert ground.tables[OTHER].remove(["b", "z"]) == ("b",)
    assert ground.tables[OTHER].clear() == ("a",)
    assert not valkey.keys("sched:*")


def test_a_schedule_that_this_host_cannot_read_stops_all_of_it(valkey, table):
    table.reconcile([schedule("a")], now=START)
    before = everything(valkey)

    with pytest.raises(ConfigurationError, match=r"schedule b .*Nowhere"):
        table.reconcile([schedule("c"), schedule("b", zone="Nowhere/At")], now=START)
    assert everything(valkey) == before


class TestTears:
    def torn(self, table, stalls=2):
        table.reconcile([schedule(), schedule("other")], now=START)
        assert table.tear_down("tidy", stalls=stalls, at_ms=7)

    def test_it_is_out_and_the_reason_is_kept(self, valkey, table):
        self.torn(table)

        tidy = table.resident()["tidy"]
        assert (tidy.definition, tidy.next_ms) == ("", None)
        assert tidy.torn == Torn(
            fingerprint=notes.fingerprint(schedule().text()), stalls=2, at_ms=7, definition=schedule().text()
        )
        assert valkey.zrange(keys.upcoming(QUEUE), 0, -1) == [b"other"]
        assert not table.tear_down("tidy", stalls=3, at_ms=8)
        assert not table.tear_down("absent", stalls=3, at_ms=8)

    @pytest.mark.parametrize(
        ("wanted", "installed", "torn"),
        [
            pytest.param([schedule()], (), ("tidy",), id="the same"),
            pytest.param([schedule(task="better")], ("tidy",), (), id="edited"),
            pytest.param([schedule(pattern="1 * * * *")], ("tidy",), (), id="at another time"),
            pytest.param([], (), (), id="gone"),
        ],
    )
    def test_it_comes_back_with_an_edit(self, valkey, table, wanted, installed, torn):
        self.torn(table)

        done = table.reconcile(wanted, now=LATER)

        assert (done.installed, done.torn) == (installed, torn)
        assert valkey.hexists(keys.torn(QUEUE), "tidy") == bool(torn)
        assert valkey.hexists(keys.definitions(QUEUE), "tidy") == bool(installed)
        if not wanted:
            assert table.reconcile([schedule()], now=LATER).installed == ("tidy",)

    def test_it_comes_back_by_hand(self, valkey, table):
        self.torn(table)
        valkey.set(keys.stalls("tidy"), 3)

        assert table.restore("tidy", now=LATER)

        tidy = table.resident()["tidy"]
        assert (tidy.definition, shown(tidy.next_ms), tidy.torn) == (schedule().text(), "03. 12:05", None)
        assert not valkey.exists(keys.stalls("tidy"))
        assert not table.restore("tidy")
        assert table.reconcile([schedule(), schedule("other")], now=LATER).torn == ()

    @pytest.mark.parametrize("note", ["{}", '{"definition":"x","stalls":1,"at":1,"text":"none"}'])
    def test_a_note_that_says_nothing_is_cleared_all_the_same(self, valkey, table, note):
        valkey.hset(keys.torn(QUEUE), "tidy", note)

        assert table.restore("tidy")
        assert table.resident() == {}


def test_a_clock_that_went_back_leaves_nothing_due_too_late(valkey, table):
    table.reconcile([schedule(), schedule("weekly", "0 3 * * sun")], now=START + 365 * DAY)
    valkey.hset(keys.definitions(QUEUE), "strange", "{}")
    valkey.zadd(keys.upcoming(QUEUE), {"strange": epoch_ms(START + 365 * DAY)})

    assert table.hasten(now=START) == ("tidy", "weekly")
    assert [shown(one.next_ms) for one in table.resident().values()] == [
        "03. 10:02",
        "03. 10:05",
        "08. 03:00",
    ]
    assert table.hasten(now=START + MINUTE) == ()
    # By a file it is put right as well.
    table.reconcile([schedule()], now=START + 365 * DAY)
    table.reconcile([schedule(pattern="*/5 * * * *", task="x")], now=START)
    assert shown(table.resident()["tidy"].next_ms) == "03. 10:05"


class Interrupted(Table):
    """A table in which something happens between reading and changing."""

    def __init__(self, client, *steps):
        super().__init__(client, QUEUE)
        self.steps = list(steps)

    def _read(self):
        seen = super()._read()
        if self.steps:
            self.steps.pop(0)()
        return seen


def test_a_change_in_between_is_seen(valkey, table):
    table.reconcile([schedule()], now=START)
    edited = schedule(task="tidy more")

    def tear():
        table.tear_down("tidy", stalls=9, at_ms=7)

    done = Interrupted(valkey, tear).reconcile([edited], now=START)
    assert done.installed == ("tidy",)
    assert table.resident()["tidy"].torn is None
    # Of two hosts with one queue, the second finds nothing to do.
    Interrupted(valkey, lambda: table.reconcile([schedule("b")], now=START)).reconcile(
        [schedule("b")], now=START
    )
    assert list(table.resident()) == ["b"]

    flips = [lambda text=text: table.reconcile([schedule("b", task=text)], now=START) for text in "abcdefgh"]
    with pytest.raises(OperationalError, match=QUEUE):
        Interrupted(valkey, *flips).reconcile([schedule("b", task="z")], now=START)


def step_of(table, name):
    table.reconcile([schedule("a", task="x"), schedule("d")], now=START) if name == "reconcile" else None
    table.tear_down("a", stalls=1, at_ms=1) if name == "tear down" else None
    table.restore("b", now=START) if name == "restore" else None


@pytest.mark.parametrize("name", ["reconcile", "tear down", "restore"])
def test_a_key_of_another_type_or_a_full_server_stops_it_whole(valkey, table, name):
    table.reconcile([schedule(one) for one in "abc"], now=START)
    table.tear_down("b", stalls=1, at_ms=1)
    before = everything(valkey)
    valkey.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            step_of(table, name)
    finally:
        valkey.config_set("maxmemory", 0)
    assert everything(valkey) == before

    for key in ALL_KEYS:
        kept = valkey.dump(key)
        valkey.set(key, "x")
        spoilt = everything(valkey)
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            step_of(table, name)
        assert everything(valkey) == spoilt, key
        valkey.delete(key)
        if kept:
            valkey.restore(key, 0, kept)


def test_one_table_that_cannot_be_read_costs_no_other(valkey, table):
    table.reconcile([schedule()], now=START)
    valkey.set(keys.since(OTHER), "x")

    assert read_tables(valkey, [OTHER, QUEUE]) == {OTHER: "wrong-type", QUEUE: table.resident()}
    with pytest.raises(ResponseError, match=f"{OTHER}.*wrong-type"):
        Table(valkey, OTHER).resident()


def test_two_thousand_are_no_work_for_the_server(valkey, table):
    """By its processor, however busy the machine is."""
    many = [schedule(f"s{number:04}", f"{number % 60} 3 * * *") for number in range(2000)]
    begun = busy_seconds(valkey)

    assert len(table.reconcile(many, now=START).installed) == 2000
    assert len(table.reconcile(many[:1], now=START).removed) == 1999
    assert busy_seconds(valkey) - begun < 0.1
    assert valkey.zcard(keys.upcoming(QUEUE)) == 1


def busy_seconds(valkey):
    found = valkey.info("cpu")
    return found["used_cpu_user_main_thread"] + found["used_cpu_sys_main_thread"]
