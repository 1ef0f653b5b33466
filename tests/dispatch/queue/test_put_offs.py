"""How often jobs are put off is counted with the step itself, and never in its way."""

from __future__ import annotations

import pytest

from dispatch.queue import keys, put_offs
from dispatch.queue.transitions import Step
from tests.dispatch.queuekit import Host


def put_off(host, reason):
    claimed = host.claim()
    return claimed, host.steps.put_off(claimed, until_ms=1, reason=reason)


def test_each_reason_is_counted_once_a_step(valkey):
    host = Host(valkey)
    host.enqueue("a", "b", "c")
    claimed, _ = put_off(host, "cap")
    put_off(host, "cap")
    put_off(host, "wait")

    # Its answer was lost: the repeat changes nothing.
    assert host.steps.put_off(claimed, until_ms=1, reason="cap") is Step.DONE
    assert put_offs.read(valkey) == {"cap": 2, "wait": 1}


def test_reasons_that_nobody_knows_are_bounded(valkey):
    host = Host(valkey)
    host.enqueue(*(f"j{number}" for number in range(40)))
    for number in range(40):
        put_off(host, f"r{number:02d}")

    assert len(put_offs.read(valkey)) == 33
    assert put_offs.read(valkey)["other"] == 8


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda server: server.set(keys.PUT_OFFS, "x"), id="another type"),
        pytest.param(lambda server: server.hset(keys.PUT_OFFS, "cap", "x"), id="no number"),
        pytest.param(lambda server: server.hset(keys.PUT_OFFS, "cap", 2**63 - 1), id="full"),
    ],
)
def test_what_stands_there_keeps_no_job_from_its_step(valkey, spoil):
    host = Host(valkey)
    host.enqueue("a")
    spoil(valkey)

    assert put_off(host, "cap")[1] is Step.DONE


def test_what_others_wrote_there_is_left_out(valkey):
    valkey.hset(keys.PUT_OFFS, mapping={"cap": 3, "<b>": 1, b"\xff": 2, "wait": "-1", "retry": "9" * 30})

    assert put_offs.read(valkey) == {"cap": 3}

    valkey.hset(keys.PUT_OFFS, mapping={f"r{number}": 1 for number in range(100)})
    assert put_offs.read(valkey) == {}
