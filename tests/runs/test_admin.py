from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from dispatch.queue.new_jobs import LOCAL
from runs import rows, walk
from runs.models import Run
from runs.outcome import Outcome, Reason
from runs.record import Attempt, Record
from tests.harness.records import NOON, a_record

pytestmark = pytest.mark.django_db
LIST = "/admin/runs/run/"


@pytest.fixture
def viewer(client):
    """Somebody of the staff who may view runs and nothing else."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_run"))
    client.force_login(user)
    return client


def stored(count: int, **fields: object) -> list[Record]:
    kept = [a_record(number, **fields) for number in range(count)]
    rows.write(kept)
    return kept


def listed(response) -> list[str]:
    return re.findall(r'<td class="id"><a href="[^"]*">([^<]*)</a>', response.content.decode())


def page(client, rel: str, response):
    (address,) = re.findall(rf'<a rel="{rel}" href="([^"]*)"', response.content.decode())
    return client.get(LIST + address.replace("&amp;", "&"))


def detail(job_id: str) -> str:
    from django.contrib.admin.utils import quote

    return reverse("admin:runs_run_change", args=[quote(job_id)])


def test_the_newest_runs_come_first_and_pages_lead_to_the_end_and_back(viewer):
    newest_first = [record.job_id for record in reversed(stored(120))]

    first = viewer.get(LIST)
    second = page(viewer, "next", first)
    third = page(viewer, "next", second)
    back = page(viewer, "prev", third)

    assert listed(first) == newest_first[:50]
    assert listed(second) == newest_first[50:100]
    assert listed(third) == newest_first[100:]
    assert b'rel="next"' not in third.content
    assert b'rel="prev"' not in first.content
    assert listed(back) == listed(second)
    assert listed(page(viewer, "prev", back)) == listed(first)


def test_runs_that_ended_in_the_same_instant_are_each_shown_once(viewer):
    rows.write([a_record(number, ended_at=NOON) for number in range(120)])

    response, seen = viewer.get(LIST), []
    while True:
        seen += listed(response)
        if b'rel="next"' not in response.content:
            break
        response = page(viewer, "next", response)

    assert len(seen) == len(set(seen)) == 120


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        pytest.param({"outcome": "failed"}, {"b", "c"}, id="outcome"),
        pytest.param({"reason": "stalled"}, {"b"}, id="reason"),
        pytest.param({"reason": "-"}, {"a", "c"}, id="no reason"),
        pytest.param({"kind": "github"}, {"c", "d"}, id="kind"),
        pytest.param({"host": "build-2"}, {"d"}, id="host"),
        pytest.param({"outcome": "failed", "reason": "-", "kind": "github"}, {"c"}, id="several"),
        pytest.param({"host": "build-2", "reason": "-"}, set(), id="several that contradict"),
        pytest.param({"host": "nobody"}, set(), id="a value that does not exist"),
        pytest.param({"flow": "fix"}, {"b", "d"}, id="flow"),
        pytest.param({"model": "haiku", "flow": "fix"}, {"d"}, id="model"),
        pytest.param({"since": "2026-01-05 12:00:20"}, {"b", "c", "d"}, id="since"),
        pytest.param({"until": "2026-01-05 12:00:30", "kind": "local"}, {"a", "b"}, id="until"),
        pytest.param({"since": "2026-01-06", "outcome": "failed"}, set(), id="another time"),
        pytest.param({"since": "tomorrow", "kind": "github"}, {"c", "d"}, id="an instant that is none"),
        pytest.param({"q": "b"}, {"b"}, id="an id"),
        pytest.param({"q": "b", "since": "2026-01-06"}, set(), id="an id at another time"),
        pytest.param({"q": "b", "outcome": "failed", "reason": "stalled"}, {"b"}, id="an id and what it has"),
        pytest.param({"q": "b", "reason": "-"}, set(), id="an id and what it has not"),
        pytest.param({"q": "B"}, set(), id="an id in other letters"),
        pytest.param({"q": "zz"}, set(), id="an id that does not exist"),
        pytest.param({"q": "%"}, set(), id="no pattern"),
        pytest.param({"q": "", "host": ""}, {"a", "b", "c", "d"}, id="nothing"),
        pytest.param({"older_than": "x~y"}, {"a", "b", "c", "d"}, id="a key that is none"),
        pytest.param({"older_than": "5~\0", "host": "\0", "q": "\0"}, {"a", "b", "c", "d"}, id="no text"),
        pytest.param({"older_than": "9" * 40 + "~y"}, {"a", "b", "c", "d"}, id="a key too large"),
    ],
)
def test_the_list_is_filtered(asked, shown, viewer):
    rows.write(
        [
            a_record(1, job_id="a"),
            a_record(2, job_id="b", outcome=Outcome.FAILED, reason="stalled", flow="fix"),
            a_record(3, job_id="c", outcome=Outcome.FAILED, kind="github"),
            a_record(
                4,
                job_id="d",
                outcome=Outcome.POLICY,
                reason="over-budget",
                kind="github",
                host="build-2",
                flow="fix",
                model="haiku",
            ),
        ]
    )

    assert set(listed(viewer.get(LIST, asked))) == shown


def test_filters_stay_while_paging_and_a_chosen_value_stays_chosen(viewer):
    stored(60, host="build-1")
    rows.write([a_record(1000 + number, host="build-2") for number in range(60)])

    second = page(viewer, "next", viewer.get(LIST, {"host": "build-1", "kind": "local"}))

    assert listed(second) == [a_record(number).job_id for number in range(9, -1, -1)]
    assert '<option value="build-1" selected>' in second.content.decode()


def test_an_id_is_found_by_its_beginning_the_latest_of_too_many(viewer):
    stored(250)

    response = viewer.get(LIST, {"q": "local-"})

    assert listed(response) == [a_record(number).job_id for number in range(249, 49, -1)]
    assert b"Type more of the id" in response.content
    assert listed(viewer.get(LIST, {"q": "local-0000000f"})) == [a_record(15).job_id]


@pytest.mark.parametrize("count", [1, 120])
def test_the_list_costs_the_same_few_statements_at_any_size(count, viewer, django_assert_max_num_queries):
    stored(count)

    with django_assert_max_num_queries(11) as asked:
        viewer.get(LIST, {"outcome": "completed", "host": "build-1"})

    assert not any("COUNT(" in statement["sql"] for statement in asked.captured_queries)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"outcome": "failed"},
        {"host": "build-1", "kind": "local", "outcome": "failed", "reason": "-"},
        {"older_than": "1767614400000~local-00000001"},
        {"newer_than": "1767614400000~local-00000001", "kind": "local"},
        {"q": "local-"},
        {"reason": "-"},
        {"flow": "audit", "since": "2026-01-01"},
        {"model": "claude-sonnet-x", "until": "2026-02-01", "reason": "-", "older_than": "1767614400000~x"},
    ],
)
@pytest.mark.sqlite
def test_every_question_walks_an_index_and_sorts_no_table(asked, viewer, django_assert_max_num_queries):
    stored(3)
    from django.db import connection

    with django_assert_max_num_queries(11) as statements:
        viewer.get(LIST, asked)

    asked_of_runs = [item["sql"] for item in statements.captured_queries if "runs_run" in item["sql"]]
    assert len(asked_of_runs) >= 2
    with connection.cursor() as cursor:
        for sql in asked_of_runs:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = [step[-1] for step in cursor.fetchall()]
            of_table = [step for step in steps if "runs_run" in step]
            assert of_table
            assert all("USING" in step and "INDEX" in step for step in of_table), steps
            # What is sorted is what one walk found.
            assert not [step for step in steps if "TEMP B-TREE" in step] or "AS walked" in sql, steps


def test_the_page_of_a_run_shows_every_field(viewer):
    earlier = Attempt(
        started_at=NOON - timedelta(hours=1),
        ended_at=NOON - timedelta(minutes=50),
        outcome=Outcome.FAILED,
        reason="container-detached",
        exit_code=143,
        turns=3,
        tokens={"input": 1, "output": 2, "total": 31_337, "cost": 0.02},
    )
    record = a_record(
        job_id="chain/ä 1",
        outcome=Outcome.POLICY,
        reason=Reason.RUNNER_POLICY.value,
        exit_code=2,
        attempt=1,
        attempts=(earlier,),
        parent_job_id="local-parent",
        chain_depth=2,
        chain_refused=4,
        replica=2,
        replicas=3,
        trigger_index=7,
        trigger_type="label",
        session={"resumed": False, "reason": "too-large", "bytes": 1_234_567},
    )
    rows.write([record])

    shown = viewer.get(detail(record.job_id)).content.decode()

    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", shown))
    for expected in (
        *("chain/ä 1", "Policy", "runner-policy", "The runner ended it", "2 (refused by the runner)"),
        *("local-parent", "2 of 3", "entry 7 of the triggers file", "label", "too-large", "1,234,567 bytes"),
        *("anthropic / claude-sonnet-x", "build-1", "local:site", "audit", "5f2b1c0a9d3e4f67", "sha256:abab"),
        *("2026-01-05 11:56:00", "2026-01-05 11:57:00", "2026-01-05 12:00:00", "after waiting 1 min 0 s"),
        *("124,520", "$0.41", "3 min 0 s", "19,100", "2,420", "anthropic/claude-haiku-x", "91,000"),
        *("Earlier attempts", "container-detached", "31,337", "143", "2026-01-05 11:10:00"),
    ):
        assert expected in words.replace("&#x27;", "'"), expected


def test_the_record_on_the_page_is_the_record_in_the_file(viewer):
    record = a_record(attempts=(Attempt(outcome=Outcome.FAILED),))
    rows.write([record])

    shown = viewer.get(detail(record.job_id)).content.decode()

    from html import unescape

    (recorded,) = re.findall(r'aria-label="The record">(.*?)</pre>', shown, re.DOTALL)
    assert json.loads(unescape(recorded)) == record.to_json()


def test_a_run_of_which_almost_nothing_is_known_has_a_page(viewer):
    rows.write(
        [
            Record(job_id="x", outcome=Outcome.FAILED, attempt=0),
            Record(job_id="", outcome="failed", attempt=0),
        ]
    )

    assert viewer.get(LIST).status_code == 200
    assert viewer.get(detail("x")).status_code == 200


def test_what_a_later_version_wrote_does_not_break_the_pages(viewer):
    rows.write([a_record(reason="a-later-reason")])
    Run.objects.update(
        outcome="a-later-outcome", tokens=[1], usage={"models": "x"}, attempts={"x": 1}, session=3
    )

    assert b"a-later-reason" in viewer.get(LIST).content
    assert b"that this version knows" not in viewer.get(LIST, {"reason": "a-later-reason"}).content
    assert b"a-later-outcome" in viewer.get(detail(a_record().job_id)).content


def test_what_a_job_names_itself_is_text_and_no_markup(viewer):
    rows.write([a_record(job_id="<script>a</script>", flow="<b>", target="local:<img src=x>")])

    for response in (viewer.get(LIST), viewer.get(detail("<script>a</script>"))):
        assert b"<script>a" not in response.content
        assert b"<img" not in response.content


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/", "1/history/"])
def test_there_is_nothing_to_add_change_or_delete(path, admin_client):
    rows.write([a_record(job_id="1")])

    assert admin_client.get(LIST + path).status_code == 404


def test_posting_changes_nothing(admin_client):
    rows.write([a_record(job_id="1")])

    admin_client.post(LIST, {"action": "delete_selected", "_selected_action": "1"})
    admin_client.post(detail("1"), {"outcome": "completed"})

    assert Run.objects.count() == 1


def test_only_who_may_view_runs_sees_them(client):
    rows.write([a_record(job_id="1")])
    for path in (LIST, detail("1")):
        assert client.get(path).status_code == 302, "a stranger is sent to the login"

    client.force_login(User.objects.create_user("staff", is_staff=True))

    for path in (LIST, detail("1")):
        assert client.get(path).status_code == 403


def test_an_unknown_run_is_not_found(viewer):
    assert viewer.get(detail("nobody")).status_code == 404


def test_an_empty_table_says_how_to_start(viewer):
    assert b"manage.py run FOLDER" in viewer.get(LIST).content


def test_no_page_needs_an_inline_script_or_style(viewer):
    stored(60)
    for path in (LIST, detail(a_record(3).job_id)):
        response = viewer.get(path)
        html = response.content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon[a-z]+=", html)
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
        assert "unsafe" not in response.headers["Content-Security-Policy"]


def test_pages_come_without_engine_and_provider_key(viewer):
    import subprocess
    import sys

    probe = "import django, sys; django.setup(); print('docker' in sys.modules, 'rq' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", probe],
        env={
            "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings",
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
        },
        capture_output=True,
        text=True,
        check=True,
    )

    assert found.stdout == "False False\n"


def test_the_record_of_a_retried_attempt_is_marked(viewer):
    rows.write([replace(a_record(1), final=False)])

    assert b"tried again" in viewer.get(LIST).content
    assert b"It will be tried again." in viewer.get(detail(a_record(1).job_id)).content


def test_a_run_names_what_started_it_and_what_it_started(viewer):
    rows.write([a_record(1), a_record(2, parent_job_id=a_record(1).job_id)])
    rows.write([a_record(10 + number, parent_job_id=a_record(2).job_id) for number in range(25)])

    shown = viewer.get(detail(a_record(2).job_id)).content.decode()

    assert f'Started by <a href="{detail(a_record(1).job_id)}"' in shown
    assert len(re.findall(r"Started <a href=", shown)) == 20
    assert "It started more" in shown
    assert "Chain</h2>" in viewer.get(detail(a_record(1).job_id)).content.decode()
    rows.write([a_record(50)])
    assert "Chain</h2>" not in viewer.get(detail(a_record(50).job_id)).content.decode()


def test_values_lead_to_the_runs_that_share_them(viewer):
    rows.write([a_record(1, flow="a&b <c>")])

    shown = viewer.get(detail(a_record(1).job_id)).content.decode()

    (address,) = re.findall(r'href="[^"]*(\?flow=[^"]*)"', shown)
    assert listed(viewer.get(LIST + address)) == [a_record(1).job_id]


@pytest.mark.parametrize(
    ("kind", "may", "offered"), [("local", True, 1), ("github", True, 0), ("local", False, 0)]
)
def test_a_local_job_is_offered_to_be_run_again_to_who_may(kind, may, offered, viewer):
    rows.write([a_record(1, kind=kind, ended_at=datetime.now(UTC))])
    if may:
        operate = Permission.objects.get(codename="operate_fleet")
        User.objects.get(username="viewer").user_permissions.add(operate)

    shown = viewer.get(detail(a_record(1).job_id)).content.decode()

    assert shown.count('id="run-again"') == offered
    assert shown.count(f'name="job" value="{a_record(1).job_id}"') == offered


@pytest.mark.parametrize(
    ("outcome", "keeping"), [("completed", "finished"), ("policy", "finished"), ("failed", "failed")]
)
def test_a_job_whose_data_are_gone_is_not_offered_but_said(outcome, keeping, viewer):
    operate = Permission.objects.get(codename="operate_fleet")
    User.objects.get(username="viewer").user_permissions.add(operate)
    kept = timedelta(seconds=getattr(LOCAL, f"{keeping}_seconds"))
    now = datetime.now(UTC)
    rows.write(
        [
            a_record(number, outcome=Outcome(outcome), ended_at=now - kept - ago)
            for number, ago in enumerate((timedelta(minutes=58), timedelta(minutes=61)))
        ]
    )

    there, gone = (viewer.get(detail(a_record(number).job_id)).content.decode() for number in (0, 1))

    assert ("run-again" in there, "It cannot be run again from here" in there) == (True, False)
    assert ("run-again" in gone, "It cannot be run again from here" in gone) == (False, True)


def test_the_page_of_a_run_costs_few_statements(viewer, django_assert_max_num_queries):
    rows.write([a_record(number, parent_job_id=a_record(0).job_id) for number in range(30)])

    with django_assert_max_num_queries(9):
        viewer.get(detail(a_record(1).job_id))


def test_an_early_end_of_a_walk_and_an_instant_that_is_none_are_said(viewer, monkeypatch):
    monkeypatch.setattr(walk, "FARTHEST", 5)
    stored(30)
    rows.write([a_record(100 + number, model="x", kind="github") for number in range(30)])
    early = viewer.get(LIST, {"kind": "local", "model": "x", "since": "soon"})
    assert "5 runs were looked at, to 2026-01-05 12:20:50 UTC." in early.content.decode()
    assert b"No run matches so far." in early.content
    assert b'rel="next"' in early.content
    assert "“soon” (since) is no instant" in early.content.decode()
    assert "2026-11-30 12:00 (UTC). It was left out." in early.content.decode()
    assert "“foo” is no kind that this version knows." in viewer.get(LIST, {"kind": "foo"}).content.decode()
