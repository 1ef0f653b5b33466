"""The page of one host as a value: how it stands, what it runs, what it has loaded, what may be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dispatch.console.arguments import one_line
from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts, HostLook
from dispatch.console.fleet_findings import warnings
from dispatch.console.instants import ahead, span, stamp
from dispatch.pages.fleet_lines import (
    LOADED,
    NOTHING,
    HostLine,
    QueueLine,
    Trait,
    Word,
    concerning,
    host_lines,
    queue_line,
    trait_of,
    usual_values,
)
from dispatch.pages.fleet_reading import HostFacts
from dispatch.pages.queue_asked import token_of
from dispatch.queue.containers import Begun
from dispatch.queue.entries import Entry
from dispatch.queue.states import State
from hosts.switches import PauseFlag


class Verb(StrEnum):
    """What may be done to a host; each has a page that asks first."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    STOP = "stop"
    REROUTE = "reroute"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """What the page shows; `line` is None for a host that only its queue speaks of."""

    name: str
    at: str
    line: HostLine | None
    queue: QueueLine | None
    jobs: tuple[JobLine, ...]
    details: tuple[tuple[str, str], ...]
    loaded: Mapping[str, Trait]
    findings: tuple[Finding, ...]
    notices: tuple[str, ...]
    offers: tuple[Verb, ...]


def host_view(facts: HostFacts) -> HostView:
    """Lay the host out for its page."""
    fleet, look = facts.fleet, facts.look
    findings = warnings(fleet)
    row = look.row if look else None
    usual = usual_values(fleet, LOADED, findings)
    queue = fleet.queues.get(facts.queue)
    return HostView(
        name=facts.name,
        at=stamp(fleet.now_ms),
        line=host_lines(fleet, [look], findings)[0] if look else None,
        queue=queue_line(queue, fleet) if queue else None,
        jobs=tuple(job_lines(facts)),
        details=tuple(_details(fleet, look)),
        loaded={one.heading: trait_of(row, one, usual) for one in LOADED} if row else {},
        findings=tuple(concerning(fleet, findings).get(facts.name, ())),
        notices=tuple(_notices(facts)),
        offers=tuple(_offers(facts)),
    )


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


def _details(facts: FleetFacts, look: HostLook | None) -> Iterator[tuple[str, str]]:
    row = look.row if look else None
    if look and look.host_id:
        yield "Host id", look.host_id
    if row is None:
        return
    if row.beat_at_ms is not None:
        yield "Last beat", stamp(row.beat_at_ms)
    if row.started_at_ms is not None:
        up = span(facts.now_ms - row.started_at_ms)
        yield "Worker started", f"{stamp(row.started_at_ms)} ({up} ago)"
    yield "Queue of its own", "yes" if row.routes else "no: its name is not declared there"
    if row.cron_count is not None:
        yield "Cron schedules", str(row.cron_count)


def _notices(facts: HostFacts) -> Iterator[str]:
    for what, token in facts.unreadable.items():
        yield f"What the host runs may be more than is shown: {what} cannot be read ({token})."
    if facts.drain:
        yield f"It is drained: {flag_words(facts.drain)}."
    if facts.look is None and facts.is_known:
        yield f"No worker named {facts.name} was ever seen here; only its queue or its drain is known."


def _offers(facts: HostFacts) -> Iterator[Verb]:
    """Name the actions that make sense as it stands; each asks again before it does anything."""
    queue = facts.fleet.queues.get(facts.queue)
    if queue:
        yield Verb.RESUME if queue.pause else Verb.PAUSE
    if facts.drain or facts.name in facts.fleet.asked_to_stop:
        yield Verb.UNDRAIN
    elif facts.look:
        yield Verb.DRAIN
    if facts.look:
        yield Verb.STOP
    if queue:
        yield Verb.REROUTE


def flag_words(flag: PauseFlag) -> str:
    """Say since when a switch holds, by whom, why and until when."""
    who = f" by {one_line(flag.by)}" if flag.by else ""
    until = f", until {stamp(flag.until_ms)}" if flag.until_ms is not None else ", until somebody ends it"
    why = f": {one_line(flag.reason)}" if flag.reason else ""
    return f"since {stamp(flag.since_ms)}{who}{until}{why}"
