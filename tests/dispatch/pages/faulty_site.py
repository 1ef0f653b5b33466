"""The real web process of a host whose Valkey, database and files can be made worse at will."""

from __future__ import annotations

import html
import json
import os
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from dispatch.pages.change import lock_of
from pidispatch_site.webserver import THREADS
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host
from tests.dispatch.test_web_security import addresses
from tests.harness.site_database import of_this_run
from tests.harness.valkey_server import ValkeyServer
from tests.harness.way import Way
from tests.harness.web_process import WebProcess

# All but Django's own pages for people and groups.
OURS = re.compile(r"/(?!admin/(?:auth|logout|password|jsi18n|autocomplete))")
TOKEN = "t" * 32


@dataclass(frozen=True)
class Answer:
    path: str
    status: int
    text: str
    seconds: float
    #: Where it leads, and what the page there is to say, as its cookie has it.
    leads: str = ""
    told: str = ""


class Site:
    """The web process of a host, a way to its Valkey, and what a fleet keeps there."""

    def __init__(self, home: Path) -> None:
        self.state = home / "state"
        self.state.mkdir(mode=0o700)
        self.database = of_this_run(self.state)
        self.server = ValkeyServer(home / "v")
        self.server.start()
        self.client = self.server.client()
        self.way = Way(home, self.server.url)
        run = {"kind": "local", "folder": str(home), "flow": "nightly", "task": "tidy up"}
        entry = {"on": {"type": "cron", "id": "nightly", "pattern": "30 2 * * *"}, "run": run}
        self._contents: dict[str, dict[str, object]] = {
            "triggers": {"triggers": [entry]},
            "settings": {},
            "windows": {"windows": []},
            "limits": {"version": 1, "limits": []},
        }
        self.files = {name: home / f"{name}.json" for name in self._contents}
        (home / "env").touch()
        self.web = WebProcess(
            {
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings",
                "PI_ENV_FILE": str(home / "env"),
                "PI_STATE_DIR": str(self.state),
                "PI_WORKER_NAME": "alpha",
                "PI_EGRESS": "0",
                "PI_DAILY_CAP": "10",
                "PI_TRIGGERS_FILE": str(self.files["triggers"]),
                "PI_SETTINGS_FILE": str(self.files["settings"]),
                "PI_PAUSE_WINDOWS_FILE": str(self.files["windows"]),
                "PI_SCOPED_LIMITS_FILE": str(self.files["limits"]),
                "VALKEY_URL": self.way.url,
                **self.database.variables,
            },
            home,
        )

    def fill(self) -> None:
        for name, content in self._contents.items():
            self.files[name].write_text(json.dumps(content))
        self.client.flushall()
        appear(self.client, "alpha")
        appear(self.client, "beta", age_ms=60_000)
        host = Host(self.client, host_id="a" * 16)
        host.enqueue("job-1", "job-2", "job-3")
        host.start()
        host.put_off(host.claim(), 4_000_000_000_000)

    def edits(self) -> dict[str, dict[str, str]]:
        """The forms of somebody who adds to each file, as `fill` left it, by their address."""
        weekly = {
            "on": {"type": "cron", "id": "weekly", "pattern": "0 5 * * 1"},
            "run": {"kind": "local", "folder": "/srv/weekly", "flow": "audit", "task": "Look."},
        }
        window = {"scope": "*", "from": "22:00", "to": "06:00"}
        limit = {"scope": "owner/repository", "day": 5}
        added = {
            "/admin/dispatch/schedule/add/": ("triggers", {"way": "json", "entry": json.dumps(weekly)}),
            "/admin/settings/overlay/": ("settings", {"value-dailyCap": "39"}),
            "/admin/settings/windows/add/": ("windows", {"way": "json", "row": json.dumps(window)}),
            "/admin/settings/limits/add/": ("limits", {"way": "json", "row": json.dumps(limit)}),
        }
        return {
            path: {**form, "step": "write", "lock": lock_of(self._contents[name])}
            for path, (name, form) in added.items()
        }

    def edited(self) -> set[str]:
        """The files that hold something else than `fill` left there."""
        return {
            name for name, was in self._contents.items() if json.loads(self.files[name].read_text()) != was
        }

    def ask(self, path: str, form: Mapping[str, str] | None = None, *, told: str = "") -> Answer:
        """Ask as somebody of the group admin; `told` is the cookie of the answer that led here."""
        place = urlsplit(self.web.url)
        cookies = {**self.web.cookies("admin"), "pidispatch_csrf": TOKEN, "messages": told}
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        method, body = "GET", None
        if form is not None:
            method, body = "POST", urlencode({"csrfmiddlewaretoken": TOKEN, **form})
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(HTTPConnection(place.hostname, place.port, timeout=60)) as connection:
            began = time.monotonic()
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = re.sub(r"<[^>]+>", " ", answer.read().decode())
            told_next = SimpleCookie(answer.headers.get("Set-Cookie", "")).get("messages")
            return Answer(
                path,
                answer.status,
                html.unescape(" ".join(text.split())),
                time.monotonic() - began,
                answer.headers.get("Location", ""),
                told_next.value if told_next else "",
            )

    def do(self, path: str, form: Mapping[str, str]) -> tuple[Answer, Answer]:
        """Send a form; the answer, and all that the page says that it is or leads to, until it is over."""
        done = self.ask(path, {"reason": "x", **form})
        page = self.ask(done.leads, told=done.told) if done.leads else done
        said, ends = [page.text], time.monotonic() + 10
        while "Under way." in said[-1] and time.monotonic() < ends:
            time.sleep(0.2)
            said.append(self.ask(done.leads).text)
        return done, replace(page, text=" ".join(said))

    def walk(self, over: re.Pattern[str] = OURS, *, at_once: int = THREADS) -> list[Answer]:
        """Ask for everything of ours, as many at a time as the process has threads."""
        with ThreadPoolExecutor(at_once) as browsers:
            return list(browsers.map(self.ask, filter(over.match, addresses())))

    def do_all(self, acts: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[Answer, Answer]]:
        """Send these forms, all at once."""
        with ThreadPoolExecutor(THREADS) as browsers:
            return dict(zip(acts, browsers.map(self.do, acts, acts.values()), strict=True))
