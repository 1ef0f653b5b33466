from __future__ import annotations

import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import redis
from django.contrib.auth.models import User
from redis.backoff import NoBackoff
from redis.retry import Retry

from runs import merging, mirror, mirror_import, rows
from runs.files import Entry
from runs.mirror import Mirror
from runs.mirror_import import MirrorImport
from runs.models import Run
from tests.harness.records import a_record
from tests.runs.test_admin import LIST, listed
from tests.runs.test_recorder import wait_until
from tests.runs.test_rows import row_refused, table_renamed

NOW = datetime.now(UTC).replace(microsecond=0)


def elsewhere(number: int = 0, **fields: object):
    """The `number`-th run of the last hour on another host."""
    ended = NOW - timedelta(minutes=50) + timedelta(seconds=number)
    return a_record(number, **{"ended_at": ended, "host": "build-2", **fields})


def mirrored(valkey, *news) -> None:
    assert Mirror(valkey, retention_days=0).write([Entry(record, record.to_bytes()) for record in news])


def importing(client, **options) -> MirrorImport:
    return MirrorImport(client, **{"keep_days": 0, **options})


def away() -> redis.Redis:
    return redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0))


def table() -> list[tuple[str, int, str]]:
    return list(Run.objects.order_by("pk").values_list("job_id", "attempt", "host"))


def test_runs_of_other_hosts_come_into_the_table_and_only_newer_news_replace(valkey, db):
    rows.write([elsewhere(1, attempt=1, host="build-1"), elsewhere(2, final=False)])
    mirrored(valkey, elsewhere(0), elsewhere(1), elsewhere(2))

    importing(valkey).round(NOW)

    ids = [elsewhere(number).job_id for number in range(3)]
    assert table() == [(ids[0], 0, "build-2"), (ids[1], 1, "build-1"), (ids[2], 0, "build-2")]
    assert Run.objects.get(pk=ids[2]).final


def test_a_round_reads_what_has_changed_since_the_last_one_only(valkey, db):
    found = importing(valkey, round_seconds=60)
    mirrored(valkey, *(elsewhere(number) for number in range(200)))
    found.round(NOW)
    mirrored(valkey, elsewhere(3, attempt=1, ended_at=NOW), elsewhere(300))
    valkey.config_resetstat()

    found.round(NOW)
    found.round(NOW)

    sent = valkey.info("commandstats")
    assert (sent["cmdstat_zrevrange"]["calls"], sent["cmdstat_mget"]["calls"]) == (2, 1)
    assert Run.objects.count() == 201
    assert Run.objects.get(pk=elsewhere(3).job_id).attempt == 1
    assert found.notice() == ""


def test_what_retention_removed_does_not_come_back(valkey, db):
    mirrored(valkey, elsewhere(0, ended_at=NOW - timedelta(days=8)), elsewhere(1))

    importing(valkey, keep_days=7).round(NOW)

    assert [job_id for job_id, *_ in table()] == [elsewhere(1).job_id]


def test_a_round_ends_in_time_and_the_next_goes_on(valkey, db):
    mirrored(valkey, *(elsewhere(number) for number in range(150)))
    found = importing(valkey, round_seconds=0)
    came_to = []

    for _ in range(3):
        found.round(NOW)
        came_to.append((str(found.standing), Run.objects.count(), "missing" in found.notice()))

    assert came_to == [("truncated", 64, True), ("truncated", 128, True), ("ok", 150, False)]


def test_what_the_table_lacks_is_said(valkey, db):
    found = importing(valkey)
    assert "being fetched" in found.notice()

    found.round(NOW)
    assert found.standing == merging.OFF
    assert found.notice() == merging.sentence(merging.OFF)

    mirrored(valkey, elsewhere())
    found.round(NOW)
    assert found.notice() == ""

    valkey.set(mirror.INDEX, "x")
    found.round(NOW + timedelta(hours=1))
    assert found.notice().startswith("This host only")
    assert "wrong-type" in found.notice()
    assert f"as of {NOW:%Y-%m-%d %H:%M:%S} UTC" in found.notice()


def test_a_server_that_is_away_and_a_broken_table_are_no_crash_and_cost_no_news(valkey, db):
    gone = importing(away())
    gone.round(NOW)
    assert gone.standing == merging.unreachable("no-answer")

    mirrored(valkey, elsewhere())
    found = importing(valkey)
    with table_renamed():
        found.round(NOW)
    assert found.standing == merging.unreachable("database-unavailable")
    found.round(NOW)
    assert Run.objects.count() == 1


def test_a_row_that_the_database_refuses_holds_up_no_other_and_is_not_tried_for_ever(valkey, db):
    mirrored(valkey, elsewhere(0), elsewhere(1, job_id="bad-1"))
    found = importing(valkey)

    with row_refused("bad-%"):
        found.round(NOW)
    found.round(NOW)

    assert [job_id for job_id, *_ in table()] == [elsewhere(0).job_id]


@pytest.fixture
def page(client, settings):
    """The run list of a host of a fleet, as a function of the server's address; its thread ends."""
    mirror_import._made.cache_clear()
    client.force_login(User.objects.create_superuser("op"))

    def view(url: str):
        settings.PIDISPATCH = SimpleNamespace(
            worker_name_declared=True, valkey_url=url, run_retention_days=400
        )
        return client.get(LIST)

    yield view
    if getattr(settings.PIDISPATCH, "valkey_url", None):
        view.importing = mirror_import.of_process(settings.PIDISPATCH)
        view.importing.close()


@pytest.mark.django_db(transaction=True)
def test_a_page_has_the_fleets_news_fetched_and_shows_them_the_next_time(page, valkey, valkey_url):
    mirrored(valkey, elsewhere())
    assert b"being fetched" in page(valkey_url).content
    wait_until(Run.objects.exists)

    response = page(valkey_url)

    assert listed(response) == [elsewhere().job_id]
    wait_until(lambda: b"fetched" not in page(valkey_url).content)


@pytest.mark.django_db(transaction=True)
def test_a_page_says_this_host_only_and_waits_for_no_server(page, tmp_path):
    rows.write([replace(elsewhere(), host="build-1")])
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(tmp_path / "s"))
    silent.listen(1)
    try:
        began = time.monotonic()
        page(f"unix://{tmp_path}/s")
        assert time.monotonic() - began < 1.5, "the server gets 2 s to answer"
    finally:
        silent.close()
    wait_until(lambda: b"This host only" in page(f"unix://{tmp_path}/s").content)

    assert listed(page(f"unix://{tmp_path}/s")) == [elsewhere().job_id]


@pytest.mark.django_db(transaction=True)
def test_the_thread_goes_on_after_a_bug_and_ends_when_closed(valkey, events, monkeypatch):
    mirrored(valkey, elsewhere())
    found = importing(valkey, least_pause_seconds=0.01, idle_seconds=0.01)
    read, calls = mirror.index, []

    def index(client):
        calls.append(client)
        return read(client) if len(calls) > 1 else 1 / 0

    monkeypatch.setattr(mirror, "index", index)
    found.page_viewed()
    wait_until(Run.objects.exists)
    found.close()

    assert not found._thread.is_alive()
    assert events() == [{"event": "run_import_error", "error": "ZeroDivisionError"}]


def test_a_host_that_is_not_in_a_fleet_imports_nothing_and_says_nothing(client, settings, db):
    client.force_login(User.objects.create_superuser("op"))
    settings.PIDISPATCH = SimpleNamespace(worker_name_declared=False)

    assert mirror_import.of_process(settings.PIDISPATCH) is None
    assert b'role="status"' not in client.get(LIST).content
