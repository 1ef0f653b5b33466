"""Makes a worker from a configuration: every part created here, from values, and passed in."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from dispatch import configured
from dispatch.gates.scopes import ScopeSlots
from dispatch.leases.leases import Leases
from dispatch.money.ledger import Ledger
from dispatch.money.tokens import TokenCounter
from dispatch.queue.owner import Owner
from dispatch.queue.popper import Popper
from dispatch.queue.promote import Promoter
from dispatch.queue.sleepers import Sleepers
from dispatch.queue.states import is_pending
from dispatch.queue.sweep import Sweeper
from dispatch.queue.takers import Beats
from dispatch.queue.transitions import Transitions
from dispatch.queue.waiters import Waiters
from dispatch.schedules.opinion import Opinion
from dispatch.schedules.stall_guard import StallGuard
from dispatch.triggers.claims import Claims
from dispatch.triggers.disarm import Disarmer
from dispatch.waits.gate import WaitGate
from dispatch.waits.holds import Holds
from dispatch.worker import presence
from dispatch.worker.announcement import announce
from dispatch.worker.default_image import DefaultImage
from dispatch.worker.duties import Duties
from dispatch.worker.edges import Edges, job_places, job_work
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.host import Host
from dispatch.worker.live import LiveAttempts
from dispatch.worker.lost import record_of_lost
from dispatch.worker.orders import Orders
from dispatch.worker.outage import Outage
from dispatch.worker.reaping import Reaping
from dispatch.worker.retaining import remove_old
from dispatch.worker.rules import Rules
from dispatch.worker.scheduling import opinion, schedules
from dispatch.worker.sight import Sight
from dispatch.worker.slots import Slots
from dispatch.worker.waking import Waking
from dispatch.worker.worker import Bells, Parts, Worker
from hosts.names import SHARED_QUEUE, host_queue
from hosts.registry import Registry
from pidispatch_site import clients
from pidispatch_site.conf import Config
from runs.environment import forwarded
from runs.files import RecordFiles
from runs.mirror import Mirror
from runs.reaper import Reaper
from runs.recorder import Follows, Recorder

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What the parts of one worker have in common, before there are any."""

    config: Config
    owner: Owner
    url: str
    edges: Edges
    operator_files: OperatorFiles
    client: redis.Redis
    files: RecordFiles
    image: DefaultImage
    slots: Slots
    leases: Leases | None
    opinion: Opinion | None
    bells: Bells = field(default_factory=Bells)
    live: LiveAttempts = field(default_factory=LiveAttempts)
    scopes: ScopeSlots = field(default_factory=ScopeSlots)


@dataclass(frozen=True, slots=True)
class _Takes:
    """What must hold for this host to take a job."""

    sight: Sight
    registry: Registry

    def may_take(self) -> bool:
        return self.sight.sees_engine and not self.registry.is_contested


def build(config: Config, owner: Owner, url: str, edges: Edges, operator_files: OperatorFiles) -> Worker:
    """Make the worker of this host; nothing is contacted yet. `url` is the resolved address of Valkey."""
    client = clients.queue_client(url)
    frame = _Frame(
        config=config,
        owner=owner,
        url=url,
        edges=edges,
        operator_files=operator_files,
        client=client,
        files=RecordFiles(config.logs_dir),
        image=DefaultImage(edges.backend, config.job_image),
        slots=Slots(config.concurrency),
        leases=Leases(client, owner) if config.worker_name_declared else None,
        opinion=opinion(config, operator_files.triggers),
    )
    ledger, recorder = Ledger(client), _recorder(frame)
    sweeper = _sweeper(frame, ledger)
    outage = Outage(sweeper.interrupted)
    sight = Sight(outage, look_again=lambda: frame.bells.reap(), changed=lambda: frame.bells.publish())
    reaping = _reaping(frame, sight)
    registry = _registry(frame, sight)
    host = _host(frame, ledger, reaping, recorder, outage, _Takes(sight, registry))
    parts = Parts(
        reaping=reaping,
        beats=Beats(
            client,
            owner,
            host.queues,
            timings=edges.timings.queue,
            unreadable=host.unreadable.teller("beat"),
        ),
        sweeper=sweeper,
        promoter=Promoter(
            client,
            timings=edges.timings.queue,
            delays=edges.delays,
            unreadable=host.unreadable.teller("promote"),
        ),
        recorder=recorder,
        waking=_waking(host),
        poppers=_poppers(host, url),
        outage=outage,
        sight=sight,
        duties=_duties(frame, host, registry, recorder),
        schedules=schedules(
            config, host, registry, edges, file=operator_files.triggers, opinion=frame.opinion
        ),
        stall_guard=StallGuard(client, most=config.scheduler_stall_max),
        retention=partial(remove_old, config, frame.files),
        started=partial(announce, config, host, frame.image, url),
    )
    return Worker(host, parts, bells=frame.bells)


