from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from runs import rows
from runs.outcome import Outcome
from runs.record import Attempt
from tests.conftest import absent
from tests.harness.browser import browser, missing
from tests.harness.records import NOON, a_record

pytestmark = [pytest.mark.chromium, pytest.mark.django_db(transaction=True)]

IDS = "td.id a"
CHAINED = "chain-9be0c1d2e3f40516"


@pytest.fixture
def pictures(tmp_path) -> Path:
    """Where screenshots go; SCREENSHOTS_DIR keeps them for a person."""
    return Path(os.environ.get("SCREENSHOTS_DIR", tmp_path))


@pytest.fixture
def history(transactional_db) -> None:
    runs = [a_record(number, job_id=f"local-{number:04x}b1c7e2a905") for number in range(60)]
    earlier = Attempt(
        started_at=NOON, ended_at=NOON, outcome=Outcome.FAILED, exit_code=1, turns=2, tokens={"total": 9_120}
    )
    runs += [
        a_record(61, job_id="repeat:nightly:1767614400000", turns=31, flow="nightly-audit"),
        a_record(
            62,
            job_id="gh-72d3162e-cc78-11e3-81ab-4c9367dc0958",
            kind="github",
            target="acme/web#512",
            outcome=Outcome.FAILED,
            reason="stalled",
            host="build-2",
            exit_code=None,
            tokens=None,
            usage=None,
            turns=None,
        ),
        a_record(
            63, job_id="local-00c0ffee00c0ffee", outcome=Outcome.POLICY, reason="job-image-missing",
            exit_code=None, tokens=None, usage=None, turns=None, budget_reserved=False, attempts=(),
        ),
        a_record(64, job_id=CHAINED, attempt=1, attempts=(earlier,), parent_job_id="local-0001b1c7e2a905"),
        a_record(65, job_id="local-5eed5eed5eed5eed", outcome=Outcome.FAILED, exit_code=1, final=False),
    ]  # fmt: skip
    rows.write(runs)


@pytest.fixture
def session() -> str:
    """The session of an operator who has logged in."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@pytest.fixture
def page(live_server, session, tmp_path):
    program = missing()
    if program is not None:
        absent(f"{program} is not installed")
    with browser(tmp_path / "profile") as page:
        page.open(f"{live_server.url}/healthz")
        page.add_cookie(settings.SESSION_COOKIE_NAME, session)
        yield page


def take_pictures(page, folder, name):
    """Of the page as it is, in both of its themes."""
    for theme in ("dark", "light"):
        page.looks(width=1280, dark=theme == "dark")
        page.screenshot(folder / f"{name}-{theme}.png")


def test_the_list_is_filtered_and_paged_and_a_run_is_opened(history, page, live_server, pictures):
    page.open(f"{live_server.url}/admin/runs/run/")
    assert page.texts(IDS)[:2] == ["local-5eed5eed5eed5eed", CHAINED]
    assert len(page.texts(IDS)) == 50
    take_pictures(page, pictures, "runs-list")

    page.follow("a[rel=next]")
    assert len(page.texts(IDS)) == 15
    page.follow("a[rel=prev]")
    assert len(page.texts(IDS)) == 50

    page.click("select[name=outcome] option[value=failed]")
    page.follow(".runs-filter button")
    assert len(page.texts(IDS)) == 2
    page.type("input[name=q]", "gh-72d3")
    page.follow(".runs-filter button")
    assert page.texts(IDS) == ["gh-72d3162e-cc78-11e3-81ab-4c9367dc0958"]

    page.follow(IDS)
    assert "Its worker vanished while it ran" in page.texts(".run-verdict")[0]

    page.open(f"{live_server.url}/admin/runs/run/{CHAINED}/")
    assert page.texts(".run-table h2") == ["Usage by model (pi 1.0.3)", "Earlier attempts"]
    take_pictures(page, pictures, "run")
    page.click(".run-recorded summary")
    assert f'"jobId": "{CHAINED}"' in page.texts(".run-recorded pre")[0]

    assert page.run("return getComputedStyle(document.querySelector('.run-figures')).display") == "grid"
    assert [problem for problem in page.problems() if "favicon.ico" not in problem] == []
