"""Actions in the background: what they tell while they run, at their end, and when something is away."""

from __future__ import annotations

import json
import threading

import pytest
import redis
from django.contrib.auth.models import Group, User
from django.test import Client, override_settings

from dispatch.pages import operation_store, operations
from dispatch.pages.operation_state import SILENT_MS, Progress, Row, State, head_text
from dispatch.pages.operation_words import told
from hosts import switches
from pidispatch_site.errors import OperationalError
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.queuekit import Host, everything, now_ms
from tests.harness.worker_process import until

EVIL = "<script>alert(1)</script>"
AN_ID = "0123456789abcdef" * 2


@pytest.fixture
def begin(valkey_url):
    """Begin an action; its work goes on only when `let` is set."""

    def started(work, *, url=valkey_url, kind="cancel", **given):
        environment = {"VALKEY_URL": url, "PI_STATE_DIR": "/nonexistent"}
        return operations.begin(environment, kind=kind, by="ann (console)", reason="tidy", work=work, **given)

    return started


@pytest.fixture
def pages(db, valkey_url):
    """What a viewer gets for an action's page."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.groups.add(Group.objects.get(name="viewer"))
    client = Client()
    client.force_login(user)

    def page(operation_id, part="", **asked):
        with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": asked.pop("url", valkey_url)}):
            return client.get(f"/admin/operations/{operation_id}/{part}", asked)

    return page


def over(client, operation_id):
    """Wait until Valkey has the end of it."""

    def ended():
        found = operation_store.read(client, operation_id)
        return found is not None and not found.is_running

    until(ended, seconds=10, what="the action has ended")
    return operation_store.read(client, operation_id)


def test_it_is_told_while_it_runs_and_when_it_is_over(valkey, begin, pages):
    shown, let = threading.Event(), threading.Event()

    def work(operation):
        operation.tell("asked\x1b[31m beta")
        operation.add(*(Row((f"local-{number}", "dropped"), True) for number in range(250)))
        operation.advance(250, 2500)
        shown.set()
        assert let.wait(10)
        operation.add(*(Row((f"local-{number}", EVIL), False) for number in range(250, 2500)))
        operation.advance(2500)
        return operations.Result("2499 of 2500 jobs are cancelled.", is_good=False, notes=("Look again.",))

    ids, ended = [], []

    def is_told(progress):
        # Whoever reads that it is over finds what is kept of it: nobody can read so yet.
        ended.append((progress.state, operation_store.latest(valkey)[0].state))
        return True

    operation_id = begin(work, columns=("Job", "Fate"), entries=operations.Entries(ids.append, is_told))
    assert shown.wait(10)
    under_way = pages(operation_id).content.decode()
    let.set()
    found = over(valkey, operation_id)
    until(lambda: operations.here(operation_id) is None, seconds=5, what="Valkey has its last word")
    text = pages(operation_id, **{"from": "200"}).content.decode()

    assert all(part in under_way for part in ("250 of 2500 done", "asked [31m beta", "every 1s", "local-199"))
    assert "local-200" not in under_way
    assert (found.state, found.done, found.row_count, found.by) == (State.DONE, 2500, 2500, "ann (console)")
    assert [row.cells[0] for row in operation_store.read(valkey, operation_id, first=2499).rows] == [
        "local-2499"
    ]
    assert (ids, ended) == ([operation_id], [(State.DONE, State.RUNNING)])
    assert found.result.notes == ("Look again.",)
    assert "2499 of 2500 jobs are cancelled." in text
    assert "local-399" in text and "local-400" not in text and "201 to 400 of 2500" in text  # noqa: PT018
    assert EVIL not in text
    assert "every 1s" not in text
    assert [one.id for one in operation_store.latest(valkey)] == [operation_id]
    keys = list(valkey.scan_iter("op:*"))
    assert len(keys) == 3
    assert all(0 < valkey.ttl(key) <= 7 * 24 * 3600 for key in keys)


def test_what_keeps_its_end_waits_for_what_keeps_its_begin(valkey, begin):
    is_done, kept = threading.Event(), []

    def work(operation):
        is_done.set()
        return operations.Result("Nothing to do.", is_good=True)

    def begun(operation_id):
        assert is_done.wait(10)
        # Time enough for an end that does not wait.
        threading.Event().wait(0.3)
        kept.append(("begun", operation_id))

    entries = operations.Entries(begun, lambda progress: kept.append(("ended", progress.id)))
    operation_id = begin(work, entries=entries)
    over(valkey, operation_id)
    assert kept == [("begun", operation_id), ("ended", operation_id)]


def test_an_end_that_is_not_in_the_log_is_told_to_whoever_looks(valkey, begin, pages):
    def work(operation):
        return operations.Result("Done.", is_good=True, notes=("As asked.",))

    operation_id = begin(work, entries=operations.Entries(str, lambda progress: False))
    found = over(valkey, operation_id)

    unlogged = "The end of this action is not in the log: the database is away, or may not be written to."
    assert (found.state, found.result.is_good) == (State.DONE, True)
    assert found.result.notes == (unlogged, "As asked.")
    assert unlogged in pages(operation_id).content.decode()


@pytest.mark.parametrize(("kind", "has_queues"), [("stop", True), ("stop-host", True), ("cancel", False)])
def test_what_stops_shows_how_each_queue_stands(valkey, begin, pages, kind, has_queues):
    Host(valkey).beats.register()
    switches.pause(valkey, ["pi-jobs"], by="ann", reason="smoke")

    operation_id = begin(lambda operation: operations.Result("Done.", is_good=True), kind=kind)
    over(valkey, operation_id)

    page = pages(operation_id).content.decode()
    assert ("by ann" in page) is has_queues


def test_an_action_ends_though_its_begin_could_not_be_kept(valkey, begin):
    ended, ids = [], []

    def begun(operation_id):
        ids.append(operation_id)
        raise ValueError("the database is away")

    def work(operation):
        return operations.Result("Done.", is_good=True)

    with pytest.raises(ValueError, match="away"):
        begin(work, entries=operations.Entries(begun, ended.append))
    assert over(valkey, *ids).state is State.DONE
    assert len(ended) == 1


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        pytest.param(OperationalError("No.\nNot /srv/x."), ("No.", "Not (a path)"), id="foreseen"),
        pytest.param(redis.exceptions.ConnectionError("x"), ("does not answer",), id="valkey"),
        pytest.param(
            ZeroDivisionError("/srv/secret"), ("ended this (ZeroDivisionError)",), id="a mistake of ours"
        ),
    ],
)
def test_one_that_fails_says_so_in_words(valkey, begin, raised, says):
    def work(operation):
        raise raised

    found = over(valkey, begin(work))

    assert found.state is State.FAILED
    said = " ".join((found.result.summary, *found.result.notes))
    assert all(part in said for part in says)
    assert "/srv" not in said
    assert told(found).tone == "bad"


@pytest.mark.parametrize(
    ("meanwhile", "rows"),
    [
        pytest.param("the answer is lost", "ab", id="lost answer"),
        pytest.param("the rows are replaced", "cb", id="replaced meanwhile"),
        pytest.param("a row is added", "abd", id="added meanwhile"),
    ],
)
def test_valkey_ends_up_with_each_row_once_whatever_happens_while_they_are_written(
    valkey, begin, monkeypatch, meanwhile, rows
):
    kept, written = operation_store.keep, threading.Event()
    operations_begun = []

    def work(operation):
        operations_begun.append(operation)
        # Valkey has it without rows by then.
        assert operation.first_kept.wait(10)
        operation.add(Row(("a", "open")), Row(("b", "open")))
        assert written.wait(10)
        return operations.Result("over", is_good=True)

    def unsure(client, progress, given, **named):
        began = kept(client, progress, given, **named)
        if not given or written.is_set():
            return began
        written.set()
        if meanwhile == "the answer is lost":
            raise redis.exceptions.TimeoutError
        if meanwhile == "a row is added":
            operations_begun[0].add(Row(("d", "gone")))
        else:
            operations_begun[0].show([Row(("c", "gone")), Row(("b", "open"))])
        return began

    monkeypatch.setattr(operation_store, "keep", unsure)
    found = over(valkey, begin(work))

    assert [row.cells[0] for row in found.rows] == list(rows)


def test_without_a_server_the_process_itself_tells(begin, pages):
    def work(operation):
        operation.client.ping()

    operation_id = begin(work, url=NOBODY)
    until(lambda: operations.here(operation_id).state is State.FAILED, seconds=5, what="it has failed")
    text = pages(operation_id, url=NOBODY).content.decode()

    assert "does not answer" in text
    assert "console-bad" in text
    with pytest.raises(Exception, match="VALKEY_URL"):
        begin(work, url="nonsense")


def test_one_whose_process_is_silent_is_interrupted(valkey, pages):
    head = head_text(Progress(id=AN_ID, kind="stop", done=1))
    beat = now_ms(valkey) - SILENT_MS - 1000
    valkey.hset(f"op:{AN_ID}", mapping={"head": head, "started": beat, "beat": beat})

    text = pages(AN_ID, "progress/").content.decode()

    assert "Interrupted" in text and "silent for 21 s" in text  # noqa: PT018
    assert 'hx-trigger="every 1s"' in text


HEAD = {"kind": "k", "state": "done"}


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param("", 404, id="none"),
        pytest.param("{", 404, id="no JSON"),
        pytest.param("[" * 99_000, 404, id="deep"),
        pytest.param(json.dumps({**HEAD, "state": []}), 404, id="no state"),
        pytest.param(
            json.dumps({**HEAD, "total": 10**30, "done": -1, "lines": [1, {}], "columns": 7}), 200, id="kinds"
        ),
        pytest.param(
            json.dumps({**HEAD, "by": "\ud800" + EVIL, "lines": [EVIL], "result": {"summary": EVIL}}),
            200,
            id="texts",
        ),
    ],
)
def test_what_others_wrote_costs_no_page(valkey, pages, head, status):
    valkey.hset(f"op:{AN_ID}", mapping={"head": head, "started": "9" * 400, "beat": "x"})
    valkey.rpush(f"op:{AN_ID}:rows", "{", json.dumps({"cells": [EVIL, None], "good": "yes"}))
    valkey.zadd("op:latest", {AN_ID: 1, "../evil": 2, b"\xff": 3})
    before = everything(valkey)

    answers = [pages(AN_ID), pages(AN_ID, "progress/")]

    assert answers[0].status_code == status
    assert all(EVIL not in one.content.decode() for one in answers)
    assert len(operation_store.latest(valkey)) == (status == 200)
    assert everything(valkey) == before


@pytest.mark.parametrize(
    ("operation_id", "asked", "status"),
    [
        pytest.param(AN_ID, {}, 404, id="unknown"),
        pytest.param("pause:*", {}, 404, id="no id"),
        pytest.param(AN_ID, {"from": "-1"}, 404, id="no number"),
        pytest.param(AN_ID, {"url": NOBODY}, 200, id="valkey is away"),
    ],
)
def test_one_that_nobody_knows_is_told_as_that(valkey, pages, operation_id, asked, status):
    valkey.set(f"op:{AN_ID}", "a foreign key")

    answer = pages(operation_id, **asked)

    assert answer.status_code == status
    said = "does not answer" if status == 200 else "There is no such action"
    assert said in answer.content.decode()


def test_a_page_needs_the_permission(db):
    clerk = Client()
    assert clerk.get(f"/admin/operations/{AN_ID}/").status_code == 302
    clerk.force_login(User.objects.create_user("clerk", is_staff=True))
    assert [clerk.get(f"/admin/operations/{AN_ID}/{part}").status_code for part in ("", "progress/")] == [
        403,
        403,
    ]
