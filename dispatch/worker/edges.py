"""What a worker meets the outside with: its edges, and what `runs` does for a job by means of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dispatch.jobs import JobData, Kind
from dispatch.money.ledger import valkey_now
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import Owner
from dispatch.worker.timings import WorkerTimings
from dispatch.worker.work import JobPlaces, Runs, Work
from dispatch.worker.workspaces import prepare_local
from pidispatch_site.conf import Config
from runs import labels, provider
from runs.files import RecordFiles
from runs.outcome import Refusal
from runs.previous_run import previous_run
from runs.protocols import Backend
from runs.runner import Runner
from runs.watcher import Watcher
from runs.workspace import flow_gate, local
from runs.workspace.git import Git
from runs.workspace.jobuser import Account

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What tests and benchmarks replace: the backend, the way to run and to prepare, clocks, delay points.

    `prepare` of one's own may take other `kinds` of jobs than local ones. `schedule_clock` tells schedules
    the time (ms) by a client; it is Valkey's.
    """

    backend: Backend
    runs: Runs | None = None
    prepare: Callable[[str, JobData], local.Prepared | Refusal] | None = None
    kinds: frozenset[Kind] = frozenset({Kind.LOCAL})
    schedule_clock: Callable[[redis.Redis], int] = valkey_now
    account: Account
    timings: WorkerTimings = field(default_factory=WorkerTimings)
    delays: Delays = no_delay


def job_places(config: Config, files: RecordFiles) -> JobPlaces:
    """Name the places of this host that a container may be given."""
    return JobPlaces(
        global_pi_dir=config.global_pi_dir,
        global_allow_extensions=config.global_allow_extensions,
        raw_log_of=files.log_path if config.capture_job_logs else _no_raw_log,
    )


def job_work(
    config: Config,
    owner: Owner,
    edges: Edges,
    *,
    files: RecordFiles,
    engine_is_clean: Callable[[], bool],
) -> Work:
    """Gather what `runs` does for a job: what it is prepared and run with."""
    watching = {labels.HOST: owner.host_id, labels.BOOT: owner.boot}
    in_place = partial(
        local.prepare, jobs_dir=config.jobs_dir, boot=owner.boot, account=edges.account, git=Git()
    )
    return Work(
        images=edges.backend,
        credentials_of=partial(
            provider.resolve,
            environment=config.environment,
            auth_from_pi=config.auth_from_pi,
            agent_dir=config.coding_agent_dir,
            global_pi_dir=config.global_pi_dir,
            forward_env=config.forward_env,
        ),
        prepare=edges.prepare
        or partial(prepare_local, prepare=in_place, previous_run=partial(previous_run, files)),
        kinds=edges.kinds,
        cleanup=local.cleanup,
        engine_is_clean=engine_is_clean,
        runs=edges.runs or Runner(edges.backend, Watcher(edges.backend, labels=watching)),
        flow_allows=partial(flow_gate.allows_as_owner, account=edges.account, git=Git()),
    )


def _no_raw_log(job_id: str) -> Path | None:
    del job_id
    return None
