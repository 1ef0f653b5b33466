"""The pages of the fleet: who may see them, what they say of hosts, what they say when something is away."""

from __future__ import annotations

import html
import re
import time

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from dispatch.pages.fleet_view import LOOK_AFTER, MOST_SHOWN, Wanted, fleet_view
from hosts import keys, switches
from runs import rows
from tests.dispatch import fleetkit
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import DAY_MS, appear, host_id, known, remember, row
from tests.dispatch.pages.people import member
from tests.dispatch.queuekit import Host, everything
from tests.harness.records import a_record

FLEET = "/admin/fleet/"
ALPHA = "/admin/fleet/host/alpha/"
PAGES = (FLEET, f"{FLEET}live/", ALPHA, f"{ALPHA}live/")
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def viewer(db):
    return member("viewer")


@pytest.fixture
def environment(valkey_url, tmp_path):
    """Settings whose environment has the tests' server; changes are variables."""

    def changed(**variables):
        there = {"VALKEY_URL": valkey_url, "PI_STATE_DIR": str(tmp_path), "TZ": "UTC"}
        return override_settings(PIDISPATCH_ENVIRONMENT={**there, **variables})

    return changed


@pytest.fixture
def seen(environment, viewer):
    """A page's text, tags taken out."""

    def look(url, **variables):
        with environment(**variables):
            response = viewer.get(url)
        return text_of(response)

    return look


def text_of(response):
    main = response.content.decode().partition('id="content"')[2] or response.content.decode()
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


@pytest.fixture
def alpha(valkey):
    """A live host that runs one job, has another in hand, and two waiting in its own queue."""
    host = Host(valkey, name="alpha", host_id=host_id("alpha"), queue="pi-jobs@alpha")
    host.enqueue("a", "b", "c", "d")
    host.beats.register()
    host.start()
    host.claim()
    appear(valkey, "alpha", caps="s:default,w:ci", slotsUsed=2, fpPause="1a2b")
    return host


def test_each_host_is_a_row_with_what_it_does_and_what_it_is(valkey, alpha, seen):
    appear(valkey, "bravo", age_ms=60_000, skew_ms=-7_200, version="0.0.9")
    appear(valkey, "charlie", blind="engine")
    remember(valkey, "delta", age_ms=DAY_MS)
    switches.drain(valkey, "charlie", by="ann", reason="move")
    switches.pause(valkey, ["pi-jobs@alpha"], by="ann", reason="lunch")

    text = seen(FLEET)

    assert "Hosts alive 2 Hosts late 1 Hosts gone 1" in text
    assert re.search(r"alpha \d to look after alive beat \d s ago, clock \+0 s 2 of 4", text), text
    assert "2 waiting 0 deferred, 0 held paused by ann: lunch" in text
    assert re.search(
        r"bravo \d+ to look after late beat 1 min( \d s)? ago, clock 7.2 s behind Valkey's", text
    )
    assert "0.0.9 differs" in text
    assert "0.1.0 differs" not in text
    assert re.search(r"alive beat \d s ago, clock \+0 s drained blind \(engine\)", text)
    assert re.search(r"delta gone beat 1 d ago, clock — ", text)
    assert "s:default w:ci" in text
    assert "warning charlie cannot see, or could not a moment ago: engine" in text
    assert "pi-jobs , shared by all hosts: 0 waiting" in text


def test_a_host_is_shown_with_its_jobs_its_containers_and_its_last_runs(valkey, alpha, seen):
    rows.write([a_record(1, host="alpha", job_id="done-1"), a_record(2, host="bravo", job_id="done-2")])
    valkey.hset(
        f"containers:{host_id('alpha')}", "pi-job-old", '{"job":"old","attempt":0,"token":"t","deadline":1}'
    )

    text = seen(ALPHA)

    assert "Waiting in its queue 2" in text
    assert re.search(r"a running pi-jobs@alpha \d s 1 of 2 pi-job-a now b in hand, being checked", text)
    assert "old its end is not confirmed yet — — — pi-job-old now" in text
    assert "pause windows 1a2b" in text
    assert "done-1 Completed" in text
    assert "done-2" not in text
    assert re.search(r"beat \d s ago", seen(f"{ALPHA}live/"))
    assert "no queue of it is known" in seen("/admin/fleet/host/nobody/")


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        pytest.param(Wanted.of("", ""), ["alpha", "bravo", "charlie"], id="all"),
        pytest.param(Wanted.of(" LPH ", ""), ["alpha"], id="a part of a name"),
        pytest.param(Wanted.of("", "late"), ["bravo"], id="late"),
        pytest.param(Wanted.of("", "gone"), ["charlie"], id="gone"),
        pytest.param(Wanted.of("", LOOK_AFTER), ["bravo"], id="named by a finding"),
        pytest.param(Wanted.of("", EVIL), ["alpha", "bravo", "charlie"], id="nonsense"),
    ],
)
def test_one_can_ask_for_some(wanted, names):
    facts = fleetkit.fleet(row("alpha"), row("bravo", age_ms=61_000), known("charlie", age_ms=DAY_MS))

    assert [host.name for host in fleet_view(facts, wanted).hosts] == names


