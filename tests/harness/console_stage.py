"""The console as a stage: two hosts with running jobs, the web process, a browser, and who sits before it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as of_dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from dispatch.console import fleet as fleet_facts
from dispatch.console import running as running_now
from dispatch.console.status import read_status
from dispatch.ids import natural_id
from dispatch.queue import keys
from tests.harness import usable
from tests.harness.browser import Browser, browser
from tests.harness.by_words import control, field
from tests.harness.fleet import Fleet
from tests.harness.knobs import QUICK, Knobs
from tests.harness.standing_work import cron
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import start_all, until

HOSTS = ("alpha", "beta")
RUNNING, WAITING = 4, 5
_VARIABLES = {
    "triggers": "PI_TRIGGERS_FILE",
    "settings": "PI_SETTINGS_FILE",
    "windows": "PI_PAUSE_WINDOWS_FILE",
    "limits": "PI_SCOPED_LIMITS_FILE",
}
#: Jobs and hosts last as long as the tests do, however busy the machine is.
_PATIENT = Knobs(
    timings=replace(QUICK, job_limit=3600, queue=replace(QUICK.queue, gone=60)), without_containers=True
)
_MORE = {"PI_DAILY_CAP": "90", "PI_CAPTURE_JOB_LOGS": "1"}
#: What each of the jobs that are done has printed.
PRINTED = "I have looked at <everything>."
_LINKS = """
return [...document.querySelectorAll('a[href]')].filter(one => one.origin === location.origin)
  .map(one => one.pathname + one.search)
"""


_TITLE = "return document.querySelector('h1')?.textContent.trim() ?? '?'"
_NEWEST = """
const [first] = document.querySelectorAll('.log-actions tbody tr');
return [...first.children].slice(1).map(one => one.textContent.replace(/\\s+/g, ' ').trim());
"""

_SWITCHES = ("pause:*", "drain:*", "stop:req:*", "cancel:req:*", "op:*")
_FORGED = {
    "queue": "pi-jobs",
    "some": "1",
    "which": "all",
    "confirmed": "1",
    "step": "write",
    "way": "json",
    "entry": "{}",
    "row": "{}",
    "same_folders": "on",
    "seconds": "0",
    "reason": "forged",
}
_FORGE = """
const done = arguments[arguments.length - 1];
const csrf = document.querySelector('input[name=csrfmiddlewaretoken]').value;
const body = () => new URLSearchParams({csrfmiddlewaretoken: csrf, ...FIELDS});
const post = async ([name, address]) => {
  const answer = await fetch(`/admin/${address}`, {method: 'POST', body: body(), redirect: 'manual'});
  return [name, answer.status, await answer.text()];
};
Promise.all(Object.entries(ADDRESSES).map(post)).then(done);
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
    home: Path
    done: list[str]
    running: list[str]
    waiting: list[str]
    role: str = ""
    faults: list[str] = of_dataclass(default_factory=list)
    _marks: set[str] = of_dataclass(default_factory=set)
    _shot: set[tuple[str, str]] = of_dataclass(default_factory=set)

    def enter(self, role: str) -> None:
        """Be a person of this group."""
        self.role = role
        self.web.enter(self.page, role)
        self._sits_down()

    def goes(self, path: str) -> None:
        """Open a page below the console's address and look at it."""
        self.page.open(f"{self.web.url}/admin/{path}")
        self.looks()

    def follows(self, name: str) -> None:
        """Press the button or the link of this name, and look at the page that comes."""
        self.page.follow(control(name))
        self.looks()

    def fills(self, **texts: str) -> None:
        """Type into the fields of these labels; an underscore stands for a space."""
        for label, text in texts.items():
            self.page.type(field(label.replace("_", " ")), text)

    def ticks(self, *labels: str) -> None:
        """Tick the boxes of these labels."""
        for label in labels:
            self.page.click(field(label))

    def says(self, *words: str) -> str:
        """All that is to be read; AssertionError where one of these is not."""
        (text,) = self.page.texts("main")
        missing = [one for one in words if one not in text]
        assert not missing, (missing, text)
        return text

    def until_says(self, words: str, *, again: bool = False) -> None:
        """Wait until the page says so by itself, or opened `again` and again; and look at it."""

        def said() -> bool:
            if again:
                self.page.open(self.page.url)
            return words in self.page.texts("main")[0]

        until(said, seconds=20, what=f"{self.page.url} says {words}")
        self.looks(anew=True)

    def status(self) -> dict[str, Any]:
        """What `manage.py status` says."""
        return read_status(self.fleet.client)

    def enqueue(self, queue: str, **orders: str) -> str:
        """Put a job on a folder of its own into this queue."""
        folder = self.fleet.place(f"more-{len(self.fleet.job_ids)}", **orders)
        return self.fleet.enqueue(folder, queue=queue)

    def scope_of(self, job_id: str | None) -> bytes:
        """Which folder a job works in, as the queue has it."""
        assert job_id is not None
        return self.fleet.hash_of(job_id)[b"scope"]

    def jobs_of(self, host: str) -> list[str]:
        """The jobs that a host runs."""
        running = running_now.read(self.fleet.client, fleet_facts.read(self.fleet.client)).of(host)
        return sorted(one.container.job_id for one in running.ones)

    def file(self, name: str) -> Any:
        """What an operator's file holds."""
        return json.loads((self.home / f"{name}.json").read_text())

    def waiting_on(self, queue: str) -> list[str | None]:
        """The jobs of a queue in line."""
        waiting = cast("list[bytes]", self.fleet.client.lrange(keys.queue_keys(queue).jobs, 0, -1))
        return [natural_id(raw.decode()) for raw in waiting]

    def until_calm(self) -> None:
        """Wait until of a paused fleet only those jobs run that take long."""
        running = [job_id for job_id in self.running if self.fleet.statuses([job_id]) == [b"started"]]
        until(lambda: self.status()["active"] == len(running), seconds=20, what="only what takes long runs")

    def everything(self) -> dict[str, Any]:
        """All that an action could change: switches, requests, queues, jobs, files, and the log."""
        client = self.fleet.client
        switches = [key for pattern in _SWITCHES for key in client.keys(pattern)]
        self.page.open(f"{self.web.url}/admin/log/")
        return {
            "switches": {key: client.dump(key) for key in sorted(switches)},
            "status": self.status(),
            "jobs": self.fleet.statuses(self.fleet.job_ids),
            "files": [self.file(name) for name in _VARIABLES],
            "log": self.page.run(_NEWEST),
        }

    def forges(self, addresses: Mapping[str, str]) -> list[tuple[str, int, str]]:
        """Post to each address what its form might send, with a token that is in order: status and text."""
        fields = {**_FORGED, "job": self.running[1], "jobs": " ".join(self.waiting), "host": "beta"}
        script = _FORGE.replace("ADDRESSES", json.dumps(addresses)).replace("FIELDS", json.dumps(fields))
        answers = [tuple(one) for one in self.page.run_async(script)]
        # The browser complains of each refusal.
        self.page.problems()
        return answers

    def logs(self, *line: str) -> list[str]:
        """Wait until the log's newest line is so (who, action, target, reason); its before and after."""
        newest: list[str] = []

        def is_there() -> bool:
            self.page.open(f"{self.web.url}/admin/log/")
            newest[:] = self.page.run(_NEWEST)
            return newest[: len(line)] == list(line)

        with contextlib.suppress(AssertionError):
            until(is_there, seconds=5, what="the line")
        assert newest[: len(line)] == list(line), newest
        return newest[4:]

    def looks(self, *, anew: bool = False) -> None:
        """Take pictures of the page, and note what keeps people from using it.

        Each kind of page once, and again where something is on it that was on none before. With `anew` its
        picture takes the place of the one that was taken.
        """
        title = self.page.run(_TITLE)
        kind = f"{kind_of(self.page.url)} {_general(title)}"
        is_first = kind not in {known for _, known in self._shot}
        if anew or (self.role, kind) not in self._shot:
            self._shoots(kind)
        new = usable.marks(self.page) - self._marks
        if new or is_first:
            self._marks |= new
            found = list(usable.slips(self.page))
            if is_first:
                self._shoots(f"{kind} telephone")
            found += usable.barriers(self.page)
            self.faults += [f"{self.role} at {self.page.url} ({title}): {one}" for one in found]
            self._sits_down()

    def links(self) -> list[str]:
        """Where the page leads to within the site."""
        return list(self.page.run(_LINKS))

    def end(self) -> None:
        """AssertionError with what was noted since the last time."""
        faults, self.faults = self.faults, []
        assert not faults, "\n".join(faults)

    def _sits_down(self) -> None:
        """Look through a window of a desk; operators like it dark."""
        self.page.looks(width=1280, dark=self.role == "operator")

    def _shoots(self, kind: str) -> None:
        self._shot.add((self.role, kind))
        name = re.sub("[^a-z0-9]+", "-", kind.lower()).strip("-")
        self.page.screenshot(self.pictures / self.role / f"{name}.png")


