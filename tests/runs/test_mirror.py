from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.retry import Retry

from runs import merging, mirror
from runs.files import Entry, marked_stem, stem
from runs.mirror import BODY, INDEX, MOST_MEMBERS, Mirror
from runs.record import MAX_RECORD_BYTES, Record, order, position_ms
from tests.harness.records import a_record, records

DAY_MS = 24 * 60 * 60 * 1000
NOW = datetime.now(UTC).replace(microsecond=0)


def recent(number: int = 0, **fields: object) -> Record:
    """The `number`-th run of the last hour."""
    return a_record(number, **{"ended_at": NOW - timedelta(minutes=50) + timedelta(seconds=number), **fields})


def write(valkey, *news: Record, days: int = 30) -> bool:
    return Mirror(valkey, retention_days=days).write([Entry(record, record.to_bytes()) for record in news])


def read(valkey, wanted: int = 100) -> list[Record]:
    found = mirror.read(valkey, wanted=wanted)
    assert found.standing == merging.OK
    return list(found.records)


def away() -> redis.Redis:
    return redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0))


def test_records_are_read_back_newest_first_as_the_same_bytes_with_a_life(valkey):
    news = [recent(number) for number in range(5)]

    assert write(valkey, *news)

    assert read(valkey) == news[::-1]
    assert read(valkey, wanted=2) == news[:2:-1]
    key = BODY + news[0].job_id
    assert valkey.get(key) == news[0].to_bytes()
    assert valkey.zscore(INDEX, news[0].job_id) == position_ms(news[0])
    assert 29 * DAY_MS < valkey.pttl(key) < 30 * DAY_MS - 40 * 60_000, "it goes with its own age"
    assert valkey.pttl(INDEX) > 29 * DAY_MS


@pytest.mark.parametrize(("days", "lives"), [(0, 92), (1, 1), (92, 92), (400, 92)])
def test_entries_live_as_long_as_files_and_92_days_at_most(days, lives):
    assert mirror.window_ms(days) == lives * DAY_MS


rivals = st.lists(
    st.builds(
        recent,
        number=st.integers(0, 3),
        attempt=st.integers(0, 2),
        final=st.booleans(),
        host=st.sampled_from(["build-1", "build-2"]),
        job_id=st.just("j"),
    ),
    min_size=1,
    max_size=6,
)


def test_whatever_hosts_write_of_one_job_in_any_order_the_newest_stays(valkey):
    @settings(max_examples=60, database=None)
    @given(rivals)
    def compete(news):
        valkey.flushall()
        kept = None
        for record in news:
            assert write(valkey, record)
            if kept is None or order(record) > order(kept):
                kept = record
            assert read(valkey) == [kept]
            assert valkey.zscore(INDEX, "j") == position_ms(kept)

    compete()


def test_any_record_there_can_be_is_mirrored_and_compared_as_files_are(valkey):
    instants = ("ended_at", "started_at", "queued_at")

    @settings(max_examples=30, database=None)
    @given(st.lists(st.tuples(records(st.just("j")), st.sampled_from([1, 2, 3])), min_size=2, max_size=2))
    def compare(drawn):
        valkey.flushall()
        # A run without an end stands at its start, and without that at its queueing.
        pair = [
            replace(
                record,
                attempt=record.attempt % 2,
                **dict.fromkeys(instants[:n], None) | {instants[n - 1]: recent(n).ended_at},
            )
            for record, n in drawn
        ]
        for record in pair:
            write(valkey, record)
        assert read(valkey) == [pair[1] if order(pair[1]) > order(pair[0]) else pair[0]]

    compare()


def test_a_run_stands_at_its_end_else_its_start_else_its_queueing(valkey):
    early, mid, late = (recent(number).ended_at for number in range(3))
    started = recent(job_id="j", ended_at=None, started_at=late, queued_at=early)

    write(valkey, started, replace(started, started_at=None, queued_at=mid), replace(started, started_at=mid))
    assert read(valkey) == [started]

    ended = replace(started, started_at=early, ended_at=late + timedelta(seconds=1))
    write(valkey, ended, replace(started, started_at=late))
    assert read(valkey) == [ended]


