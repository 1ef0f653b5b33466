"""`manage.py demo --data`: a past that is always the same, a fleet at work, and nothing left of it."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from django.test import override_settings

from dispatch.demo import filling, past
from dispatch.ids import rq_id
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError
from runs.outcome import Outcome, Reason
from runs.record import Record
from tests.dispatch.consolekit import MANAGE, ROOT
from tests.dispatch.test_demo import NO_ENGINE, Place

NOW = datetime(2026, 3, 18, 11, 30, tzinfo=UTC)
SCOPES = past.scopes("/demo")


@pytest.fixture(scope="module")
def invented():
    return past.records(NOW, SCOPES)


def test_the_past_is_the_same_each_time_and_tomorrow_has_the_same_yesterday(invented):
    tomorrow = {one.job_id: one for one in past.records(NOW + timedelta(days=1), SCOPES)}
    quiet = [one for one in invented if _is_of_an_even_day(one)]

    assert past.records(NOW, SCOPES) == invented
    assert len(quiet) > 2000
    assert all(tomorrow[one.job_id] == one for one in quiet)


def _is_of_an_even_day(record: Record) -> bool:
    """Neither cut off by the first instant, nor of a day that is bad as seen from one of the two."""
    age = (NOW.date() - record.queued_at.date()).days
    is_update = record.job_id.startswith(f"repeat:{past.UPDATE}:")
    return 1 < age < past.DAYS - 1 and age not in range(10, 15) and not is_update


def test_the_past_is_what_workers_write(invented):
    job_ids = {one.job_id for one in invented}

    assert len(job_ids) == len(invented)
    assert 3000 < len(invented) < 8000
    for one in invented:
        assert rq_id(one.job_id)
        assert Record.from_bytes(one.to_bytes()) == one
        assert one.queued_at <= (one.started_at or one.ended_at) <= one.ended_at < NOW
        assert "/" not in one.to_bytes().decode()
        assert one.parent_job_id is None or one.parent_job_id in job_ids
    assert invented == sorted(invented, key=lambda one: one.ended_at)
    assert {one.host for one in invented} == set(past.HOSTS)
    assert {one.outcome for one in invented} == set(Outcome)


def test_the_last_runs_of_the_schedule_that_is_down_were_lost(invented):
    runs = past.of_schedule(invented, past.UPDATE)

    assert [one.reason for one in runs[-past.STALLS :]] == [Reason.STALLED] * past.STALLS
    assert past.of_schedule(invented, past.AUDIT)[-1].ended_at > NOW - timedelta(days=1)


def test_what_was_spent_is_counted_from_the_beginning_of_a_window(invented):
    day, week = NOW.replace(hour=0, minute=0), NOW - timedelta(days=7)
    scope = SCOPES["web-shop"]

    paid = [one for one in invented if one.budget_reserved and one.started_at >= day]
    assert past.starts(invented, day) == len(paid) > 0
    assert past.starts(invented, week) > past.starts(invented, day) > past.starts(invented, day, scope) > 0
    assert past.tokens(invented, week) > past.tokens(invented, day) > 0


def test_only_a_demo_is_filled_with_what_never_was(tmp_path):
    environment = {"PI_STATE_DIR": str(tmp_path / "state")}

    with (
        override_settings(PIDISPATCH=conf.load(environment)),
        pytest.raises(ConfigurationError, match="is not one of a demo"),
    ):
        filling.fill(NOW)

    assert not (tmp_path / "state").exists()


class Visitor:
    """Somebody with the link."""

    def __init__(self, link: str) -> None:
        self._origin = link.partition("/login/")[0]
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self._read(link))[1]
        self._read(link, urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode())

    def page(self, path: str) -> str:
        """What a page says, without its markup."""
        return " ".join(re.sub(r"<[^>]*>", " ", self._read(self._origin + path)).split())

    def _read(self, url: str, data: bytes | None = None) -> str:
        request = urllib.request.Request(url, data, {"Referer": url})  # noqa: S310 - our own loopback
        with self._open(request, timeout=20) as answer:
            return answer.read().decode()


PAGES = {
    "/admin/": r"Hosts alive 3 .*Running 6 .*Day \d+ of 150 .*dependency-update",
    "/admin/fleet/": r"alder.* alive .*birch.* paused by kim@birch.*cedar.* drained",
    "/admin/switch/": r"1 of \d+ queues is paused: pi-jobs@birch\..* 6 containers run on 3 hosts",
    "/admin/runs/run/?flow=audit": r"repeat:nightly-audit:\d+",
    "/admin/insights/": r"Runs [\d,]{5,} .*completed",
}


def test_a_fleet_at_work_is_in_the_admin_until_it_is_ended():
    place = Place()

    def run(*words, **changes):
        environment = place.environment({**NO_ENGINE, **changes})
        return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=150)

    try:
        played = run(*MANAGE, "demo", "--data")
        assert played.returncode == 0, played.stdout + played.stderr
        folder = re.search(r"demo --end (\S+)", played.stdout)[1]
        visitor = Visitor(re.search(r"^ +(http://\S+/login/\S+)$", played.stdout, re.MULTILINE)[1])
        seen = {path: visitor.page(path) for path in PAGES}
        status = json.loads(run(*MANAGE, "status", PI_ENV_FILE=f"{folder}/alder.env", VALKEY_URL=None).stdout)
        ended = run(*MANAGE, "demo", "--end", folder)
        left = place.left()
    finally:
        place.close()

    assert [path for path, shown in PAGES.items() if not re.search(shown, seen[path])] == []
    assert not any(folder in text for text in seen.values())
    assert (status["active"], status["delayed"], status["pausedQueues"]) == (6, 3, ["pi-jobs@birch"])
    assert "Nothing is isolated" in played.stdout
    assert ended.stdout == f"The demo in {folder} was ended.\n"
    assert left == []
    assert not Path(folder).exists()