@contextlib.contextmanager
def console_stage(valkey: str, home: Path, pictures: Path) -> Iterator[Stage]:
    """Set it on this server, which is emptied."""
    with Fleet(valkey) as fleet:
        fleet.client.flushall()
        entries = [cron(name, "30 2 * * *", fleet.place(name)) for name in ("nightly", "tidy")]
        files = {
            "triggers": {"triggers": entries},
            "settings": {},
            "windows": {"version": 1, "windows": []},
            "limits": {"version": 1, "limits": []},
        }
        for name, content in files.items():
            (home / f"{name}.json").write_text(json.dumps(content))
        environment = {variable: str(home / f"{name}.json") for name, variable in _VARIABLES.items()}
        workers = [fleet.worker(name, concurrency=2, environment={**environment, **_MORE}) for name in HOSTS]
        start_all(workers, _PATIENT)
        # On the host whose logs the console may show.
        done = [
            fleet.enqueue(fleet.place(f"done-{number}", exit_line=PRINTED), queue=workers[0].queue)
            for number in range(3)
        ]
        fleet.until_over(done, seconds=20)
        running = [fleet.enqueue(fleet.place(f"running-{number}", delay="600")) for number in range(RUNNING)]
        for job_id in running:
            fleet.until_status(job_id, "started")
        waiting = [fleet.enqueue(fleet.place(f"waiting-{number}")) for number in range(WAITING)]
        with WebProcess(workers[0].environment, home) as web, browser(home / "profile") as page:
            yield Stage(fleet, web, page, pictures, home, done, running, waiting)


def kind_of(address: str) -> str:
    """Name the page by its address; of each kind one is enough, whatever it is about."""
    there = urlsplit(address)
    kind = "/".join(_general(part) for part in there.path.split("/") if part)
    # Lists that refresh themselves are other lists.
    return f"{kind}/live" if "live=1" in there.query else kind


def _general(text: str) -> str:
    return re.sub(r"\S*\d\S*|\S*:\S+|\b(alpha|beta|nightly|tidy|weekly)\b", "*", text)
