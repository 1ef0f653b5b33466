"""Draining and rerouting a host from the browser: what is shown before, what is done, what the log keeps."""

from __future__ import annotations

import html
import json
import re
import time

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from dispatch.pages import fleet_reroute, fleet_rerouting
from hosts import stops, switches
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host, age_beat, everything, listed
from tests.dispatch.test_command_reroute import enqueue_forge

ALPHA = "/admin/fleet/host/alpha/"
DRAIN, UNDRAIN, REROUTE = (f"{ALPHA}{verb}/" for verb in ("drain", "undrain", "reroute"))
EVIL = "<script>alert(1)</script>"


def member(name, *, csrf=False):
    """Log somebody in; no groups, which the end of a test with transactions takes away."""
    user = User.objects.create_user(name, is_staff=True)
    may = ["view_fleet"] + (["operate_fleet"] if name == "operator" else [])
    user.user_permissions.set(Permission.objects.filter(codename__in=may))
    client = Client(enforce_csrf_checks=csrf)
    client.force_login(user)
    return client


@pytest.fixture
def environment(valkey_url, tmp_path):
    def changed(**variables):
        there = {"VALKEY_URL": valkey_url, "PI_STATE_DIR": str(tmp_path)}
        return override_settings(PIDISPATCH_ENVIRONMENT={**there, **variables})

    return changed


@pytest.fixture
def operator(db):
    return member("operator")


def text_of(response):
    main = response.content.decode().partition('id="content"')[2]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


def logged():
    return [(one.object_id, json.loads(one.change_message)) for one in LogEntry.objects.order_by("pk")]


def drain_of(valkey, host="alpha"):
    return switches.read(valkey, (), host=host).drain


def until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)
    return found


def test_a_drain_shows_what_goes_on_then_holds_and_is_in_the_log(valkey, environment, operator):
    host = Host(valkey, name="alpha", queue="pi-jobs@alpha")
    host.enqueue("a", "b")
    host.beats.register()
    host.start()
    appear(valkey, "alpha")
    before = everything(valkey)

    with environment():
        offered = text_of(operator.get(ALPHA))
        asked = text_of(operator.get(DRAIN))
        assert everything(valkey) == before
        done = operator.post(DRAIN, {"reason": "new\ndisk", "lasting": "90m"}, follow=True)

    assert "alpha takes no new job from any queue" in asked
    assert "1 job that it has goes on to the end." in asked
    assert "1 job waits in pi-jobs@alpha for it" in asked
    assert done.redirect_chain == [(ALPHA, 302)]
    assert "Drain and stop its jobs… " in offered
    assert " Stop its jobs… " in text_of(done)
    (said,) = [one.message for one in done.context["messages"]][:1]
    assert said.startswith("alpha takes no new job, until 20")
    flag = drain_of(valkey)
    assert (flag.by, flag.reason, flag.until_ms - flag.since_ms) == (
        "operator (console)",
        "new disk",
        90 * 60 * 1000,
    )
    as_kept = {"by": flag.by, "reason": flag.reason, "since": flag.since_ms, "until": flag.until_ms}
    (entry,) = logged()
    assert entry == (
        "alpha",
        {"action": "host-drain", "reason": "new disk", "before": None, "after": as_kept},
    )

    with environment():
        again = text_of(operator.get(DRAIN))
        ended = text_of(operator.get(UNDRAIN))
        operator.post(UNDRAIN, {"reason": "done"})

    assert re.search(r"It is drained by operator \(console\) since \S+ \S+ UTC until 20\d\d-", again)
    assert "alpha takes jobs again" in ended
    assert drain_of(valkey) is None
    assert logged()[1] == (
        "alpha",
        {"action": "host-undrain", "reason": "done", "before": as_kept, "after": None},
    )


@pytest.mark.parametrize("only", ["alpha", None])
def test_the_end_of_a_drain_keeps_in_the_log_which_request_to_stop_ended_or_stands(
    only, valkey, environment, operator
):
    appear(valkey, "alpha")
    asked = stops.ask(valkey, ("alpha",), by="ann", reason="fire", request_id="r1", only=only)
    with environment():
        done = operator.post(UNDRAIN, {"reason": "done"}, follow=True)

    (_, entry) = logged()[0]
    told = {"by": "ann", "reason": "fire", "since": asked.at_ms, "with": "drain" if only else "pause"}
    drain = {"by": "ann", "reason": "fire", "since": asked.at_ms, "until": None} if only else {}
    assert (entry["before"], entry["after"]) == ({**drain, "stop": told}, None if only else {"stop": told})
    said = str(next(iter(done.context["messages"])))
    assert ("The request to stop that came with its drain is taken back." in said) is bool(only)


def test_a_name_that_was_never_seen_is_doubted_and_can_be_let_go(valkey, environment, operator):
    with environment():
        asked = text_of(operator.get(DRAIN))
        done = operator.post(DRAIN, follow=True)

    assert "No host named alpha was ever seen here: is the name right?" in asked
    assert (done.status_code, " UTC until undrained." in text_of(done)) == (200, True)
    assert f'href="{UNDRAIN}"' in done.content.decode()


