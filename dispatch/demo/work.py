"""What the demo's fleet has to do: jobs that run, wait, sleep and are held; and switches that are set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dispatch.demo import past
from dispatch.demo.fleet import CHECK, FIRST, PAUSED, Fleet, until
from dispatch.ids import local_id
from dispatch.instants import epoch_ms
from dispatch.jobs import local_job
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.producer import Producer
from dispatch.queue.states import State, look
from dispatch.schedules.table import Table
from hosts import switches
from hosts.names import SHARED_QUEUE, host_queue
from runs.record import Record


@dataclass(frozen=True, slots=True)
class _Job:
    """A job on a sample repository; one that takes minutes says so in its task, which the agent heeds."""

    repository: str
    flow: str
    minutes: int = 0
    host: str = ""
    waits_for: tuple[Mapping[str, str], ...] | None = None

    @property
    def queue(self) -> str:
        return host_queue(self.host) if self.host else SHARED_QUEUE

    @property
    def task(self) -> str:
        doing = f"Do what the flow {self.flow} is for."
        return f"{doing} Take {self.minutes} minutes." if self.minutes else doing


_DONE = (_Job("infra", "release-notes", host="alder"), _Job("billing", "triage", host="birch"))
_RUNNING = (
    *(_Job("web-shop", "fix-tests", 26, "alder"), _Job("search", "refactor", 28, "alder")),
    *(_Job("mobile-app", "review", 17, "alder"), _Job("billing", "fix-tests", 22, "birch")),
    *(_Job("infra", "audit", 27, "birch"), _Job("data-pipeline", "review", 24, "cedar")),
)
_WAITING = (
    *(_Job("web-shop", "review", 6), _Job("search", "triage", 2), _Job("billing", "docs-sync", 4)),
    *(_Job("mobile-app", "fix-tests", 9), _Job("data-pipeline", "review", 5)),
    *(_Job("web-shop", "docs-sync", 3, "alder"), _Job("infra", "fix-tests", 8, "alder")),
    *(_Job("infra", "refactor", 15, "birch"), _Job("search", "fix-tests", 9, "cedar")),
)


def put_off(fleet: Fleet, now: datetime) -> None:
    """Enqueue what sleeps: until an instant, while a pause window lasts, and until a check says go."""
    tomorrow = (now + timedelta(days=1)).strftime("%Y-%m-%dT06:00:00Z")
    jobs = (
        _Job("web-shop", "update", 5, FIRST, ({"after": tomorrow},)),
        _Job(PAUSED, "docs-sync", 5, FIRST),
        _Job("search", "release-notes", 2, FIRST, ({"profile": CHECK},)),
    )
    _until_all(fleet, _enqueue(fleet, jobs, now), _sleeps, "the first jobs sleep")


def at_work(fleet: Fleet, now: datetime) -> None:
    """Enqueue what ends at once, what runs for long, and then what waits; with the switches before the last.

    A queue is paused and a host drained, each by somebody who says why.
    """
    _until_all(fleet, _enqueue(fleet, _DONE, now), lambda state: state.is_over, "the short jobs are over")
    running = _enqueue(fleet, _RUNNING, now)
    _until_all(fleet, running, lambda state: state is State.STARTED, "the long jobs run")
    switches.pause(
        fleet.client,
        [host_queue("birch")],
        by="kim@birch",
        reason="its disk is being replaced",
        lasting=timedelta(hours=2),
    )
    switches.drain(fleet.client, "cedar", by="robin@cedar", reason="kernel update tonight")
    _enqueue(fleet, _WAITING, now)


def tear_down(fleet: Fleet, found: Sequence[Record]) -> None:
    """Take out the schedule whose last runs were lost with their workers, as the stall guard does."""
    ended = past.of_schedule(found, past.UPDATE)[-1].ended_at
    at_ms = epoch_ms(ended) if ended else 0
    tables = [Table(fleet.client, host_queue(name)) for name in fleet.hosts]
    until(
        lambda: all(past.UPDATE in table.resident() for table in tables),
        "the schedules are installed",
    )
    for table in tables:
        table.tear_down(past.UPDATE, stalls=past.STALLS, at_ms=at_ms)


def _sleeps(state: State) -> bool:
    return state is State.SCHEDULED


def _enqueue(fleet: Fleet, jobs: Sequence[_Job], now: datetime) -> list[str]:
    return [_put(fleet, job, now) for job in jobs]


def _put(fleet: Fleet, asked: _Job, now: datetime) -> str:
    folder = str(fleet.stage.folder / asked.repository)
    job = local_job(folder, task=asked.task, flow=asked.flow, wait_for=asked.waits_for)
    job_id = local_id(folder, flow=job.flow, task=job.task, now=now)
    Producer(fleet.client).enqueue(asked.queue, job_id, job, keeping=LOCAL, scope_hash=job.scope_hash)
    return job_id


def _until_all(fleet: Fleet, job_ids: Sequence[str], holds: Callable[[State], bool], what: str) -> None:
    def all_do() -> bool:
        found = (look(fleet.client, job_id) for job_id in job_ids)
        return all(one is not None and holds(one.state) for one in found)

    until(all_do, what)
