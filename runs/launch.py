"""Brings one container to life at most once, and finds out what became of it when the engine did not say.

Create and start are each asked once. An error that the engine answers is certain; no answer is not: the
container may well run. So the engine is asked by name and id until it answers, however long that takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pidispatch_site.log import event
from runs import labels
from runs.abort import Abort
from runs.container import ContainerSpec
from runs.protocols import (
    Backend,
    ContainerFacts,
    EngineAnsweredError,
    EngineNotFoundError,
    EngineSilentError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """It runs, or has run already."""

    container_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLaunched:
    """Nothing ran. `aborted`: the flag was up; else the engine refused or confirmed that nothing is there.

    `asked` is whether create was ever asked for, `gone` whether nothing of it is left.
    """

    aborted: bool = False
    asked: bool = True
    container_id: str | None = None
    gone: bool = True
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to go on asking (seconds); tests shorten it.

    After a lost create or start the engine may still be about to do it: only what has stood for `settle` is
    taken as its last word. `ask` to `ask_at_most` lie between questions that get no answer. A removal is
    tried for `remove` before it is left to the reaper.
    """

    settle: float = 2.0
    ask: float = 0.25
    ask_at_most: float = 5.0
    remove: float = 10.0


class Launcher:
    """Creates, starts and removes containers of one backend; knows nothing of what they do in between."""

    def __init__(self, backend: Backend, *, patience: Patience) -> None:
        self._backend = backend
        self._patience = patience

    def launch(
        self, spec: ContainerSpec, *, abort: Abort, on_created: Callable[[str], None]
    ) -> Launched | NotLaunched:
        """Create and start; `on_created` gets the id in between, as soon as it is known.

        Returns when it is certain what happened. An abort is obeyed before create and before start.
        """
        if abort.is_set():
            return NotLaunched(aborted=True, asked=False)
        found = self._create(spec)
        if isinstance(found, NotLaunched):
            return found
        on_created(found.id)
        if found.status != "created":
            return Launched(container_id=found.id)
        if abort.is_set():
            return NotLaunched(aborted=True, container_id=found.id, gone=self.remove(found.id))
        return self._start(spec, found.id)

    def remove(self, container: str) -> bool:
        """Remove it by force; false when the engine has not confirmed it in time."""
        deadline = time.monotonic() + self._patience.remove
        while True:
            try:
                self._backend.remove(container)
            except EngineSilentError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(self._patience.ask)
            else:
                return True

    def _create(self, spec: ContainerSpec) -> ContainerFacts | NotLaunched:
        try:
            container = self._backend.create(spec)
        except EngineAnsweredError as error:
            # A name that is taken by this very attempt is a create of ours that happened after all.
            holder = self._look(spec.name) if error.conflict else None
            return _ours(holder, spec) or NotLaunched(fault=error.token)
        except EngineSilentError as error:
            if error.unreachable:
                return NotLaunched(fault=error.token)
            event("container_create_unknown", jobId=spec.labels.get(labels.JOB), kind=error.token)
            holder = self._settle(spec.name, pending=lambda facts: facts is None)
            return _ours(holder, spec) or NotLaunched(fault=error.token)
        return ContainerFacts(id=container, name=spec.name, status="created", labels=spec.labels)

    def _start(self, spec: ContainerSpec, container: str) -> Launched | NotLaunched:
        try:
            self._backend.start(container)
        except EngineAnsweredError as error:
            return self._withdraw(
                container, fault=error.token, until=time.monotonic() + self._patience.remove
            )
        except EngineSilentError as error:
            event("container_start_unknown", jobId=spec.labels.get(labels.JOB), kind=error.token)
            facts = self._settle(
                container, pending=lambda facts: facts is not None and facts.status == "created"
            )
            if facts is not None and facts.status != "created":
                return Launched(container_id=container)
            return self._withdraw(container, fault=error.token, until=None)
        return Launched(container_id=container)

    def _withdraw(self, container: str, *, fault: str, until: float | None) -> Launched | NotLaunched:
        """Remove what was not started, in the one step that spares it if it runs after all.

        `until` is when to give up where it is certain anyway that it did not run; None for never.
        """
        for wait in self._waits():
            try:
                if not self._backend.discard(container):
                    return Launched(container_id=container)
            except EngineSilentError:
                if until is not None and time.monotonic() >= until:
                    return NotLaunched(container_id=container, gone=False, fault=fault)
                time.sleep(wait)
            else:
                break
        return NotLaunched(container_id=container, fault=fault)

    def _look(self, container: str) -> ContainerFacts | None:
        """Ask for it until the engine answers; None when it is not there."""
        for wait in self._waits():
            try:
                return self._backend.inspect(container)
            except EngineNotFoundError:
                break
            except EngineSilentError:
                time.sleep(wait)
        return None

    def _settle(
        self, container: str, *, pending: Callable[[ContainerFacts | None], bool]
    ) -> ContainerFacts | None:
        """Ask until it is not `pending`, or has been so for a while: a request may still be under way."""
        facts = self._look(container)
        deadline = time.monotonic() + self._patience.settle
        while pending(facts) and time.monotonic() < deadline:
            time.sleep(self._patience.ask)
            facts = self._look(container)
        return facts

    def _waits(self) -> Iterator[float]:
        """Longer and longer pauses, without an end."""
        wait = self._patience.ask
        while True:
            yield wait
            wait = min(wait * 2, self._patience.ask_at_most)


def _ours(holder: ContainerFacts | None, spec: ContainerSpec) -> ContainerFacts | None:
    """Give the holder of our name if it is this attempt's container; anybody else's is left alone."""
    return holder if holder is not None and labels.same_attempt(holder.labels, spec.labels) else None
