from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.outcome import Outcome
from runs.record import (
    MAX_RECORD_BYTES,
    Attempt,
    DamagedRecordError,
    Record,
    order,
    position_ms,
)
from tests.harness.records import records

ENDED = datetime(2026, 1, 5, 10, 5, tzinfo=UTC)


def record(**fields: object) -> Record:
    return Record(**{"job_id": "local-1", "outcome": Outcome.COMPLETED, "attempt": 0, **fields})


def line(**keys: object) -> bytes:
    return json.dumps({"jobId": "local-1", "outcome": "failed", "attempt": 0, **keys}).encode()


@given(records())
def test_one_line_of_ascii_is_written_and_read_back(kept):
    written = kept.to_bytes()

    assert written.isascii()
    assert b"\n" not in written
    assert Record.from_bytes(written) == kept


def test_absent_information_is_null_and_every_key_is_there():
    written = json.loads(record().to_bytes())

    present = {"jobId", "outcome", "attempt", "final", "attempts"}
    assert {key for key, value in written.items() if value is not None} == present
    assert len(written) == 30
    assert {"queuedAt", "scopeHash", "imageDigest", "final", "attempts", "host", "budgetReserved"} <= set(
        written
    )


def test_keys_of_a_later_version_are_ignored():
    read = Record.from_bytes(line(costCenter="x", tokens={"total": 3, "later": [1]}))

    assert read.tokens == {"input": None, "output": None, "total": 3, "cost": None}


def test_a_record_of_the_reference_that_lacks_our_keys_is_final():
    read = Record.from_bytes(line())

    assert read.final
    assert read.attempts == ()


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut off"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"[" * 200_000, id="deeper than any stack"),
        pytest.param(b" " * (MAX_RECORD_BYTES + 1), id="too long"),
        pytest.param(b'{"outcome":"failed","attempt":0}', id="no id"),
        pytest.param(line(jobId=5), id="an id that is no text"),
        pytest.param(line(outcome="won"), id="an outcome that does not exist"),
        pytest.param(line(outcome=None), id="no outcome"),
        pytest.param(line(attempt="0"), id="a count as text"),
        pytest.param(line(attempt=True), id="a count that is true"),
        pytest.param(line(attempt=-1), id="a negative count"),
        pytest.param(line(turns=2**60), id="a number beyond what a column holds"),
        pytest.param(line(reason="No such file: /srv/x"), id="a message instead of a reason"),
        pytest.param(line(final="yes"), id="a flag as text"),
        pytest.param(line(endedAt="2026-01-05T10:00:00"), id="an instant without a zone"),
        pytest.param(line(endedAt="0001-01-01T00:00:00+14:00"), id="an instant before all time"),
        pytest.param(line(endedAt=5), id="an instant as a number"),
        pytest.param(line(tokens={"total": float("nan")}), id="not a number"),
        pytest.param(line()[:-1] + b',"tokens":{"total":1e999}}', id="beyond all numbers"),
        pytest.param(line(tokens=[]), id="tokens that are a list"),
        pytest.param(line(usage={"v": 1, "models": []}), id="usage of no model"),
        pytest.param(line(usage={"v": 1, "models": [{"provider": "p"}]}), id="usage of an unnamed model"),
        pytest.param(line(session={"resumed": "yes"}), id="a session verdict that is no flag"),
        pytest.param(line(attempts={}), id="attempts that are no list"),
        pytest.param(line(attempts=[{"outcome": "won"}]), id="an earlier attempt of no known outcome"),
        pytest.param(line(attempts=[{"outcome": "failed"}] * 65), id="too many attempts"),
    ],
)
def test_a_wrong_shape_is_reported_as_damage(damaged):
    with pytest.raises(DamagedRecordError):
        Record.from_bytes(damaged)


def test_the_report_names_the_field_and_never_what_stood_there():
    with pytest.raises(DamagedRecordError) as raised:
        Record.from_bytes(line(attempts=[{"outcome": "failed", "reason": "/srv/canary"}]))

    assert str(raised.value).startswith("attempts: reason: ")
    assert "canary" not in str(raised.value)


@given(
    st.binary(max_size=60)
    | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(repr).map(str.encode)
)
def test_no_bytes_do_worse_than_damage(raw):
    with pytest.raises(DamagedRecordError):
        Record.from_bytes(raw)


def test_texts_are_made_storable_everywhere():
    read = Record.from_bytes(line(jobId="a\0b\ud800", flow="x" * 600, model="\ud83d\ude00"))

    assert read.job_id == "a\ufffdb\ufffd"
    assert read.flow == "x" * 512
    assert read.model == "😀"


def test_an_earlier_attempt_is_kept_with_what_it_used():
    earlier = Attempt(
        outcome=Outcome.FAILED, reason="stalled", exit_code=1, turns=2, tokens=None, ended_at=ENDED
    )

    read = Record.from_bytes(record(attempts=(earlier,)).to_bytes())

    assert read.attempts == (earlier,)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param({"attempt": 0, "final": True}, {"attempt": 1, "final": False}, id="a later attempt"),
        pytest.param({"final": False}, {"final": True}, id="the final word of one attempt"),
        pytest.param({"ended_at": ENDED}, {"ended_at": ENDED + timedelta(milliseconds=1)}, id="a later end"),
        pytest.param({}, {"ended_at": ENDED}, id="an end that is known"),
    ],
)
def test_newer_news_ranks_higher(older, newer):
    assert order(record(**older)) < order(record(**newer))


def test_a_record_stands_where_it_ended_else_where_it_started_else_where_it_was_queued():
    later, earlier = ENDED, ENDED - timedelta(hours=1)

    assert position_ms(record(ended_at=later, started_at=earlier)) == later.timestamp() * 1000
    assert position_ms(record(started_at=earlier)) == earlier.timestamp() * 1000
    assert position_ms(record(queued_at=earlier)) == earlier.timestamp() * 1000
    assert position_ms(record()) == 0
