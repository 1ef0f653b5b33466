"""What the tests of the worker share: a host with a real Valkey behind it and nothing of an engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import redis

from dispatch.effective import JobDefaults, Spending
from dispatch.ids import Kind
from dispatch.jobs import JobData
from dispatch.money.ledger import Ledger
from dispatch.money.tokens import TokenCounter
from dispatch.money.windows import Caps
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.new_jobs import LOCAL, Keeping
from dispatch.queue.owner import Owner
from dispatch.queue.popper import Claimed, Popper
from dispatch.queue.producer import Producer
from dispatch.queue.states import is_pending
from dispatch.queue.timings import Timings
from dispatch.queue.transitions import Transitions
from dispatch.queue.waiters import Waiters
from dispatch.waits.gate import WaitBounds, WaitGate
from dispatch.waits.holds import Holds
from dispatch.worker.attempt import attempt
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.host import Host
from dispatch.worker.rules import Rules
from dispatch.worker.slots import Slots
from dispatch.worker.timings import WorkerTimings
from dispatch.worker.work import JobPlaces, Work
from runs.abort import Abort, AbortReason
from runs.container import ContainerSpec
from runs.outcome import Refusal
from runs.protocols import EngineSilentError, ImageFacts
from runs.provider import Credentials
from runs.result import RunResult
from runs.workspace.local import Prepared
from tests.dispatch import queuekit

IMAGE = ImageFacts(
    id="sha256:1",
    pi_version="1",
    forges=None,
    capabilities=frozenset({"commands", "replicas", "anyUid"}),
    user="1001",
)
COMPLETED = RunResult(container="", exit_code=0)


@dataclass
class Engine:
    """What the ladder asks of the engine: one image, clean or silent."""

    image_facts: ImageFacts | None = IMAGE
    is_clean: bool = True
    silent: bool = False

    def image(self, reference: str) -> ImageFacts | None:
        del reference
        if self.silent:
            raise EngineSilentError("engine-timeout")
        return self.image_facts


@dataclass
class Places:
    """Prepares nothing, and counts what was prepared and what was cleaned up."""

    answer: Refusal | Exception | None = None
    user: Any = None
    standing: int = 0
    prepared: int = 0
    cleanup_fault: Exception | None = None
    meanwhile: Callable[[], None] = lambda: None

    def prepare(self, _: str, job: JobData) -> Prepared | Refusal:
        self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        self.standing += 1
        self.prepared += 1
        nowhere, is_forge = Path("/nonexistent/job"), job.kind.is_forge
        return Prepared(
            job_dir=nowhere,
            workspace=Path(job.folder) if job.folder else nowhere / "workspace",
            outbox=None if is_forge else nowhere / "outbox",
            sha=None,
            user=self.user,
        )

    def cleanup(self, prepared: Prepared) -> None:
        del prepared
        self.standing -= 1
        if self.cleanup_fault is not None:
            raise self.cleanup_fault


@dataclass
class Containers:
    """Runs nothing: answers `result`, or raises; `meanwhile` is done as if the container took its time."""

    result: RunResult | Exception = COMPLETED
    meanwhile: Callable[[], None] = lambda: None
    specs: list[ContainerSpec] = field(default_factory=list)
    tells_gone: bool = True

    def run(
        self,
        spec: ContainerSpec,
        *,
        abort: Abort,
        time_limit: timedelta,
        raw_log: Path | None,
        on_gone: Callable[[str], None],
    ) -> RunResult:
        del abort, time_limit, raw_log
        self.specs.append(spec)
        self.meanwhile()
        if isinstance(self.result, Exception):
            raise self.result
        if self.tells_gone:
            on_gone(spec.name)
        return replace(self.result, container=spec.name)


class Fault:
    """A delay point that raises: at `point`, the first `times` times that it is reached."""

    def __init__(self, point: str, error: Exception, *, times: int = 1) -> None:
        self._point, self._error, self._left = point, error, times
        self.reached: list[str] = []

    def __call__(self, point: str) -> None:
        self.reached.append(point)
        if point == self._point and self._left:
            self._left -= 1
            raise self._error


# Nothing is waited for, except where a test wants to see the wait.
QUICK = WorkerTimings(pop_block=0.1, pause_recheck=0.01, valkey_retry_max=0.02, queue=Timings())


def wait_gate(client: redis.Redis, **changed: Any) -> WaitGate:
    """The gate of a host that declares no checks, unless told otherwise."""
    values: dict[str, Any] = {
        "holds": Holds(client),
        "profiles": {},
        "bounds": WaitBounds(
            interval_ms=30_000,
            max_ms=86_400_000,
            after_max_ms=2_592_000_000,
            max_checks=96,
            max_faults=5,
            slots=1,
            check_timeout_ms=5_000,
        ),
        "environment": dict(os.environ),
        "concurrency": lambda: 3,
        "is_live": partial(is_pending, client),
        "random": lambda: 0.0,
    }
    return WaitGate(**{**values, **changed})


class Bench:
    """One host without its threads: the test claims jobs and calls their attempts itself."""

    def __init__(
        self,
        client: redis.Redis,
        *,
        cap: int = 25,
        delays: Delays = no_delay,
        timings: WorkerTimings = QUICK,
        slots: int = 2,
        boot_number: int = 1,
        **fields: Any,
    ) -> None:
        self.client = client
        self.engine, self.places, self.containers = Engine(), Places(), Containers()
        self.credentials: Credentials | Refusal | Exception = Credentials(variables={"KEY": "value"})
        self.pushed = threading.Event()
        self.faults: list[Exception] = []
        taken = Slots(slots)
        owner = Owner(boot=f"aaaa-{boot_number:08x}", host_id="aaaa", host="alpha")
        self.host = Host(
            owner=owner,
            queues=(queuekit.QUEUE,),
            defaults=JobDefaults(provider="anthropic", model="some-model", image="job:1", max_turns=9),
            spending=Spending(caps=Caps(day=cap)),
            forwarded={},
            places=JobPlaces(
                global_pi_dir=None, global_allow_extensions=True, raw_log_of=lambda job_id: None
            ),
            work=Work(
                images=self.engine,
                credentials_of=self._credentials_of,
                prepare=self.places.prepare,
                cleanup=self.places.cleanup,
                engine_is_clean=lambda: self.engine.is_clean,
                runs=self.containers,
                kinds=frozenset(fields.pop("kinds", [Kind.LOCAL])),
            ),
            client=client,
            transitions=Transitions(client=client, owner=owner, timings=timings.queue, delays=delays),
            ledger=Ledger(client),
            tokens=TokenCounter(client),
            waiters=Waiters(client, delays=delays),
            waits=fields.pop("waits", None) or wait_gate(client, concurrency=lambda: slots),
            slots=taken,
            rules=Rules(slots=taken, configured=slots, files=fields.pop("files", OperatorFiles())),
            timings=timings,
            record_pushed=self.pushed.set,
            job_woken=lambda: None,
            valkey_faulted=self.faults.append,
            delays=delays,
            **fields,
        )
        self.producer = Producer(client)
        self.popper = Popper(client, owner, queuekit.QUEUE)

    def _credentials_of(self, provider: str) -> Credentials | Refusal:
        del provider
        if isinstance(self.credentials, Exception):
            raise self.credentials
        return self.credentials

    def enqueue(
        self, job_id: str = "local-1", job: JobData = queuekit.JOB, *, keeping: Keeping = LOCAL
    ) -> None:
        self.producer.enqueue(queuekit.QUEUE, job_id, job, keeping=keeping)

    def claim(self) -> Claimed:
        popped = self.popper.pop()
        assert isinstance(popped, Claimed), popped
        return popped

    def attempt(self, job_id: str = "local-1", job: JobData = queuekit.JOB, **options: Any) -> Claimed:
        """Enqueue a job, take it and do its attempt."""
        self.enqueue(job_id, job, **options)
        claimed = self.claim()
        attempt(self.host, claimed)
        return claimed

    def stop(self) -> None:
        self.host.stopping.set()
        self.host.live.abort_all(AbortReason.SHUTDOWN)

    def give_up(self) -> None:
        self.stop()
        self.host.out_of_patience.set()

    def spent(self) -> int:
        """What the day's counter says."""
        return sum(int(self.client.get(key)) for key in self.client.keys("budget:20*"))

    def record(self) -> dict[str, Any] | None:
        """The last record that was pushed."""
        found = queuekit.records(self.client)
        return found[-1] if found else None

    def standing(self, job_id: str = "local-1") -> str:
        """Where the job is: in-hand, or its status."""
        job = queuekit.hash_of(self.client, job_id)
        if job.get("status") == "queued" and "taker" in job:
            return "in-hand"
        return job.get("status", "absent")

    def assert_nothing_is_held(self) -> None:
        assert self.host.scopes.held == {}
        assert len(self.host.live) == 0
        assert self.places.standing == 0
        assert self.host.slots.used == 0
