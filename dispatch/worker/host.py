"""What an attempt may use of its host: one object per worker process, made in `dispatch.worker.build`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dispatch.effective import JobDefaults, Spending
from dispatch.gates.scopes import ScopeSlots
from dispatch.jobs import JobData, Kind
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import Owner
from dispatch.queue.transitions import Transitions
from dispatch.worker.live import LiveAttempts
from dispatch.worker.rules import Rules
from dispatch.worker.slots import Slots
from dispatch.worker.timings import WorkerTimings
from dispatch.worker.unreadable import UnreadableQueues
from pidispatch_site.variables import CapAction
from runs.abort import Abort
from runs.container import ContainerSpec
from runs.outcome import Refusal
from runs.preflight import Images
from runs.provider import Credentials
from runs.result import RunResult
from runs.workspace.local import Prepared

if TYPE_CHECKING:
    import redis

    from dispatch.leases.leases import Leases
    from dispatch.money.ledger import Ledger
    from dispatch.money.tokens import TokenCounter
    from dispatch.queue.waiters import Waiters
    from dispatch.waits.gate import WaitGate


class Runs(Protocol):
    """What runs a container: `runs.runner.Runner`, or the benchmarks' that runs nothing."""

    def run(
        self,
        spec: ContainerSpec,
        *,
        abort: Abort,
        time_limit: timedelta,
        raw_log: Path | None,
        on_gone: Callable[[str], None],
    ) -> RunResult:
        """Run it to its end; see `runs.runner.Runner.run`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlaces:
    """Where inputs come from and raw output goes; `raw_log_of` answers None while capture is off."""

    global_pi_dir: Path | None
    global_allow_extensions: bool
    raw_log_of: Callable[[str], Path | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The edges to execution, each one call: what the ladder asks of `runs` and what runs the container.

    `kinds` are those of jobs that `prepare` can make a workspace for. `engine_is_clean` answers whether this
    boot has listed the engine's containers and removed what older boots left; it tries again when it has not.
    `flow_allows` answers whether a folder's commit lets a job start a flow; nothing allows it by default.
    """

    images: Images
    credentials_of: Callable[[str], Credentials | Refusal]
    prepare: Callable[[str, JobData], Prepared | Refusal]
    cleanup: Callable[[Prepared], None]
    engine_is_clean: Callable[[], bool]
    runs: Runs
    kinds: frozenset[Kind] = frozenset({Kind.LOCAL})
    flow_allows: Callable[[Path, str, str | None], bool] = lambda folder, flow, sha: False


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
