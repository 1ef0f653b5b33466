"""Running an ended job on a local folder again: what is shown, what is enqueued, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import override_settings

from dispatch.console.rerunning import again, enqueue
from dispatch.ids import Kind, local_id, manual_id, occurrence_id, rq_id
from dispatch.jobdata import CronTrigger
from dispatch.jobs import decode, local_job
from dispatch.queue import keys
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.place import find
from pidispatch_site.errors import ConfigurationError, OperationalError
from runs.models import Run
from runs.outcome import Outcome
from runs.run_page import again_gone
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.job_samples import FULL_FORGE
from tests.dispatch.queuekit import Host, age_beat, everything, hash_of, listed

RERUN = "/admin/queue/rerun/"
OTHER = "pi-jobs@beta"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
JOB = local_job("/srv/sentinel/site", task="sentinel task", flow="fix", model="m-1", max_turns=3)


@pytest.fixture
def host(valkey):
    """A host of a fleet whose job has failed."""
    made = Host(valkey, name="beta", queue=OTHER)
    made.producer.enqueue(OTHER, "chain-1", JOB, scope_hash=JOB.scope_hash, needs=["s:default"])
    made.end(made.start(), Outcome.FAILED)
    return made


@pytest.fixture
def operator(client, db, valkey_url):
    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_fleet", "operate_fleet"]))
    client.force_login(user)
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": valkey_url}):
        yield client


def said(response):
    return [str(one) for one in response.context["messages"]]


def test_the_same_data_go_to_the_same_queue_under_a_new_id_once_that_is_confirmed(operator, host, valkey):
    age_beat(valkey, host, 600)
    before = everything(valkey)
    shown = operator.post(RERUN, {"job": "chain-1"}).content.decode()
    assert everything(valkey) == before
    told = ("chain-1", OTHER, "fix", "m-1", "local:site", JOB.scope_hash)
    assert [one for one in told if one not in shown] == []
    assert "It will wait at first: the worker beta" in shown
    assert "sentinel" not in shown

    done = operator.post(RERUN, {"job": "chain-1", "confirmed": "1", "reason": "again"}, follow=True)

    (new,) = listed(valkey, OTHER)
    fields = hash_of(valkey, new)
    assert new.startswith("local-")
    assert decode(valkey.hget(keys.job(new.encode()), "data")) == JOB
    assert (fields["attempts"], fields["scope"], fields["needs"]) == ("2", JOB.scope_hash, "s:default")
    assert said(done) == [f"Job {new} waits on {OTHER}."]
    (entry,) = LogEntry.objects.all()
    assert (entry.object_repr, json.loads(entry.change_message)) == (
        "chain-1",
        {
            "action": "rerun",
            "reason": "again",
            "before": {"job": "chain-1"},
            "after": {"job": new, "queue": OTHER},
        },
    )


def test_the_job_of_a_schedule_keeps_its_schedule_and_gets_an_id_of_its_own(valkey):
    host = Host(valkey)
    job = replace(JOB, trigger=CronTrigger(id="nightly", pattern="0 3 * * *"))
    host.producer.enqueue("pi-jobs", "repeat:nightly:1", job)
    host.end(host.start())

    new = enqueue(valkey, again(valkey, rq_id("repeat:nightly:1")), now=NOW)

    assert new == local_id("/srv/sentinel/site", flow="fix", task="sentinel task", now=NOW)
    assert find(valkey, new).job == job


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(lambda host: "nobody", "Its data are gone", id="forgotten"),
        pytest.param(lambda host: "repeat:nightly:1", "“Run now” among the", id="forgotten, of a schedule"),
        pytest.param(lambda host: "manual:nightly:1", "“Run now” among the", id="forgotten, by hand"),
        pytest.param(lambda host: waiting(host, JOB), "has not ended yet", id="waits"),
        pytest.param(lambda host: ended(host, FULL_FORGE), "a new delivery", id="of a forge"),
        pytest.param(lambda host: foreign(host), "data cannot be read", id="foreign data"),
        pytest.param(lambda host: elsewhere(host), "none of ours", id="foreign queue"),
        pytest.param(lambda host: twice(host), "one job for the rest of the minute", id="twice in a minute"),
    ],
)
def test_what_cannot_be_run_again_is_refused_in_words(operator, host, valkey, given, words):
    job_id, before = given(host), everything(valkey)
    # The clock must not turn to another minute in between.
    response = operator.post(RERUN, {"job": job_id, "confirmed": "1"}, follow=True)

    assert words in said(response)[0]
    assert said(response)[0].startswith(f"Job {job_id} is not run again. ")
    assert everything(valkey) == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(("may", "leads_to"), [(True, "runs/run/nobody/"), (False, "queue/job/nobody/")])
def test_who_comes_from_a_run_comes_back_to_it(operator, host, may, leads_to):
    if may:
        User.objects.get().user_permissions.add(Permission.objects.get(codename="view_run"))

    refused = operator.post(RERUN, {"job": "nobody", "from": "run"})
    shown = operator.post(RERUN, {"job": "chain-1", "from": "run"}).content.decode()

    assert refused.url == f"/admin/{leads_to}"
    assert f'href="/admin/{leads_to.replace("nobody", "chain-1")}"' in shown
    assert ('name="from" value="run"' in shown) is may


def waiting(host, job):
    host.producer.enqueue(OTHER, "local-w", job)
    return "local-w"


def ended(host, job):
    waiting(host, job)
    host.end(host.start())
    return "local-w"


def foreign(host):
    host.client.hset(keys.job(b"chain-1"), "data", "[1]")
    return "chain-1"


def elsewhere(host):
    host.client.hset(keys.job(b"chain-1"), "origin", "<b>")
    return "chain-1"


def twice(host):
    # This minute's id and the next one's are taken: the test may run across the turn.
    asked = again(host.client, "chain-1")
    now = datetime.now(UTC)
    for minute in (now, now.fromtimestamp(now.timestamp() + 60, UTC)):
        enqueue(host.client, asked, now=minute)
    return "chain-1"


def test_whatever_an_address_asks_for_nothing_is_run(operator, host, valkey):
    before = everything(valkey)

    for response in (
        operator.get(RERUN, {"job": "chain-1", "confirmed": "1"}),
        operator.post(RERUN, {"confirmed": "1"}),
        operator.post(RERUN, {"job": "ü" * 150, "confirmed": "1"}),
    ):
        assert response.url == "/admin/queue/"
    assert everything(valkey) == before


def test_a_server_that_is_away_is_said(operator, host):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": NOBODY}):
        response = operator.post(RERUN, {"job": "chain-1", "confirmed": "1"}, follow=True)

    assert "does not answer" in said(response)[0]


def test_the_place_of_a_socket_is_not_told(operator, host, tmp_path):
    with override_settings(PIDISPATCH_ENVIRONMENT={"VALKEY_URL": f"unix://{tmp_path}/nobody.sock"}):
        response = operator.post(RERUN, {"job": "chain-1", "confirmed": "1"}, follow=True)

    assert "unix://(a path)" in said(response)[0]
    assert str(tmp_path) not in response.content.decode()


def test_a_refusal_is_an_error_of_the_person_and_a_known_id_one_of_the_moment(host, valkey):
    with pytest.raises(ConfigurationError):
        again(valkey, "nobody")
    asked = again(valkey, "chain-1")
    enqueue(valkey, asked, now=NOW)
    with pytest.raises(OperationalError, match=r"known already \(queued, on pi-jobs@beta\)"):
        enqueue(valkey, asked, now=NOW)
    assert asked.job.kind is Kind.LOCAL
    assert "sentinel" not in repr(asked)


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (Outcome.COMPLETED, LOCAL.finished_seconds),
        (Outcome.POLICY, LOCAL.finished_seconds),
        (Outcome.FAILED, LOCAL.failed_seconds),
    ],
)
def test_the_page_of_a_run_offers_it_for_as_long_as_the_queue_keeps_its_data(outcome, seconds):
    gone = [bool(again_gone(_ended(outcome, seconds + more), NOW)) for more in (0, 2 * 3600)]

    assert gone == [False, True]
    assert not again_gone(_ended(outcome, seconds + 2 * 3600, final=False), NOW)


@pytest.mark.parametrize(
    ("job_id", "way"),
    [
        ("local-0123456789abcdef", "anew with `manage.py run`."),
        (occurrence_id("nightly", instant=NOW), "“Run now” among the schedules"),
        (manual_id("nightly", instant=NOW), "“Run now” among the schedules"),
    ],
)
def test_whose_data_are_gone_is_started_anew_as_it_was_started_by_its_page_and_by_a_click(
    job_id, way, valkey
):
    said = again_gone(_ended(Outcome.FAILED, 30 * 86_400, job_id=job_id), NOW)
    with pytest.raises(ConfigurationError) as clicked:
        again(valkey, rq_id(job_id))

    assert way in said
    assert said == f"It cannot be run again from here. {clicked.value}"


def _ended(outcome, seconds, *, final=True, **more):
    return Run(outcome=outcome, ended_at=NOW - timedelta(seconds=seconds), final=final, **more)
