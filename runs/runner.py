"""Runs one container from create to removal and says what happened: the only door to a backend for jobs.

Blocks in the thread of its caller; a hundred runs are a hundred threads that mostly sleep. Faults of the
engine become facts of the result or patience, never exceptions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from pidispatch_site.log import event
from runs import labels
from runs.abort import Abort, AbortReason
from runs.container import ContainerSpec
from runs.launch import Launcher, NotLaunched, Patience
from runs.output import RawLog
from runs.protocols import Backend, ContainerFacts, EngineNotFoundError, EngineSilentError
from runs.result import RunResult
from runs.watcher import Watcher

TIME_LIMIT = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPatience:
    """How a running container is stopped (seconds).

    SIGTERM, after `grace` SIGKILL; asked again every `again` while it goes on; after `alarm` the operator is
    told once. `look` is how often a run looks by itself, in case that nobody rings; `silent` how soon again
    when the engine gave no answer.
    """

    grace: int = 5
    again: float = 5.0
    alarm: float = 30.0
    look: float = 30.0
    silent: float = 1.0


def _nobody(name: str) -> None:
    del name


class Runner:
    """Runs containers of one backend; one object for all runs of the process.

    `now` is the clock of `started_at` and `ended_at`; every limit is measured by the monotonic clock.
    """

    def __init__(
        self,
        backend: Backend,
        watcher: Watcher,
        *,
        patience: Patience | None = None,
        stopping: StopPatience | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._backend = backend
        self._watcher = watcher
        self._launcher = Launcher(backend, patience=patience or Patience())
        self._stopping = stopping or StopPatience()
        self._now = now

    def run(
        self,
        spec: ContainerSpec,
        *,
        abort: Abort,
        time_limit: timedelta = TIME_LIMIT,
        raw_log: Path | None = None,
        on_gone: Callable[[str], None] = _nobody,
    ) -> RunResult:
        """Create, start, wait, stop if asked or late, read the end of the output, remove.

        Returns only when the engine said that nothing of it runs any more; a container that does not stop
        holds its caller up, and `stop_did_not_take` is logged. `on_gone` gets the container's name once its
        removal is confirmed, or that there never was one; when it is not called, the reaper will remove it.
        """
        run = _Run(spec=spec, abort=abort, time_limit=time_limit, raw_log=raw_log)
        abort.attach(run.bell.set)
        try:
            launched = self._launcher.launch(spec, abort=abort, on_created=partial(self._on_created, run))
            if isinstance(launched, NotLaunched):
                result = _nothing_ran(spec, launched, abort)
            else:
                result = self._accompany(run)
        except Exception:
            # A bug of ours: no container goes on without somebody who watches it, and its folder is its own.
            while run.container and not self._launcher.remove(run.container):
                event("stop_did_not_take", jobId=spec.labels.get(labels.JOB), reason="fault")
            raise
        finally:
            self._watcher.forget(run.container)
        if result.gone:
            _tell(on_gone, spec)
        return result

    def _on_created(self, run: _Run, container: str) -> None:
        """Stand ready before it starts: its end may come before the answer to its start."""
        run.container = container
        run.started_at = self._now()
        run.deadline = time.monotonic() + run.time_limit.total_seconds()
        self._watcher.watch(container, run.bell.set)

    def _accompany(self, run: _Run) -> RunResult:
        log = None
        if run.raw_log is not None:
            log = RawLog(self._backend, container=run.container, path=run.raw_log)
            log.start()
        tail = b""
        try:
            facts = self._until_it_ends(run)
            ended_at = self._now()
            self._watcher.forget(run.container)
            if facts is not None:
                tail = self._tail(run.container)
        finally:
            if log is not None:
                log.finish(tail)
        return RunResult(
            container=run.spec.name,
            container_id=run.container,
            exit_code=facts.exit_code if facts is not None else None,
            abort_reason=run.stopped_for,
            oom_killed=facts is not None and facts.oom_killed,
            detached=facts is None,
            gone=self._launcher.remove(run.container),
            started_at=run.started_at,
            ended_at=ended_at,
            tail=tail,
            log_truncated=log is not None and log.truncated,
        )

    def _until_it_ends(self, run: _Run) -> ContainerFacts | None:
        """Wait for its end, or bring it about; None when somebody else removed it."""
        while True:
            left = max(0.0, run.deadline - time.monotonic())
            run.bell.wait(min(left, self._stopping.look))
            run.bell.clear()
            # Looked at first: one that has just ended by itself was not stopped by us.
            look = self._look(run.container)
            if look.over:
                return look.facts
            if run.abort.reason is not None:
                return self._stop(run, run.abort.reason)
            if time.monotonic() >= run.deadline:
                return self._stop(run, AbortReason.TIMEOUT)
            if look.silent:
                run.bell.wait(self._stopping.silent)
                run.bell.set()

    def _stop(self, run: _Run, reason: AbortReason) -> ContainerFacts | None:
        run.stopped_for = reason
        alarm = time.monotonic() + self._stopping.alarm
        while True:
            # Unlike a start it may be repeated, and after an outage it must be.
            with suppress(EngineSilentError):
                self._backend.stop(run.container, grace_seconds=self._stopping.grace)
            look = self._look(run.container)
            if look.over:
                return look.facts
            if time.monotonic() >= alarm:
                event("stop_did_not_take", jobId=run.spec.labels.get(labels.JOB), reason=reason.value)
                alarm = float("inf")
            run.bell.wait(min(self._stopping.again, max(0.0, alarm - time.monotonic())))
            run.bell.clear()

    def _look(self, container: str) -> _Look:
        try:
            facts = self._backend.inspect(container)
        except EngineNotFoundError:
            return _Look(over=True)
        except EngineSilentError:
            return _Look(silent=True)
        return _Look(over=facts.ended, facts=facts)

    def _tail(self, container: str) -> bytes:
        """Read the end of its output; the figures are in it, so an engine that falters is asked again."""
        for _ in range(3):
            try:
                return self._backend.tail(container)
            except EngineNotFoundError:
                break
            except EngineSilentError:
                time.sleep(self._stopping.silent)
        return b""


@dataclass(slots=True, kw_only=True)
class _Run:
    """What one call of `run` goes on; used by its thread only, but for the bell."""

    spec: ContainerSpec
    abort: Abort
    time_limit: timedelta
    raw_log: Path | None
    bell: threading.Event = field(default_factory=threading.Event)
    container: str = ""
    started_at: datetime | None = None
    deadline: float = 0.0
    stopped_for: AbortReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One question after a container: over (without facts when it is gone), going on, or no answer."""

    over: bool = False
    silent: bool = False
    facts: ContainerFacts | None = None


def _nothing_ran(spec: ContainerSpec, launched: NotLaunched, abort: Abort) -> RunResult:
    return RunResult(
        container=spec.name,
        container_id=launched.container_id,
        abort_reason=abort.reason if launched.aborted else None,
        not_attempted=not launched.asked,
        never_started=launched.asked and not launched.aborted,
        gone=launched.gone,
        fault=launched.fault,
    )


def _tell(on_gone: Callable[[str], None], spec: ContainerSpec) -> None:
    try:
        on_gone(spec.name)
    except Exception as error:  # noqa: BLE001 - what the caller makes of the news must not cost it the result
        event("on_gone_failed", jobId=spec.labels.get(labels.JOB), kind=type(error).__name__)
