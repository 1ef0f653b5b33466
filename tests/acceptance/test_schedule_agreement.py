"""Triggers files of several hosts, edited in every order and in every way: no stale host ever prunes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dispatch.schedules.table import Table
from hosts import roster
from hosts.names import SHARED_QUEUE
from tests.harness.fleet import Fleet
from tests.harness.knobs import QUICK, Knobs
from tests.harness.standing_work import TriggersFile, cron
from tests.harness.worker_process import WorkerProcess, start_all, until

KNOBS = Knobs(
    without_containers=True,
    timings=replace(QUICK, host_beat_every=0.2, schedules_retry=0.2, schedules_review=0.4),
)
SOON = 30.0


@dataclass
class Hosts:
    """Hosts with a file each; all have the folder of every schedule, and none comes due."""

    fleet: Fleet
    workers: dict[str, WorkerProcess] = field(default_factory=dict)
    files: dict[str, TriggersFile] = field(default_factory=dict)

    def add(self, home: str, *, name: str | None = None, says: str = "") -> WorkerProcess:
        """Make the worker of a machine, which may have another name than last time; '' for none."""
        self.files[home] = TriggersFile(self.fleet.home / f"{home}.json")
        self.write(home, says)
        environment = {
            **self.files[home].environment,
            "TZ": "UTC",
            "PI_WORKER_NAME": home if name is None else name,
        }
        self.workers[home] = self.fleet.worker(home, environment=environment)
        return self.workers[home]

    def write(self, home: str, says: str) -> None:
        """Have the file hold these schedules: `new more`."""
        folder = self.fleet.home / "folder"
        folder.mkdir(exist_ok=True)
        self.files[home].write(*(cron(one, "0 3 1 1 *", folder) for one in says.split()))

    def queue(self, home: str) -> str:
        name = self.workers[home].environment["PI_WORKER_NAME"]
        return f"{SHARED_QUEUE}@{name}" if name else SHARED_QUEUE

    def resident(self, home: str) -> str:
        return self.resident_on(self.queue(home))

    def resident_on(self, queue: str) -> str:
        return " ".join(sorted(Table(self.fleet.client, queue).resident()))

    def until(self, **wanted: str) -> None:
        """Wait until the tables of these hosts hold these schedules."""
        until(
            lambda: {home: self.resident(home) for home in wanted} == wanted,
            seconds=SOON,
            what=f"{wanted} are installed",
        )

    def edit(self, home: str, says: str, *, told: str) -> None:
        """Write its file, and wait until it tells of that."""
        self.spoil(home, lambda _: self.write(home, says), told=told)

    def spoil(self, home: str, change: Callable[[Path], object], *, told: str, **fields: object) -> None:
        worker = self.workers[home]
        said = worker.said_so_far()
        change(self.files[home].path)
        worker.until_said(told, after=said, seconds=SOON, **fields)

    def opinions(self) -> dict[str, tuple[bool, int | None]]:
        """What the registry says of each: whether it has an opinion, and how many schedules."""
        return {row.name: (bool(row.fp_cron), row.cron_count) for row in roster.read(self.fleet.client).hosts}


@pytest.fixture
def hosts(fleet):
    return Hosts(fleet)


def test_edits_on_several_hosts_row_by_row(hosts):
    alpha, beta = hosts.add("alpha", says="old"), hosts.add("beta", says="old")
    start_all([alpha, beta], KNOBS)
    for worker in (alpha, beta):
        order = [event["event"] for event in worker.events()]
        assert order.index("schedules_installed") < order.index("worker_started")
    hosts.until(alpha="old", beta="old")

    # Edited on alpha, then on beta: alpha refuses, beta reconciles, alpha follows without another edit.
    hosts.edit("alpha", "new", told="cron_divergence_refused")
    assert hosts.resident("alpha") == "old"
    hosts.edit("beta", "new", told="schedules_reloaded")
    hosts.until(alpha="new", beta="new")
    assert hosts.opinions() == {"alpha": (True, 1), "beta": (True, 1)}

    # What cannot be taken is no edit, and no opinion.
    path = hosts.files["alpha"].path
    for reason, change in (
        ("missing", Path.unlink),
        ("file", lambda path: path.write_text("")),
        ("file", lambda path: path.write_text('{"triggers": [')),
        ("not-a-file", lambda path: (path.unlink(), path.mkdir())),
    ):
        hosts.spoil("alpha", change, told="schedules_reload_invalid", reason=reason, kept=True)
        assert hosts.resident("alpha") == "new"
        until(lambda: hosts.opinions()["alpha"] == (False, None), seconds=SOON, what="alpha abstains")
    path.rmdir()
    hosts.edit("alpha", "new", told="schedules_reloaded")

    # No schedules at all are an opinion, and beta's to share.
    hosts.edit("alpha", "", told="cron_divergence_refused")
    assert hosts.resident("alpha") == "new"
    hosts.edit("beta", "", told="schedules_reloaded")
    hosts.until(alpha="", beta="")
    assert hosts.opinions() == {"alpha": (True, 0), "beta": (True, 0)}
    assert hosts.fleet.complaints() == ""


def test_a_stale_host_never_prunes_and_works_on(hosts):
    alpha, beta, gamma = (hosts.add(name, says="old more") for name in ("alpha", "beta", "gamma"))
    start_all([alpha, beta, gamma], KNOBS)
    assert gamma.terminate() == 0
    for name in ("alpha", "beta"):
        hosts.write(name, "new")
    hosts.until(alpha="new", beta="new")

    said = gamma.said_so_far()
    gamma.start(KNOBS)
    told = [event["event"] for event in gamma.events(said)]
    assert "cron_divergence_refused" in told
    assert "schedules_installed" not in told
    # While it is there nobody goes on, and it drains its queue all the same.
    hosts.edit("alpha", "new newer", told="cron_divergence_refused")
    hosts.edit("beta", "new newer", told="cron_divergence_refused")
    hosts.fleet.until_over([hosts.fleet.enqueue(hosts.fleet.place("job"), queue=gamma.queue)], seconds=SOON)
    assert {name: hosts.resident(name) for name in hosts.files} == {
        "alpha": "new",
        "beta": "new",
        "gamma": "more old",
    }

    hosts.write("gamma", "new newer")
    hosts.until(alpha="new newer", beta="new newer", gamma="new newer")
    hosts.fleet.require_sound()


def test_what_was_removed_while_no_worker_lived_is_gone_after_the_boot(hosts):
    alpha, beta = (hosts.add(name, says="old") for name in ("alpha", "beta"))
    start_all([alpha, beta], KNOBS)
    assert (hosts.resident("alpha"), hosts.resident("beta")) == ("old", "old")
    alpha.kill()
    assert beta.terminate() == 0
    for name in hosts.files:
        hosts.write(name, "")
    # The rows are of their own older boots, or gone, or agree already.
    start_all([alpha, beta], KNOBS)

    hosts.until(alpha="", beta="")
    assert hosts.fleet.complaints() == ""


def test_a_host_takes_its_schedules_along_under_every_name(hosts):
    hosts.add("alpha", name="", says="old gone").start(KNOBS)
    assert hosts.resident_on(SHARED_QUEUE) == "gone old"
    assert hosts.workers["alpha"].terminate() == 0

    # Its first name: one entry has left the file meanwhile.
    hosts.add("alpha", says="old").start(KNOBS)
    assert (hosts.resident("alpha"), hosts.resident_on(SHARED_QUEUE)) == ("old", "")
    assert hosts.workers["alpha"].terminate() == 0

    hosts.add("alpha", name="omega", says="old").start(KNOBS)
    assert (hosts.resident("alpha"), hosts.resident_on("pi-jobs@alpha")) == ("old", "")
    assert hosts.workers["alpha"].terminate() == 0
    assert hosts.fleet.complaints() == ""


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("alpha", Path.unlink, ["does not exist; create it"]),
        (
            "",
            lambda path: path.parent.joinpath("folder").rmdir(),
            ['"one"): run.folder is', '"two"): run.folder is'],
        ),
    ],
    ids=["missing", "single host without the folder"],
)
def test_a_file_that_cannot_be_taken_at_boot_is_told_in_words_before_valkey_is_asked(
    hosts, name, change, words
):
    hosts.fleet.url = "redis://127.0.0.1:1"
    worker = hosts.add("alpha", name=name, says="one two")
    change(hosts.files["alpha"].path)

    worker.start(KNOBS, ready=False)
    assert worker.wait(seconds=20) == 2
    assert all(one in worker.complaint() for one in words), worker.complaint()
    assert [event["event"] for event in worker.events()] == []