def _host(
    frame: _Frame, ledger: Ledger, reaping: Reaping, recorder: Recorder, outage: Outage, takes: _Takes
) -> Host:
    config, owner, edges, client = frame.config, frame.owner, frame.edges, frame.client
    return Host(
        owner=owner,
        queues=_queues(config),
        defaults=configured.defaults(config),
        spending=configured.spending(config),
        cap_action=config.cap_action,
        chain_depth_max=config.chain_depth_max,
        chain_max_per_job=config.chain_max_per_job,
        forwarded=forwarded(config.forward_env, config.environment),
        places=job_places(config, frame.files),
        work=job_work(config, owner, edges, files=frame.files, engine_is_clean=reaping.is_clean),
        client=client,
        transitions=Transitions(client=client, owner=owner, timings=edges.timings.queue, delays=edges.delays),
        ledger=ledger,
        tokens=TokenCounter(client),
        waiters=Waiters(client, delays=edges.delays),
        waits=_waits(frame),
        leases=frame.leases,
        slots=frame.slots,
        rules=Rules(slots=frame.slots, configured=config.concurrency, files=frame.operator_files),
        scopes=frame.scopes,
        live=frame.live,
        triggers_path=config.triggers_file,
        timings=edges.timings,
        record_pushed=recorder.wake,
        job_woken=lambda: frame.bells.promote(),
        valkey_faulted=outage.faulted,
        may_take=takes.may_take,
        engine_was_silent=takes.sight.engine_was_silent,
        delays=edges.delays,
    )


def _reaping(frame: _Frame, sight: Sight) -> Reaping:
    owner = frame.owner
    return Reaping(
        Reaper(frame.edges.backend, host_id=owner.host_id, boot=owner.boot),
        live=frame.live,
        scopes=frame.scopes,
        jobs_dir=frame.config.jobs_dir,
        boot=owner.boot,
        answered=sight.engine_answered,
    )


def _queues(config: Config) -> tuple[str, ...]:
    """Name the queues that this host drains: the shared one, and in a fleet its own (Q 7.2)."""
    return (SHARED_QUEUE, host_queue(config.worker_name)) if config.worker_name_declared else (SHARED_QUEUE,)


def _recorder(frame: _Frame) -> Recorder:
    days = frame.config.log_retention_days
    mirror = Mirror(frame.client, retention_days=days) if frame.config.worker_name_declared else None
    claims = Claims(frame.client, frame.owner.host_id)
    disarmer = Disarmer(frame.config.triggers_file, claims, reached=frame.edges.delays)
    return Recorder(
        frame.client,
        frame.owner.host_id,
        frame.files,
        mirror=mirror,
        follows=Follows(written=disarmer.of_record, between=disarmer.catch_up),
        reached=frame.edges.delays,
    )


def _registry(frame: _Frame, sight: Sight) -> Registry:
    owner = frame.owner
    return Registry(
        frame.client,
        name=owner.host,
        host_id=owner.host_id,
        boot=owner.boot,
        queues=_queues(frame.config),
        facts=presence.facts(
            frame.config,
            image=frame.image,
            slots=frame.slots,
            live=frame.live,
            files=frame.operator_files,
            opinion=frame.opinion,
            blind=sight.blind,
        ),
        ttl_ms=round(frame.edges.timings.host_row_ttl * 1000),
    )


def _duties(frame: _Frame, host: Host, registry: Registry, recorder: Recorder) -> Duties:
    owner, bells = frame.owner, frame.bells
    orders = Orders(
        host.client,
        host=owner.host,
        host_id=owner.host_id,
        live=host.live,
        ask_engine=lambda: bells.reap(),
    )
    return Duties(host=host, registry=registry, orders=orders, inherited=recorder.wake)


def _waking(host: Host) -> Waking:
    return Waking(host.queues, waiters=host.waiters, sleepers=Sleepers(host.client), woken=host.job_woken)


def _sweeper(frame: _Frame, ledger: Ledger) -> Sweeper:
    return Sweeper(
        frame.client,
        frame.owner,
        in_hand=frame.live.tokens,
        record=partial(record_of_lost, ledger),
        timings=frame.edges.timings.queue,
        delays=frame.edges.delays,
    )


def _poppers(host: Host, url: str) -> tuple[Popper, ...]:
    """Make one popper a queue, each with a client of its own that waits longer than its pop."""
    seconds = host.timings.pop_block
    return tuple(
        Popper(clients.popper_client(url, pop_seconds=seconds), host.owner, queue, delays=host.delays)
        for queue in host.queues
    )


def _waits(frame: _Frame) -> WaitGate:
    config, client, slots = frame.config, frame.client, frame.slots
    return WaitGate(
        holds=Holds(client),
        profiles=config.wait_profiles,
        bounds=configured.wait_bounds(config),
        environment=config.environment,
        concurrency=lambda: slots.limit,
        is_live=partial(is_pending, client),
        random=random.random,
        leases=frame.leases,
    )
