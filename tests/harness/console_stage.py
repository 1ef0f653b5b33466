"""The console as a stage: two hosts with running jobs, the web process, and somebody before a browser."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from dispatch.console import fleet as fleet_facts
from dispatch.console import running as running_now
from dispatch.console.status import read_status
from dispatch.ids import natural_id
from dispatch.queue import keys
from tests.harness import console_posts, site_database
from tests.harness.browser import browser
from tests.harness.console_person import Person
from tests.harness.fleet import Fleet
from tests.harness.knobs import QUICK, Knobs
from tests.harness.standing_work import cron
from tests.harness.web_process import PASSWORD, WebProcess
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
_PEOPLE = "SELECT id, username, password, is_active, is_staff, is_superuser, email FROM auth_user"
_MEMBERS = "SELECT * FROM auth_user_groups UNION ALL SELECT * FROM auth_group_permissions"
_SWITCHES = ("pause:*", "drain:*", "stop:req:*", "cancel:req:*", "op:*")


@dataclass(slots=True, kw_only=True)
class Stage(Person):
    """A fleet at work, and who sits before its console; `home` has the operator's files.

    `done`, `running` and `waiting` are jobs by how they stand when the stage is set.
    """

    fleet: Fleet
    home: Path
    done: list[str]
    running: list[str]
    waiting: list[str]

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

    def until_steady(self) -> list[str]:
        """Have each host run something that takes long, and wait until nothing else runs or would start."""
        for host in HOSTS:
            if not set(self.jobs_of(host)) & self._long():
                self.running.append(self.enqueue(f"pi-jobs@{host}", delay="600"))
                self.fleet.until_status(self.running[-1], "started")

        def is_steady() -> bool:
            waits = any(
                self.waiting_on(queue) for queue in ("pi-jobs", *(f"pi-jobs@{host}" for host in HOSTS))
            )
            running = self._all_jobs()
            # What is in hand has no container yet.
            has_settled = set(running) <= self._long() and self.status()["active"] == len(running)
            return has_settled and (not waits or len(running) == RUNNING)

        until(is_steady, seconds=20, what="nothing starts or ends")
        return self._all_jobs()

    def _all_jobs(self) -> list[str]:
        return [job_id for host in HOSTS for job_id in self.jobs_of(host)]

    def _long(self) -> set[str]:
        statuses = zip(self.running, self.fleet.statuses(self.running), strict=True)
        return {job_id for job_id, status in statuses if status == b"started"}

    def file(self, name: str) -> Any:
        """What an operator's file holds."""
        return json.loads((self.home / f"{name}.json").read_text())

    def writes(self, name: str, content: object) -> None:
        """Have an operator's file hold this, whatever it held."""
        (self.home / f"{name}.json").write_text(json.dumps(content))

    def waiting_on(self, queue: str) -> list[str | None]:
        """The jobs of a queue in line."""
        waiting = cast("list[bytes]", self.fleet.client.lrange(keys.queue_keys(queue).jobs, 0, -1))
        return [natural_id(raw.decode()) for raw in waiting]

    def until_calm(self) -> None:
        """Wait until of a paused fleet only those jobs run that take long."""
        count = len(self._long())
        until(lambda: self.status()["active"] == count, seconds=20, what="only what takes long runs")

    def users(self) -> list[tuple[Any, ...]]:
        """Who may log in, with what, and in which groups they are."""
        return site_database.ask(self.fleet.workers[HOSTS[0]].environment, _PEOPLE, _MEMBERS)

    def actions(self) -> set[str]:
        """The addresses of ours to which whoever sits there may post, by name."""
        return self.may_post_to(console_posts.ours(self.about))

    def done_by(self, role: str) -> set[str]:
        """The addresses to which somebody of this group has sent a form."""
        return {name for who, name in self.posted if who == role}

    @property
    def about(self) -> dict[str, str]:
        """What there is, by what an address calls it."""
        return {
            **dict.fromkeys(("id", "object_id"), "1"),
            "host": "beta",
            "token": self.running[1],
            "schedule_id": "nightly",
            "index": "0",
            "name": "now",
            "kind": "overlay",
            "operation_id": "0" * 32,
        }

    def forged(self) -> dict[str, str]:
        """What the form of any action might send."""
        return {
            **dict.fromkeys(("some", "confirmed"), "1"),
            **dict.fromkeys(("entry", "row"), "{}"),
            "queue": "pi-jobs",
            "host": "beta",
            "job": self.running[1],
            "jobs": " ".join(self.waiting),
            "which": "all",
            "step": "write",
            "way": "json",
            "same_folders": "on",
            "seconds": "0",
            "reason": "forged",
            **dict.fromkeys(("username", "name"), "forged"),
            **dict.fromkeys(("password1", "password2", "new_password1", "new_password2"), PASSWORD[::-1]),
            **dict.fromkeys(("is_active", "is_staff", "is_superuser"), "on"),
            **dict.fromkeys(("groups", "_selected_action"), "1"),
            "usable_password": "true",
            "action": "delete_selected",
            "post": "yes",
        }

    def everything(self) -> dict[str, Any]:
        """All that an action could change: switches, requests, queues, jobs, files, users, the log."""
        client = self.fleet.client
        switches = [key for pattern in _SWITCHES for key in client.keys(pattern)]
        return {
            "switches": {key: client.dump(key) for key in sorted(switches)},
            "status": self.status(),
            "jobs": self.fleet.statuses(self.fleet.job_ids),
            "files": [self.file(name) for name in _VARIABLES],
            "log": self.newest(),
            "users": self.users(),
        }


@contextlib.contextmanager
def console_stage(valkey: str, home: Path, pictures: Path, *, elsewhere: frozenset[str]) -> Iterator[Stage]:
    """Set it on this server, which is emptied; `elsewhere` are the kinds of pages that others judge."""
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
            yield Stage(
                web=web,
                page=page,
                pictures=pictures,
                judged_elsewhere=elsewhere,
                fleet=fleet,
                home=home,
                done=done,
                running=running,
                waiting=waiting,
            )
