"""The page of one host as a value: how it stands, what it runs, what it has loaded, what may be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dispatch.console.arguments import one_line
from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts, HostLook
from dispatch.console.fleet_findings import warnings
from dispatch.console.instants import span, stamp
from dispatch.console.pause_shown import about
from dispatch.pages.fleet_jobs import JobLine, job_lines
from dispatch.pages.fleet_lines import HostLine, QueueLine, host_lines, queue_line
from dispatch.pages.fleet_reading import HostFacts
from dispatch.pages.fleet_traits import LOADED, Trait, concerning, trait_of, usual_values
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
        yield drain_words(facts.drain)
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


def drain_words(flag: PauseFlag) -> str:
    """Say that it is drained: by whom, since when, until when and why."""
    return f"It is drained {one_line(about(flag, ended='undrained'))}."
