"""Makes a worker from a configuration: every part created here, from values, and passed in."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections

from dispatch import configured
from dispatch.gates.scopes import ScopeSlots
from dispatch.jobs import JobData, Kind
from dispatch.leases.leases import Leases
from dispatch.money.ledger import Ledger
from dispatch.money.tokens import TokenCounter
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import Owner
from dispatch.queue.popper import Popper
from dispatch.queue.promote import Promoter
from dispatch.queue.sleepers import Sleepers
from dispatch.queue.states import is_pending
from dispatch.queue.sweep import Sweeper
from dispatch.queue.takers import Beats
from dispatch.queue.transitions import Transitions
from dispatch.queue.waiters import Waiters
from dispatch.waits.gate import WaitGate
from dispatch.waits.holds import Holds
from dispatch.worker import presence
from dispatch.worker.announcement import announce
from dispatch.worker.default_image import DefaultImage
from dispatch.worker.duties import Duties
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.host import Host, JobPlaces, Runs, Work
from dispatch.worker.live import LiveAttempts
from dispatch.worker.lost import record_of_lost
from dispatch.worker.orders import Orders
from dispatch.worker.outage import Outage
from dispatch.worker.reaping import Reaping
from dispatch.worker.rules import Rules
from dispatch.worker.sight import Sight
from dispatch.worker.slots import Slots
from dispatch.worker.timings import WorkerTimings
from dispatch.worker.waking import Waking
from dispatch.worker.worker import Bells, Parts, Worker
from dispatch.worker.workspaces import prepare_local
from hosts.facts import Fact
from hosts.names import SHARED_QUEUE, host_queue
from hosts.registry import Registry
from pidispatch_site import clients, log
from pidispatch_site.conf import Config
from runs import labels, provider, retention
from runs.environment import forwarded
from runs.files import RecordFiles
from runs.mirror import Mirror
from runs.outcome import Refusal
from runs.protocols import Backend
from runs.reaper import Reaper
from runs.recorder import Recorder
from runs.runner import Runner
from runs.watcher import Watcher
from runs.workspace import local
from runs.workspace.git import Git
from runs.workspace.jobuser import Account

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What tests and benchmarks replace: the backend, the way to run and to prepare, clocks, delay points.

    `prepare` of one's own may take other `kinds` of jobs than local ones.
    """

    backend: Backend
    runs: Runs | None = None
    prepare: Callable[[JobData], local.Prepared | Refusal] | None = None
    kinds: frozenset[Kind] = frozenset({Kind.LOCAL})
    account: Account
    timings: WorkerTimings = field(default_factory=WorkerTimings)
    delays: Delays = no_delay


def build(config: Config, owner: Owner, url: str, edges: Edges, operator_files: OperatorFiles) -> Worker:
    """Make the worker of this host; nothing is contacted yet. `url` is the resolved address of Valkey."""
    client = clients.queue_client(url)
    files = RecordFiles(config.logs_dir)
    ledger = Ledger(client)
    bells, live, scopes, slots = Bells(), LiveAttempts(), ScopeSlots(), Slots(config.concurrency)
    image = DefaultImage(edges.backend, config.job_image)
    recorder = _recorder(config, client, owner, files, edges)
    sweeper = _sweeper(client, owner, edges, live, ledger)
    outage = Outage(sweeper.interrupted)
    sight = Sight(outage, look_again=lambda: bells.reap())
    reaping = Reaping(
        Reaper(edges.backend, host_id=owner.host_id, boot=owner.boot),
        live=live,
        scopes=scopes,
        jobs_dir=config.jobs_dir,
        boot=owner.boot,
        answered=sight.engine_answered,
    )
    leases = Leases(client, owner) if config.worker_name_declared else None
    host = Host(
        owner=owner,
        queues=_queues(config),
        defaults=configured.defaults(config),
        spending=configured.spending(config),
        cap_action=config.cap_action,
        forwarded=forwarded(config.forward_env, config.environment),
        places=_places(config, files),
        work=_work(config, owner, edges, reaping),
        client=client,
        transitions=_transitions(client, owner, edges),
        ledger=ledger,
        tokens=TokenCounter(client),
        waiters=Waiters(client, delays=edges.delays),
        waits=_waits(config, client, slots, leases),
        leases=leases,
        slots=slots,
        rules=Rules(slots=slots, configured=config.concurrency, files=operator_files),
        scopes=scopes,
        live=live,
        timings=edges.timings,
        record_pushed=recorder.wake,
        job_woken=lambda: bells.promote(),
        valkey_faulted=outage.faulted,
        sees_engine=lambda: sight.sees_engine,
        engine_was_silent=sight.engine_was_silent,
        delays=edges.delays,
    )
    parts = Parts(
        reaping=reaping,
        beats=Beats(client, owner, host.queues, timings=edges.timings.queue),
        sweeper=sweeper,
        promoter=Promoter(client, timings=edges.timings.queue, delays=edges.delays),
        recorder=recorder,
        waking=_waking(host),
        poppers=_poppers(host, url),
        outage=outage,
        sight=sight,
        duties=_duties(
            host,
            presence.facts(config, image=image, slots=slots, files=operator_files, blind=sight.blind),
            recorder,
            ask_engine=lambda: bells.reap(),
        ),
        retention=partial(_retain, config, files),
        started=partial(announce, config, host, image, url),
    )
    return Worker(host, parts, bells=bells)