@pytest.mark.parametrize("first", ["a/b", "a_b"])
def test_two_ids_of_one_stem_never_overwrite_each_other(first, valkey):
    second = {"a/b": "a_b", "a_b": "a/b"}[first]
    write(valkey, recent(1, job_id=first), recent(2, job_id=second))
    write(valkey, recent(3, job_id=first, attempt=1))
    write(valkey, recent(4, job_id=second, attempt=1))

    assert [(record.job_id, record.attempt) for record in read(valkey)] == [(second, 1), (first, 1)]
    assert {member.decode() for member in valkey.zrange(INDEX, 0, -1)} == {"a_b", marked_stem(second)}

    valkey.delete(BODY + stem(first))
    write(valkey, recent(5, job_id=second, attempt=2))
    assert [(record.job_id, record.attempt) for record in read(valkey)] == [(second, 2)]


def test_an_entry_leaves_with_its_age_and_takes_its_body_along(valkey):
    old = [recent(n, ended_at=NOW - timedelta(days=age)) for n, age in enumerate((91, 20, 2))]
    write(valkey, *old, days=0)
    gone = [recent(n, ended_at=NOW - timedelta(days=93)) for n in range(10, 13)]
    valkey.zadd(INDEX, {record.job_id: position_ms(record) for record in gone})
    valkey.mset({BODY + record.job_id: record.to_bytes() for record in gone})
    valkey.zadd(INDEX, {"without-body": position_ms(old[1])})

    write(valkey, recent(20), recent(21, ended_at=NOW - timedelta(days=8)), days=7)

    assert read(valkey) == [recent(20), *old[::-1]], "others keep their files for longer; ours is too old"
    assert valkey.zcard(INDEX) == 4
    assert not valkey.exists(*(BODY + record.job_id for record in gone))
    assert valkey.pttl(INDEX) > 90 * DAY_MS, "nor does a short window shorten the others' index"


def test_the_mirror_keeps_5000_and_the_oldest_leave_with_their_bodies(valkey):
    start = position_ms(recent())
    valkey.zadd(INDEX, {f"x{number}": start - 9000 + number for number in range(MOST_MEMBERS + 10)})
    valkey.mset({f"{BODY}x{number}": b"{}" for number in range(40)})

    write(valkey, *(recent(number) for number in range(10)))

    assert valkey.zcard(INDEX) == MOST_MEMBERS
    assert valkey.zrange(INDEX, 0, 0) == [b"x20"]
    assert valkey.exists(*(f"{BODY}x{number}" for number in range(20))) == 0
    assert valkey.exists(f"{BODY}x20") == 1


def test_large_records_come_through_in_several_calls(valkey):
    line = recent(1).to_bytes()
    padded = line[:-1] + b" " * (MAX_RECORD_BYTES - len(line)) + b"}"
    entries = [
        Entry(recent(n), padded.replace(b"local-00000001", f"local-{n:08x}".encode())) for n in range(9)
    ]
    before = valkey.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]

    assert Mirror(valkey, retention_days=0).write(entries)

    assert valkey.info("commandstats")["cmdstat_evalsha"]["calls"] - before in (3, 4), "one NOSCRIPT perhaps"
    assert len(read(valkey)) == 9
    assert valkey.strlen(BODY + recent(8).job_id) == MAX_RECORD_BYTES


def test_a_reader_takes_in_no_more_than_its_bounds(valkey, monkeypatch):
    write(valkey, *(recent(number) for number in range(300)))
    monkeypatch.setattr(mirror, "_READ_BYTES", 1000)
    found = mirror.read(valkey, wanted=300)
    assert (found.standing, len(found.records)) == (merging.TRUNCATED, 128)

    monkeypatch.undo()
    monkeypatch.setattr(mirror, "MOST_MEMBERS", 200)
    assert mirror.read(valkey, wanted=300).standing == merging.TRUNCATED
    assert mirror.read(valkey, wanted=100).standing == merging.OK


def test_what_is_damaged_or_hostile_is_skipped_or_pruned_and_hides_nothing(valkey):
    good = [recent(number) for number in range(3)]
    write(valkey, *good)
    high = position_ms(recent()) + DAY_MS
    bodies = {"garbage": b"garbage", "list": b"[1]", "deep": b"[" * 5000, "other": good[0].to_bytes()}
    bodies |= {"big": b" " * (MAX_RECORD_BYTES + 1), "empty": b""}
    valkey.mset({BODY + name: body for name, body in bodies.items()})
    valkey.zadd(INDEX, dict.fromkeys([*bodies, "none", "typed", b"\xff\x00 odd"], high))
    valkey.rpush(f"{BODY}typed", "x")

    assert read(valkey, wanted=3) == good[::-1]

    kept = set(valkey.zrange(INDEX, 0, -1))
    assert kept == {name.encode() for name in [*bodies, *(record.job_id for record in good)]}


