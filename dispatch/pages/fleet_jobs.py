"""The jobs that a host has, as its pages list them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dispatch.console.instants import ahead, span
from dispatch.pages.fleet_lines import Word
from dispatch.pages.fleet_reading import HostFacts
from dispatch.pages.fleet_traits import NOTHING
from dispatch.pages.queue_asked import token_of
from dispatch.queue.containers import Begun
from dispatch.queue.entries import Entry
from dispatch.queue.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job that the host has, or a container whose job is over (`job_id` may be blank then)."""

    job_id: str
    state: Word
    queue: str = NOTHING
    elapsed: str = NOTHING
    attempt: str = NOTHING
    container: str = NOTHING
    ends: str = NOTHING

    @property
    def token(self) -> str | None:
        """The job as the address of its own page has it; None for an id that no address can name."""
        return token_of(self.job_id) if self.job_id else None


def job_lines(facts: HostFacts) -> Iterator[JobLine]:
    """List the jobs that run, the longest first, then those in hand, then containers whose job is over."""
    containers = {one.token: one for one in facts.begun if one.token}
    now_ms = facts.fleet.now_ms
    entries = sorted(facts.entries, key=lambda one: (one.state is not State.STARTED, one.since_ms or now_ms))
    for entry in entries:
        yield _job_line(entry, containers.pop(entry.token or "", None), now_ms)
    left = set(containers)
    for one in facts.begun:
        if not one.token or one.token in left:
            yield JobLine(
                job_id=one.job_id,
                state=Word("its end is not confirmed yet", "warn"),
                container=one.name,
                ends=_ends(one, now_ms),
            )


def _job_line(entry: Entry, container: Begun | None, now_ms: int) -> JobLine:
    is_started = entry.state is State.STARTED
    elapsed = span(now_ms - entry.since_ms) if is_started and entry.since_ms else NOTHING
    return JobLine(
        job_id=entry.job_id,
        state=Word("running", "good") if is_started else Word("in hand, being checked"),
        queue=entry.queue,
        elapsed=elapsed,
        attempt=f"{entry.attempt + 1} of {max(entry.attempts, entry.attempt + 1)}",
        container=container.name if container else NOTHING,
        ends=_ends(container, now_ms) if container else NOTHING,
    )


def _ends(container: Begun, now_ms: int) -> str:
    return NOTHING if container.deadline_ms is None else ahead(container.deadline_ms, now_ms)
