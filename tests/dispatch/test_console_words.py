"""What commands make of what a person typed, and what they say of a server and of a waiting job."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import exceptions

from dispatch.console.arguments import one_line
from dispatch.console.lookup import why_it_waits
from dispatch.console.server import explained
from dispatch.console.status import read_status
from dispatch.console.tasks import read_task
from dispatch.jobs import MAX_TASK_BYTES
from hosts import keys, switches
from pidispatch_site import clients
from pidispatch_site.errors import ConfigurationError
from tests.dispatch.queuekit import QUEUE, Host, age_beat

THERE = "pi-jobs@there"


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_becomes_one_line_that_can_be_stored_and_shown(text):
    line = one_line(text)

    assert line.encode().decode() == line
    assert line.isprintable()
    assert line == " ".join(line.split(" "))
    assert one_line(line) == line


def test_a_plain_reason_stays_as_it_is():
    assert one_line("Umzug nach Köln (2 h)") == "Umzug nach Köln (2 h)"


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        pytest.param(exceptions.TimeoutError("x"), 1, "does not answer (TimeoutError)", id="silent"),
        pytest.param(exceptions.BusyLoadingError("x"), 1, "does not answer (BusyLoadingError)", id="loading"),
        pytest.param(exceptions.AuthenticationError("x"), 2, "refused the user or password", id="password"),
        pytest.param(exceptions.OutOfMemoryError("full"), 1, "(OutOfMemoryError: full)", id="full"),
        pytest.param(clients.ServerRefusesWritesError("disk"), 1, "Error: disk)", id="disk"),
        pytest.param(exceptions.ResponseError("y" * 1000), 1, f"ResponseError: {'y' * 200})", id="long"),
        pytest.param(exceptions.InvalidResponse("<html>"), 2, "is no Valkey or Redis", id="no Valkey"),
    ],
)
def test_a_fault_is_put_in_words_with_the_code_that_fits(fault, code, says):
    error = explained(fault, "redis://host")

    assert error.exit_code == code
    assert "redis://host" in str(error)
    assert says in str(error)


def read(content):
    return read_task("-", stdin=io.BytesIO(content))


@pytest.mark.parametrize(
    ("content", "task"),
    [
        pytest.param(b"fix it\n", "fix it", id="last line break"),
        pytest.param(b"a\r\n\r\nb\r\n\r\n", "a\r\n\r\nb", id="inner line breaks stay"),
        pytest.param("\ufeffnaïve".encode(), "naïve", id="byte order mark"),
        pytest.param(b"", "", id="empty: the job's question"),
        pytest.param(b"x" * MAX_TASK_BYTES, "x" * MAX_TASK_BYTES, id="longest"),
    ],
)
def test_a_task_is_read_as_it_stands(content, task):
    assert read(content) == task


def test_no_more_than_the_longest_task_is_read():
    pipe = io.BytesIO(b"x" * (MAX_TASK_BYTES + 10))

    with pytest.raises(ConfigurationError, match=f"more than {MAX_TASK_BYTES} bytes"):
        read_task("-", stdin=pipe)

    assert pipe.tell() == MAX_TASK_BYTES + 1


def test_status_adds_up_all_queues_and_shows_the_fleets_pause_before_a_queues_own(valkey):
    one, other = Host(valkey), Host(valkey, queue=THERE, host_id="bbbb")
    one.enqueue("local-1", "local-2", "local-3")
    other.enqueue("local-4", "local-5")
    one.start()
    one.put_off(one.claim())
    other.claim()
    switches.pause(valkey, [THERE], by="b", reason="own")
    switches.pause(valkey, [keys.FLEET], by="a", reason="all")

    shown = read_status(valkey)

    flag = shown.pop("pause")
    assert list(shown.items()) == [
        ("pausedState", True),
        ("waiting", 0),
        ("active", 2),
        ("paused", 2),
        ("delayed", 1),
        ("failed", 0),
    ]
    assert (flag["by"], flag["reason"], flag["until"]) == ("a", "all", None)


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        pytest.param(keys.FLEET, "the whole fleet is paused by me@here: lunch; `manage.py", id="fleet"),
        pytest.param(QUEUE, "the queue pi-jobs is paused by me@here: lunch; `manage.py", id="queue"),
    ],
)
def test_a_job_behind_a_pause_waits_for_whoever_paused(valkey, scope, says):
    Host(valkey).beats.register()
    switches.pause(valkey, [scope], by="me@here", reason="lunch")

    assert why_it_waits(valkey, QUEUE).startswith(says)


def test_a_job_waits_for_a_worker_when_none_has_beaten_of_late(valkey):
    host = Host(valkey)
    assert why_it_waits(valkey, QUEUE).startswith("no worker is there")

    host.beats.register()
    assert why_it_waits(valkey, QUEUE) is None

    age_beat(valkey, host, 60)
    assert why_it_waits(valkey, QUEUE).startswith("no worker is there")
