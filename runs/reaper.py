"""Removes what earlier boots and lost runs left with the engine: containers first, then their networks.

Ours is what carries this state directory's host-id and our exact name prefix (`runs.labels`); anything else
is left alone however it is named. Another state directory may use the same engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pidispatch_site.log import event
from runs import labels
from runs.protocols import Backend, EngineSilentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A container that no live run claims; what is not None is read off its labels."""

    name: str
    job_id: str | None
    boot: str | None
    scope_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    """What one pass did.

    `enumerated` is true only if the engine really listed our containers: nothing may be concluded from the
    other fields before. `removed` are confirmed gone; `remaining` may still run, so their scopes are busy.
    """

    enumerated: bool
    removed: tuple[Leftover, ...] = ()
    remaining: tuple[Leftover, ...] = ()

    @property
    def busy_scopes(self) -> frozenset[str]:
        """Scope hashes that something remaining may still work in."""
        return frozenset(left.scope_hash for left in self.remaining if left.scope_hash)


class Reaper:
    """Reaps for one worker process: `boot` is its boot id.

    `budget_seconds` bounds one pass with an engine that takes its time; what is left over then remains.
    """

    def __init__(self, backend: Backend, *, host_id: str, boot: str, budget_seconds: float = 30.0) -> None:
        self._backend = backend
        self._host_id = host_id
        self._boot = boot
        self._budget_seconds = budget_seconds

    def reap(self, *, is_live: Callable[[str], bool]) -> Reaped:
        """Remove what is of another boot, or of this one and not live; running or not makes no difference.

        `is_live` tells by its name whether a run of this process claims a container; it is asked after the
        listing, so a run that claims before it creates is never hit. Never raises for engine faults.
        """
        deadline = time.monotonic() + self._budget_seconds
        try:
            found = self._backend.listing({labels.HOST: self._host_id})
        except EngineSilentError as error:
            event("reaper_skipped", kind="containers", reason=error.token)
            return Reaped(enumerated=False)
        removed: list[Leftover] = []
        remaining: list[Leftover] = []
        for facts in found:
            if self._is_left_over(facts.name, facts.labels, is_live):
                left = _leftover(facts.name, facts.labels)
                (removed if self._remove(facts.id, left, deadline) else remaining).append(left)
        self._reap_networks(is_live, deadline)
        return Reaped(enumerated=True, removed=tuple(removed), remaining=tuple(remaining))

    def _is_left_over(self, name: str, found: Mapping[str, str], is_live: Callable[[str], bool]) -> bool:
        if not labels.is_ours(name, found, self._host_id):
            return False
        return found.get(labels.BOOT) != self._boot or not is_live(name)

    def _remove(self, container: str, left: Leftover, deadline: float) -> bool:
        if time.monotonic() >= deadline:
            return False
        try:
            self._backend.remove(container)
        except EngineSilentError as error:
            event("reap_unconfirmed", jobId=left.job_id, container=left.name, reason=error.token)
            return False
        event("reaped_container", jobId=left.job_id, container=left.name, boot=left.boot)
        return True

    def _reap_networks(self, is_live: Callable[[str], bool], deadline: float) -> None:
        """Remove our networks that carry no job any more; what else is attached (a proxy) is detached."""
        try:
            for network in self._backend.networks({labels.HOST: self._host_id}):
                in_use = any(name.startswith(labels.NAME_PREFIX) for name in network.attached)
                left_over = self._is_left_over(network.name, network.labels, is_live)
                if left_over and not in_use and time.monotonic() < deadline:
                    self._backend.remove_network(network.id)
                    event("reaped_network", jobId=network.labels.get(labels.JOB), network=network.name)
        except EngineSilentError as error:
            # The next pass comes in a minute; no job depends on a leftover network.
            event("reaper_skipped", kind="networks", reason=error.token)


def _leftover(name: str, found: Mapping[str, str]) -> Leftover:
    return Leftover(
        name=name,
        job_id=found.get(labels.JOB),
        boot=found.get(labels.BOOT),
        scope_hash=found.get(labels.SCOPE),
    )