@pytest.mark.parametrize("lasting", ["soon", "0m", "-1h", "90", EVIL])
def test_a_wrong_duration_does_nothing_and_is_said(lasting, valkey, environment, operator):
    appear(valkey, "alpha")
    before = everything(valkey)

    with environment():
        response = operator.post(DRAIN, {"reason": EVIL, "lasting": lasting})

    assert "expected a whole number with s, m, h or d behind it" in text_of(response)
    assert "<script>alert" not in response.content.decode()
    assert b'-help fault" aria-invalid="true"' in response.content
    assert (everything(valkey), logged()) == (before, [])


@pytest.mark.parametrize("url", [DRAIN, UNDRAIN, REROUTE])
def test_without_valkey_the_page_says_so_and_what_is_not_known_is_in_the_log(url, environment, operator):
    with environment(VALKEY_URL=NOBODY):
        asked = operator.get(url)
        done = operator.post(url, {"reason": "x"}) if url != REROUTE else None

    assert (asked.status_code, "does not answer" in text_of(asked)) == (200, True)
    if done:
        assert "Not confirmed as" in text_of(done) or "does not answer" in text_of(done)
        assert logged()[0][1]["after"] == {"confirmed": False, "known": None}


@pytest.mark.parametrize("url", [DRAIN, UNDRAIN, REROUTE])
def test_a_viewer_and_a_form_of_another_site_are_refused(url, valkey, environment, db):
    appear(valkey, "alpha")
    before = everything(valkey)

    with environment():
        viewer, forged = member("viewer"), member("operator", csrf=True)
        answers = [viewer.get(url), viewer.post(url, {"reason": "x"}), forged.post(url, {"reason": "x"})]
        nobody = Client().post(url, {"reason": "x"})
        offers = text_of(viewer.get(ALPHA)), text_of(forged.get(ALPHA))

    assert [one.status_code for one in answers] == [403, 403, 403]
    assert nobody.status_code == 302
    assert ["Drain" in text for text in offers] == [False, True]
    assert everything(valkey) == before


@pytest.fixture
def left(valkey):
    """The queue of alpha, which is gone: two jobs of a forge, one on a folder; beta lives."""
    host = Host(valkey, queue="pi-jobs@alpha")
    host.beats.register()
    age_beat(valkey, host, 1000)
    enqueue_forge(host, "1", "2")
    host.enqueue("local-1")
    appear(valkey, "beta")
    return host


@pytest.mark.django_db(transaction=True)
def test_a_reroute_shows_what_moves_and_what_stays_then_moves_it(valkey, left, environment):
    operator = member("operator")
    before = everything(valkey)

    with environment():
        asked = text_of(operator.get(REROUTE))
        assert everything(valkey) == before
        begun = operator.post(REROUTE, {"reason": "gone", "to": "beta"})
        progress = until(lambda: _over(text_of(operator.get(begun["Location"]))))

    assert "2 jobs to pi-jobs gh-1 gh-2" in asked
    assert "1 job stays: its folder is on alpha; with “Jobs on folders, too” you say" in asked
    assert asked.count(fleet_rerouting.FOLDERS_TOO) == 2
    assert (listed(valkey, "pi-jobs@beta"), listed(valkey, "pi-jobs@alpha")) == (
        ["gh-1", "gh-2"],
        ["local-1"],
    )
    assert "Moved 2 jobs away from pi-jobs@alpha. 1 waiting job stays." in progress
    assert "gh-2 pi-jobs@beta moved" in progress
    (target, began), (_, entry) = until(lambda: logged() if len(logged()) == 2 else None)
    assert (target, began["action"], began["reason"]) == ("alpha", "host-reroute", "gone")
    assert began["before"] == {"queue": "pi-jobs@alpha", "to": "beta", "sameFolders": False}
    assert (entry["action"], entry["before"]) == ("host-reroute-ended", began["before"])
    assert entry["after"]["said"] == "Moved 2 jobs away from pi-jobs@alpha. 1 waiting job stays."


def _over(text):
    return text if "away from" in text else None


@pytest.mark.django_db(transaction=True)
def test_very_many_are_tried_in_the_background_which_changes_no_job(valkey, left, environment, monkeypatch):
    monkeypatch.setattr(fleet_reroute, "MOST_AT_ONCE", 2)
    operator = member("operator")

    with environment():
        asked = text_of(operator.get(REROUTE))
        begun = operator.post(REROUTE, {"try": "on"})
        progress = until(lambda: _over(text_of(operator.get(begun["Location"]))))

    assert "3 jobs wait there" in asked
    assert "Would move 2 jobs away from pi-jobs@alpha." in progress
    assert (listed(valkey, "pi-jobs@alpha"), logged()) == (["gh-1", "gh-2", "local-1"], [])


@pytest.mark.parametrize(
    ("to", "said"),
    [
        pytest.param("alpha", "names alpha itself", id="itself"),
        pytest.param(EVIL, "is no worker's name", id="no name"),
        pytest.param("nobody", "nobody is not alive", id="nobody"),
    ],
)
def test_a_place_that_cannot_be_is_said(to, said, left, environment, operator):
    with environment():
        response = operator.get(REROUTE, {"to": to})

    assert said in text_of(response)
    assert "<script>alert" not in response.content.decode()


def test_a_host_that_takes_jobs_is_drained_first(valkey, left, environment, operator):
    appear(valkey, "alpha")

    with environment():
        text = text_of(operator.get(REROUTE))

    assert "would go on taking jobs" in text
    assert "Drain alpha first." in text
