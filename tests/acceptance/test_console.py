"""Check 1 and 5 of the console: a real browser, the real web process, two hosts with running jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import absent
from tests.harness import axe
from tests.harness.browser import Browser, browser, missing
from tests.harness.fleet import Fleet
from tests.harness.knobs import Knobs
from tests.harness.standing_work import cron
from tests.harness.web_process import ROLES, WebProcess
from tests.harness.worker_process import start_all, until

pytestmark = pytest.mark.chromium

_LINKS = """
return [...document.querySelectorAll('a[href]')].filter(one => one.origin === location.origin)
  .map(one => one.pathname + one.search)
"""
#: Besides the console: Django's own pages of users, and what is no page.
_NO_PAGES = ("/admin/auth/", "/admin/logout", "/admin/password_change", "/admin/jsi18n", "/static/")


@dataclass(slots=True)
class Stage:
    """A fleet at work, its console, and a browser."""

    fleet: Fleet
    web: WebProcess
    page: Browser
    pictures: Path


@pytest.fixture(scope="module")
def console(valkey_server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if program := missing():
        absent(f"{program} is not installed")
    home = tmp_path_factory.mktemp("console")
    with Fleet(valkey_server_url) as fleet:
        fleet.client.flushall()
        triggers = home / "triggers.json"
        entries = [
            cron("nightly", "30 2 * * *", fleet.place("nightly")),
            cron("tidy", "0 * * * *", fleet.place("tidy")),
        ]
        triggers.write_text(json.dumps({"triggers": entries}))
        triggers.chmod(0o644)
        environment = {"PI_TRIGGERS_FILE": str(triggers), "PI_DAILY_CAP": "40"}
        workers = [fleet.worker(name, concurrency=2, environment=environment) for name in ("alpha", "beta")]
        start_all(workers, Knobs(without_containers=True))
        done = [fleet.enqueue(fleet.place(f"done-{number}")) for number in range(3)]
        fleet.until_over(done, seconds=20)
        running = [fleet.enqueue(fleet.place(f"running-{number}", delay="600")) for number in range(4)]
        for job_id in running:
            fleet.until_status(job_id, "started")
        for number in range(5):
            fleet.enqueue(fleet.place(f"waiting-{number}"))
        with WebProcess(workers[0].environment, home) as web, browser(home / "profile") as page:
            yield Stage(fleet, web, page, Path(os.environ.get("SCREENSHOTS_DIR", home)))


@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_there_and_usable_for_everybody(console, role):
    page, web = console.page, console.web
    web.enter(page, role)
    faults: list[str] = []
    found = ["/admin/"]
    seen: dict[str, str] = {}
    for path in found:
        page.looks(width=1280, dark=role == "operator")
        page.open(web.url + path)
        seen[_kind(path)] = path
        (title,) = page.texts("h1") or ["?"]
        faults += [f"{path} ({title}): {one}" for one in [*page.problems(), *axe.findings(page)]]
        page.screenshot(console.pictures / role / f"{_kind(path).strip('/').replace('/', '-')}.png")
        page.looks(width=390)
        if page.run("return document.documentElement.scrollWidth > innerWidth"):
            faults.append(f"{path}: wider than a telephone")
        if role == "admin":
            page.looks(width=640, scale=2, dark=True)
            faults += [f"{path} (dark, zoomed): {one}" for one in axe.findings(page)]
        known = {*seen, *map(_kind, found)}
        for link in page.run(_LINKS):
            if _kind(link) not in known and link.startswith("/admin/") and not link.startswith(_NO_PAGES):
                known.add(_kind(link))
                found.append(link)

    assert not faults, "\n".join(faults)
    print(len(found), sorted(map(_kind, found)))


def _kind(path: str) -> str:
    """Name the page by its address; of each kind one is enough, whatever it is about."""
    parts = [part for part in urlsplit(path).path.split("/") if part]
    return "/".join(
        "*" if any(c.isdigit() for c in part) or ":" in part or part in ("alpha", "beta") else part
        for part in parts
    )
