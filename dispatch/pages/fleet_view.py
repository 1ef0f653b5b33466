"""The page of the fleet as one value: figures, the hosts asked for, other queues, what is amiss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dispatch.console.counts import total_of
from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts, HostLook, QueueLook
from dispatch.console.fleet_findings import warnings
from dispatch.console.instants import stamp
from dispatch.console.pause_shown import in_short
from dispatch.pages.fleet_lines import HostLine, QueueLine, host_lines, queue_line
from dispatch.pages.fleet_traits import concerning
from hosts.rows import Presence, Unreachable, UnreadableRow

# More rows than this help nobody, and each browser asks for them every few seconds.
MOST_SHOWN = 200
LONGEST_SEARCH = 64
LOOK_AFTER = "look-after"
#: What `show` may ask for, and how that is called.
CHOICES: Mapping[str, str] = {
    "": "all hosts",
    Presence.ALIVE.value: "alive",
    Presence.LATE.value: "late",
    Presence.GONE.value: "gone",
    LOOK_AFTER: "to look after",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which hosts a person wants to see: a part of their names, and one of CHOICES."""

    search: str = ""
    show: str = ""

    @classmethod
    def of(cls, search: str, show: str) -> Wanted:
        """Take what an address says; what is not understood is as if it were not there."""
        return cls(search.strip()[:LONGEST_SEARCH], show if show in CHOICES else "")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure at the head of the page; `show` is the choice that lists what it counts, blank for none."""

    name: str
    value: str
    level: str = ""
    show: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """What the page shows. `more` is how many hosts that were asked for are not among `hosts`."""

    at: str
    figures: tuple[Figure, ...]
    hosts: tuple[HostLine, ...]
    more: int
    known: int
    queues: tuple[QueueLine, ...]
    notices: tuple[str, ...]
    findings: tuple[Finding, ...]
    unreadable: tuple[UnreadableRow, ...]


def fleet_view(facts: FleetFacts, wanted: Wanted) -> FleetView:
    """Lay the fleet out for the page."""
    findings = warnings(facts)
    named = frozenset(concerning(facts, findings))
    chosen = [host for host in facts.hosts if _is_wanted(host, wanted, named)]
    return FleetView(
        at=stamp(facts.now_ms),
        figures=tuple(_figures(facts, named, len(findings))),
        hosts=host_lines(facts, chosen[:MOST_SHOWN], findings),
        more=max(0, len(chosen) - MOST_SHOWN),
        known=len(facts.hosts),
        queues=tuple(queue_line(queue, facts) for queue in _others(facts)),
        notices=tuple(_notices(facts)),
        findings=findings,
        unreadable=facts.known.unreadable[:MOST_SHOWN],
    )


def _is_wanted(host: HostLook, wanted: Wanted, named: frozenset[str]) -> bool:
    if wanted.search.lower() not in host.name.lower():
        return False
    if wanted.show == LOOK_AFTER:
        return host.name in named
    return wanted.show in ("", host.presence.value)


def _figures(facts: FleetFacts, named: frozenset[str], findings: int) -> Iterator[Figure]:
    counts = Counter(host.presence for host in facts.hosts)
    for presence, level in ((Presence.ALIVE, "good"), (Presence.LATE, "warn"), (Presence.GONE, "bad")):
        count = counts[presence]
        yield Figure(f"Hosts {presence.value}", str(count), level if count else "", presence.value)
    used, total = facts.slots
    yield Figure("Slots used", f"{used} of {total}")
    queues = facts.queues.values()
    yield Figure("Jobs waiting", total_of([queue.waiting for queue in queues]))
    asleep = [count for queue in queues for count in (queue.deferred, queue.held)]
    yield Figure("Deferred or held", total_of(asleep))
    yield Figure("To look after", str(findings), "warn" if findings else "", LOOK_AFTER if named else "")


def _others(facts: FleetFacts) -> Iterator[QueueLook]:
    """Find the queues that stand beside no host: the shared one, and those of hosts that nobody knows."""
    theirs = {host.queue.name for host in facts.hosts if host.queue}
    return (queue for queue in facts.queues.values() if queue.name not in theirs)


def _notices(facts: FleetFacts) -> Iterator[str]:
    if isinstance(facts.roster, Unreachable):
        yield f"Which hosts there are cannot be told ({facts.roster.reason}). The queues are shown."
    if facts.pause:
        yield f"The whole fleet is {in_short(facts.pause, facts.now_ms)}."
