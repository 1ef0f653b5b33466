"""The console as a stage: two hosts with running jobs, the web process, a browser, and who sits before it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.harness import usable
from tests.harness.browser import Browser, browser
from tests.harness.fleet import Fleet
from tests.harness.knobs import Knobs
from tests.harness.standing_work import cron
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import start_all

HOSTS = ("alpha", "beta")
RUNNING, WAITING = 4, 5
_LINKS = """
return [...document.querySelectorAll('a[href]')].filter(one => one.origin === location.origin)
  .map(one => one.pathname + one.search)
"""


@dataclass(slots=True)
class Stage:
    """A fleet at work, its console, and a browser; `pictures` is where screenshots go.

    `done`, `running` and `waiting` are jobs by how they stand when the stage is set.
    """

    fleet: Fleet
    web: WebProcess
    page: Browser
    pictures: Path
    triggers: Path
    done: list[str]
    running: list[str]
    waiting: list[str]
    role: str = ""
    faults: list[str] = field(default_factory=list)
    _seen: dict[str, set[str]] = field(default_factory=dict)

    def enter(self, role: str) -> None:
        """Be a person of this group."""
        self.role = role
        self.web.enter(self.page, role)
        # The page that a session begins with is none of the console's.
        self.page.problems()

    def goes(self, path: str) -> None:
        """Open a page below the console's address and look at it."""
        self.page.open(f"{self.web.url}/admin/{path}")
        self.looks()

    def looks(self) -> None:
        """Take a picture of the page, and note what keeps people from using it; of each kind once is enough."""
        kind = kind_of(self.page.url)
        (title,) = self.page.texts("h1") or ["?"]
        kind = f"{kind} {_general(title)}"
        new = usable.marks(self.page) - self._seen.setdefault(kind, set())
        self.page.looks(width=1280, dark=self.role == "operator")
        self.page.screenshot(
            self.pictures / self.role / f"{re.sub('[^a-z0-9]+', '-', kind.lower()).strip('-')}.png"
        )
        if new:
            self._seen[kind] |= new
            found = [*usable.slips(self.page), *usable.barriers(self.page)]
            self.faults += [f"{self.role} at {self.page.url} ({title}): {one}" for one in found]
        self.page.looks(width=1280)

    def links(self) -> list[str]:
        """Where the page leads to within the site."""
        return list(self.page.run(_LINKS))

    def end(self) -> None:
        """AssertionError with what was noted since the last time."""
        faults, self.faults = self.faults, []
        assert not faults, "\n".join(faults)


@contextlib.contextmanager
def console_stage(valkey: str, home: Path, pictures: Path) -> Iterator[Stage]:
    """Set it on this server, which is emptied."""
    with Fleet(valkey) as fleet:
        fleet.client.flushall()
        triggers = home / "triggers.json"
        entries = [
            cron("nightly", "30 2 * * *", fleet.place("nightly")),
            cron("tidy", "0 * * * *", fleet.place("tidy")),
        ]
        triggers.write_text(json.dumps({"triggers": entries}))
        triggers.chmod(0o644)
        environment = {"PI_TRIGGERS_FILE": str(triggers), "PI_DAILY_CAP": "40"}
        workers = [fleet.worker(name, concurrency=2, environment=environment) for name in HOSTS]
        start_all(workers, Knobs(without_containers=True))
        done = [fleet.enqueue(fleet.place(f"done-{number}")) for number in range(3)]
        fleet.until_over(done, seconds=20)
        running = [fleet.enqueue(fleet.place(f"running-{number}", delay="600")) for number in range(RUNNING)]
        for job_id in running:
            fleet.until_status(job_id, "started")
        waiting = [fleet.enqueue(fleet.place(f"waiting-{number}")) for number in range(WAITING)]
        with WebProcess(workers[0].environment, home) as web, browser(home / "profile") as page:
            yield Stage(fleet, web, page, pictures, triggers, done, running, waiting)


def kind_of(address: str) -> str:
    """Name the page by its address; of each kind one is enough, whatever it is about."""
    return "/".join(_general(part) for part in urlsplit(address).path.split("/") if part)


def _general(text: str) -> str:
    return re.sub(r"\S*\d\S*|\S*:\S+|\b(alpha|beta)\b", "*", text)