def test_of_very_many_the_first_are_shown():
    facts = fleetkit.fleet(*(row(f"h{number:03}") for number in range(MOST_SHOWN + 3)))

    view = fleet_view(facts, Wanted())

    assert (len(view.hosts), view.more, view.known) == (MOST_SHOWN, 3, MOST_SHOWN + 3)


@pytest.mark.parametrize(
    ("versions", "marked"),
    [
        pytest.param(["1", "1", "1"], "", id="alike"),
        pytest.param(["1", "1", "2"], "c", id="one is unlike the others"),
        pytest.param(["1", "2", "2"], "a", id="the most count, not the first"),
        pytest.param(["1", "2"], "ab", id="nobody is the usual one"),
        pytest.param(["1", "1", ""], "", id="who is silent is not compared"),
    ],
)
def test_what_differs_from_most_is_marked(versions, marked):
    hosts = (row(name, version=version) for name, version in zip("abc", versions, strict=False))

    view = fleet_view(fleetkit.fleet(*hosts), Wanted())

    assert "".join(host.name for host in view.hosts if host.traits["version"].differs) == marked


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("url", "said"),
    [
        pytest.param(NOBODY, "does not answer", id="away"),
        pytest.param("nonsense", "VALKEY_URL", id="no address"),
    ],
)
def test_what_is_away_is_said(page, url, said, environment, viewer):
    with environment(VALKEY_URL=url):
        response = viewer.get(page)

    assert response.status_code == 200
    assert said in text_of(response)


@pytest.mark.parametrize("page", PAGES)
def test_they_need_the_permission_and_change_nothing(page, valkey, alpha, environment, viewer):
    clerk = Client()
    clerk.force_login(User.objects.create_user("clerk", is_staff=True))
    before = everything(valkey)

    with environment():
        answers = [viewer.get(page).status_code, viewer.post(page).status_code, clerk.get(page).status_code]
        nobody = Client().get(page)

    assert answers == [200, 405, 403]
    assert nobody.status_code == 302
    assert nobody["Location"].startswith("/admin/login/")
    assert everything(valkey) == before


@pytest.mark.parametrize("name", ["a b", "a@b", "..", "<b>", "a" * 65])
def test_no_name_of_a_worker_is_no_page(name, viewer, environment):
    with environment():
        assert viewer.get(f"/admin/fleet/host/{name}/").status_code in {301, 302, 404}


def test_what_peers_wrote_is_text(valkey, alpha, environment, viewer):
    appear(
        valkey,
        "alpha",
        version=EVIL,
        tz=EVIL,
        blind=EVIL,
        imageDigest=EVIL,
        piVersion=EVIL,
        hostId=host_id("alpha"),
    )
    appear(valkey, "bad", concurrency="many")
    valkey.sadd(keys.HOSTS_LIVE, EVIL)
    switches.pause(valkey, ["pi-jobs@alpha"], by=EVIL, reason=EVIL)
    switches.drain(valkey, "alpha", by=EVIL, reason=EVIL)
    valkey.hset(f"containers:{host_id('alpha')}", EVIL, "{}")
    rows.write([a_record(1, host="alpha", flow=EVIL, job_id=EVIL, reason=EVIL)])

    with environment():
        pages = [viewer.get(page).content.decode() for page in (*PAGES, f"{FLEET}?q={EVIL}&show={EVIL}")]

    assert not any("<script>alert" in page for page in pages)
    assert all("&lt;script&gt;" in page for page in pages)
    assert "concurrency is not a count" in html.unescape(pages[0])


@pytest.mark.parametrize(
    "key", [keys.HOSTS_LIVE, "rq:wip:pi-jobs@alpha", "drain:alpha", f"containers:{host_id('alpha')}"]
)
def test_a_key_of_a_wrong_type_costs_what_it_holds(key, valkey, alpha, seen):
    valkey.delete(key)
    valkey.set(key, "text")

    assert "As of " in seen(FLEET)
    text = seen(ALPHA)
    assert "As of " in text or "refused what was asked" in text


def test_fifty_hosts_are_quick_and_cost_few_queries(
    valkey, environment, viewer, django_assert_max_num_queries
):
    for number in range(50):
        appear(valkey, f"host-{number:02}", caps="s:a,w:b")

    with environment(), django_assert_max_num_queries(15):
        began = time.thread_time()
        response = viewer.get(FLEET)
        took = time.thread_time() - began

    assert response.status_code == 200
    assert took < 0.4