@pytest.mark.parametrize("body", [b"garbage", b"[]", b"{}", b'{"jobId":"j","attempt":"9"}', b'{"jobId":7}'])
def test_a_body_that_is_none_is_replaced(body, valkey):
    valkey.set(f"{BODY}j", body)

    write(valkey, recent(job_id="j"))

    assert read(valkey) == [recent(job_id="j")]


def test_a_body_of_another_type_is_replaced(valkey):
    valkey.rpush(f"{BODY}j", "x")

    assert write(valkey, recent(job_id="j"))
    assert read(valkey) == [recent(job_id="j")]


def test_off_is_not_unreachable_and_neither_is_an_empty_history(valkey):
    assert mirror.read(valkey, wanted=5).standing == merging.OFF
    assert mirror.read(away(), wanted=5).standing == merging.unreachable("no-answer")

    valkey.set(INDEX, "x")
    assert mirror.read(valkey, wanted=5).standing == merging.unreachable("wrong-type")

    valkey.delete(INDEX)
    valkey.zadd(INDEX, {"gone": 1})
    assert mirror.read(valkey, wanted=5) == merging.Mirrored(merging.OK)
    assert mirror.read(valkey, wanted=5).standing == merging.OFF, "pruned"


def test_a_body_that_comes_in_while_a_reader_prunes_stays_in_the_index(valkey):
    write(valkey, recent(1), recent(2))
    keys = [BODY + recent(n).job_id for n in (1, 2)]
    valkey.delete(keys[0])

    assert mirror._pruned(valkey, [key.encode() for key in keys]) == 1

    assert read(valkey) == [recent(2)]


def test_deleting_all_of_it_at_any_moment_is_safe(valkey):
    for deleted in ([INDEX], [BODY + recent(1).job_id], [INDEX, BODY + recent(1).job_id]):
        write(valkey, recent(1), recent(2))
        valkey.delete(*deleted)
        write(valkey, recent(1), recent(2))
        assert read(valkey) == [recent(2), recent(1)]
        valkey.flushall()


def test_a_failure_is_told_once_and_its_end_once(valkey, events):
    written = Mirror(valkey, retention_days=30)
    entries = [Entry(recent(), recent().to_bytes())]

    valkey.set(INDEX, "x")
    assert not written.write(entries)
    assert not written.write(entries)
    assert valkey.keys("runs:rec:*") == [], "nothing of a refused call stays"
    valkey.delete(INDEX)
    assert written.write(entries)
    assert written.write(entries)

    assert events() == [
        {"event": "run_mirror_failed", "reason": "wrong-type"},
        {"event": "run_mirror_restored"},
    ]


def test_what_was_not_taken_is_tried_again_the_newest_of_it(valkey, monkeypatch):
    written = Mirror(valkey, retention_days=30)
    entries = [Entry(recent(number), recent(number).to_bytes()) for number in range(3)]
    monkeypatch.setattr("runs.mirror._MISSED_BYTES", 2 * len(entries[0].line) + 9)
    valkey.set(INDEX, "x")
    written.write(entries[:1])
    written.write(entries[1:])

    valkey.delete(INDEX)
    written.retry()
    assert {one.job_id for one in read(valkey)} == {recent(1).job_id, recent(2).job_id}
    valkey.delete(INDEX)
    written.retry()

    assert not valkey.exists(INDEX), "once is enough"


def test_a_server_that_is_full_away_or_refuses_is_named(valkey, events):
    assert not Mirror(away(), retention_days=1).write([Entry(recent(), recent().to_bytes())])
    before = valkey.config_get("maxmemory")["maxmemory"]
    valkey.config_set("maxmemory", 1)
    try:
        assert not write(valkey, recent())
    finally:
        valkey.config_set("maxmemory", before)

    assert [told["reason"] for told in events()] == ["no-answer", "server-full"]
    assert mirror.why(redis.exceptions.ResponseError("ERR unknown command")) == "refused"