def _queues(config: Config) -> tuple[str, ...]:
    """Name the queues that this host drains: the shared one, and in a fleet its own (Q 7.2)."""
    return (SHARED_QUEUE, host_queue(config.worker_name)) if config.worker_name_declared else (SHARED_QUEUE,)


def _recorder(
    config: Config, client: redis.Redis, owner: Owner, files: RecordFiles, edges: Edges
) -> Recorder:
    mirror = Mirror(client, retention_days=config.log_retention_days) if config.worker_name_declared else None
    return Recorder(client, owner.host_id, files, mirror=mirror, reached=edges.delays)


def _duties(
    host: Host, facts: Mapping[str, Fact], recorder: Recorder, *, ask_engine: Callable[[], object]
) -> Duties:
    owner, timings = host.owner, host.timings
    registry = Registry(
        host.client,
        name=owner.host,
        host_id=owner.host_id,
        boot=owner.boot,
        queues=host.queues,
        facts=facts,
        ttl_ms=round(timings.host_row_ttl * 1000),
    )
    orders = Orders(
        host.client, host=owner.host, host_id=owner.host_id, live=host.live, ask_engine=ask_engine
    )
    return Duties(host=host, registry=registry, orders=orders, inherited=recorder.wake)


def _waking(host: Host) -> Waking:
    return Waking(host.queues, waiters=host.waiters, sleepers=Sleepers(host.client), woken=host.job_woken)


def _sweeper(client: redis.Redis, owner: Owner, edges: Edges, live: LiveAttempts, ledger: Ledger) -> Sweeper:
    return Sweeper(
        client,
        owner,
        in_hand=live.tokens,
        record=partial(record_of_lost, ledger),
        timings=edges.timings.queue,
        delays=edges.delays,
    )


def _transitions(client: redis.Redis, owner: Owner, edges: Edges) -> Transitions:
    return Transitions(client=client, owner=owner, timings=edges.timings.queue, delays=edges.delays)


def _poppers(host: Host, url: str) -> tuple[Popper, ...]:
    """Make one popper a queue, each with a client of its own that waits longer than its pop."""
    seconds = host.timings.pop_block
    return tuple(
        Popper(clients.popper_client(url, pop_seconds=seconds), host.owner, queue, delays=host.delays)
        for queue in host.queues
    )


def _places(config: Config, files: RecordFiles) -> JobPlaces:
    return JobPlaces(
        global_pi_dir=config.global_pi_dir,
        global_allow_extensions=config.global_allow_extensions,
        raw_log_of=files.log_path if config.capture_job_logs else _no_raw_log,
    )


def _work(config: Config, owner: Owner, edges: Edges, reaping: Reaping) -> Work:
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
        prepare=edges.prepare or partial(prepare_local, prepare=in_place),
        kinds=edges.kinds,
        cleanup=local.cleanup,
        engine_is_clean=reaping.is_clean,
        runs=edges.runs or Runner(edges.backend, Watcher(edges.backend, labels=watching)),
    )


def _waits(config: Config, client: redis.Redis, slots: Slots, leases: Leases | None) -> WaitGate:
    return WaitGate(
        holds=Holds(client),
        profiles=config.wait_profiles,
        bounds=configured.wait_bounds(config),
        environment=config.environment,
        concurrency=lambda: slots.limit,
        is_live=partial(is_pending, client),
        random=random.random,
        leases=leases,
    )


def _no_raw_log(job_id: str) -> Path | None:
    del job_id
    return None


def _retain(config: Config, files: RecordFiles) -> None:
    """Remove what is older than is kept. What cannot be removed is no reason to take no work."""
    now = datetime.now(UTC)
    try:
        files.sweep()
        retention.reap_logs(files.folder, days=config.log_retention_days, now=now)
        retention.prune_rows(days=config.run_retention_days, now=now)
    except OSError as error:
        log.event("log_reaper_skipped", error=type(error).__name__)
    except DatabaseError as error:
        log.event("row_retention_skipped", error=type(error).__name__)
    finally:
        connections.close_all()
