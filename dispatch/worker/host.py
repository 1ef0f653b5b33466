"""What an attempt may use of its host: one object per worker process, made in `dispatch.worker.build`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dispatch.effective import JobDefaults, Spending
from dispatch.gates.scopes import ScopeSlots
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import Owner
from dispatch.queue.transitions import Transitions
from dispatch.worker.live import LiveAttempts
from dispatch.worker.rules import Rules
from dispatch.worker.slots import Slots
from dispatch.worker.timings import WorkerTimings
from dispatch.worker.unreadable import UnreadableQueues
from dispatch.worker.work import JobPlaces, Work
from pidispatch_site.variables import CapAction

if TYPE_CHECKING:
    import redis

    from dispatch.leases.leases import Leases
    from dispatch.money.ledger import Ledger
    from dispatch.money.tokens import TokenCounter
    from dispatch.queue.waiters import Waiters
    from dispatch.waits.gate import WaitGate


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One worker process: who it is, what it may spend and hold, and its way to the queue and to `runs`.

    `queues` are those that it drains, its own last. `defaults` and `spending` are the configuration's, before
    the overlay; `cap_action` says what becomes of a job that a cap holds up. `chain_depth_max` and
    `chain_max_per_job` bound the jobs that a job may ask for; none by default. `stopping` is set when a
    shutdown begins, `out_of_patience` when it stops waiting for Valkey. `leases` is None where there is no
    fleet. `record_pushed` and `job_woken` ring for the threads that write records and promote; `may_take`
    answers whether this host may take a job now (it sees its engine, and nobody else goes by its name or its
    host-id); `valkey_faulted` hears of each fault, `unreadable` of keys that are not ours. `triggers_path` is
    this host's triggers file, where it has one.
    """

    owner: Owner
    queues: tuple[str, ...]
    defaults: JobDefaults
    spending: Spending
    cap_action: CapAction = CapAction.REFUSE
    chain_depth_max: int = 0
    chain_max_per_job: int = 0
    forwarded: dict[str, str] = field(repr=False)
    places: JobPlaces
    work: Work
    client: redis.Redis
    transitions: Transitions
    ledger: Ledger
    tokens: TokenCounter
    waiters: Waiters
    waits: WaitGate
    slots: Slots
    rules: Rules
    leases: Leases | None = None
    scopes: ScopeSlots = field(default_factory=ScopeSlots)
    live: LiveAttempts = field(default_factory=LiveAttempts)
    triggers_path: Path | None = None
    unreadable: UnreadableQueues = field(default_factory=UnreadableQueues)
    stopping: threading.Event = field(default_factory=threading.Event)
    out_of_patience: threading.Event = field(default_factory=threading.Event)
    timings: WorkerTimings = field(default_factory=WorkerTimings)
    record_pushed: Callable[[], None]
    job_woken: Callable[[], None]
    valkey_faulted: Callable[[Exception], None]
    may_take: Callable[[], bool] = lambda: True
    engine_was_silent: Callable[[], None] = lambda: None
    delays: Delays = no_delay
    utc_now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def own_queue(self) -> str:
        """The queue of what has to run here: this host's own in a fleet, else the shared one."""
        return self.queues[-1]
