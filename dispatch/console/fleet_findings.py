"""What is wrong in a fleet, or may be: one set of rules for `fleet`, `doctor` and pages (Q 13, "fleet").

Everything here is a warning: the registry carries no authority, and a fleet with any of these still works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from dispatch.console.findings import Finding
from dispatch.console.fleet_differences import DIFFERENCES, differing
from dispatch.console.fleet_doubles import SHARED_NAME, SHARED_STATE, doubles
from dispatch.console.fleet_facts import FleetFacts, Pause, QueueLook, StopAsked
from dispatch.console.fleet_words import (
    AREA,
    blind_to,
    clipped,
    jobs_wait,
    named,
    skew_words,
    was_cut_off,
)
from dispatch.console.instants import span
from dispatch.console.pause_shown import ended_by, who_and_why
from hosts.keys import FLEET
from hosts.names import SHARED_QUEUE
from hosts.rows import SKEW_TOLD_MS, Presence, Roster

WITHOUT_QUEUE = "host-without-queue"
#: All that the rules can find: where `warnings` does not say one of these, it is not so.
CHECKS = frozenset(
    {
        *("host-late", "clock-skew", "host-blind", "host-was-cut-off", WITHOUT_QUEUE, "queue-without-worker"),
        *("queue-without-host", "drained-queue-waits", "partly-paused", "stop-stands", "records-pending"),
        *("registry-unreadable", SHARED_NAME, SHARED_STATE, *DIFFERENCES),
    }
)
# Of what is told one by one.
_MOST_TOLD = 4
_REROUTE = (
    "`manage.py reroute {host}` moves what waits to where it can run, a job on a folder only if you say that"
    " the folder is the same there"
)


def warnings(facts: FleetFacts) -> tuple[Finding, ...]:
    """Apply every rule, those of single hosts first."""
    return tuple(finding for rule in _RULES for finding in rule(facts))


def _silent(facts: FleetFacts) -> Iterator[Finding]:
    for host in facts.hosts:
        if host.row is None or host.presence is Presence.ALIVE:
            continue
        said = (
            "has no readable beat" if host.stale_ms is None else f"has not beaten for {span(host.stale_ms)}"
        )
        jobs = host.queue if host.queue and host.queue.jobs else None
        waits = f", and {jobs_wait(jobs)} in its queue" if jobs else ""
        fix = "Look at that machine and its way to Valkey."
        yield AREA.warning(
            "host-late",
            f"{host.name} {said}{waits}",
            f"{fix} If it stays away, {_REROUTE.format(host=host.name)}." if jobs else fix,
            hosts=(host.name,),
        )


def _skewed(facts: FleetFacts) -> Iterator[Finding]:
    for row in facts.rows:
        skew_ms = row.skew_ms or 0
        if abs(skew_ms) > SKEW_TOLD_MS:
            yield AREA.warning(
                "clock-skew",
                f"the clock of {row.name} is {skew_words(skew_ms)} Valkey's",
                "Set that machine's clock, by NTP for example: the instants in its records are wrong.",
                hosts=(row.name,),
            )


def _blind(facts: FleetFacts) -> Iterator[Finding]:
    for row in facts.rows:
        blind = blind_to(row)
        if blind:
            yield AREA.warning(
                "host-blind",
                f"{row.name} cannot see, or could not a moment ago: {clipped(blind)}",
                "It takes nothing new while it cannot: `manage.py doctor` on that machine says more.",
                hosts=(row.name,),
            )


def _cut_off(facts: FleetFacts) -> Iterator[Finding]:
    for row in facts.rows:
        if was_cut_off(row):
            is_back = row.presence is Presence.ALIVE and not row.draining and not blind_to(row)
            again = "; it takes jobs again" if is_back else ""
            yield AREA.warning(
                "host-was-cut-off",
                f"{row.name} was cut off from Valkey for a while until a moment ago{again}",
                "If that repeats, look at that machine's network and its way to Valkey.",
                hosts=(row.name,),
            )


def _hosts_without_queue(facts: FleetFacts) -> Iterator[Finding]:
    """Find the hosts whose jobs others may take, and the other way round; alone, a host takes its own."""
    live = facts.known.live
    bare = tuple(sorted(row.name for row in live if not row.routes))
    if bare and len(live) > 1:
        have = "has no queue of its own" if len(bare) == 1 else "have no queue of their own"
        yield AREA.warning(
            WITHOUT_QUEUE,
            f"{named(bare)} {have}: a job typed there goes to {SHARED_QUEUE}, and any host may take it",
            "Set PI_WORKER_NAME there, for the worker and for `manage.py run`, and restart the worker.",
            hosts=bare,
        )


def _queues_without_worker(facts: FleetFacts) -> Iterator[Finding]:
    """Find the queues whose jobs nobody will take; that of a silent host is told with the host."""
    rows = {row.name: row for row in facts.known.hosts}
    for queue in facts.queues.values():
        host, row = queue.host, rows.get(queue.host or "")
        if not queue.jobs or facts.is_taken_from(queue) or (row and row.presence is not Presence.ALIVE):
            continue
        if host is None:
            yield AREA.warning(
                "queue-without-worker",
                f"{jobs_wait(queue)} in {queue.name}, and no worker takes from it",
                "Start one with `manage.py runworker`.",
            )
        elif row is None or not row.routes:
            yield _orphaned(facts, queue, host, is_there=row is not None)


def _orphaned(facts: FleetFacts, queue: QueueLook, host: str, *, is_there: bool) -> Finding:
    if is_there:
        why = f"{host} drains no queue of its own: its name is not declared there"
    elif host in facts.gone:
        drained = ", drained" if host in facts.drained else ""
        why = f"{host} has been gone for {span(facts.silence_ms(facts.gone[host]))}{drained}"
    elif not isinstance(facts.roster, Roster):
        why = "no worker takes from it"
    else:
        why = f"no host named {host} is there"
    undrain = f", and `manage.py undrain {host}`" if host in facts.drained else ""
    return AREA.warning(
        "queue-without-host",
        f"{jobs_wait(queue)} in {queue.name}, and {why}",
        f"Start its worker, with PI_WORKER_NAME={host}{undrain}, or {_REROUTE.format(host=host)}.",
        hosts=(host,),
    )


def _drained(facts: FleetFacts) -> Iterator[Finding]:
    for host in facts.hosts:
        if host.row and host.row.draining and host.queue and host.queue.jobs:
            yield AREA.warning(
                "drained-queue-waits",
                f"{host.name} is drained, and {jobs_wait(host.queue)} in its queue",
                f"`manage.py undrain {host.name}` lets it take them, or {_REROUTE.format(host=host.name)}.",
                hosts=(host.name,),
            )


def _partly_paused(facts: FleetFacts) -> Iterator[Finding]:
    paused = [queue.name for queue in facts.queues.values() if queue.pause]
    if facts.pause is None and 0 < len(paused) < len(facts.queues):
        are, which = ("is", paused[0]) if len(paused) == 1 else ("are", "QUEUE")
        yield AREA.warning(
            "partly-paused",
            f"{len(paused)} of {len(facts.queues)} queues {are} paused: {named(paused)}",
            f"{ended_by(which)} ends it for a queue; `manage.py pause` pauses all of them.",
        )


def _stops(facts: FleetFacts) -> Iterator[Finding]:
    """Tell standing requests, those of one command together."""

    def asked(stop: StopAsked) -> tuple[int, str, str]:
        return stop.at_ms or 0, stop.by, stop.reason

    for (at_ms, by, reason), stops in groupby(sorted(facts.stops, key=asked), key=asked):
        hosts = tuple(stop.host for stop in stops)
        ago = f", made {span(facts.now_ms - at_ms)} ago" if at_ms else ""
        yield AREA.warning(
            "stop-stands",
            f"a request to stop stands for {named(hosts)}{ago}{who_and_why(Pause(by=by, reason=reason))}",
            f"{ended_by(FLEET)} takes it back with the fleet's pause, `manage.py undrain H` that of"
            " `stop --host`.",
            hosts=hosts,
        )


def _unwritten_records(facts: FleetFacts) -> Iterator[Finding]:
    for name, host in facts.gone.items():
        count = facts.pending.get(host.host_id, 0)
        if count:
            yield AREA.warning(
                "records-pending",
                f"{count} {'record waits' if count == 1 else 'records wait'} for {name}, which has been gone"
                f" for {span(facts.silence_ms(host))}",
                "Start its worker, which writes them; an hour after its last beat another host does.",
                hosts=(name,),
            )


def _unreadable(facts: FleetFacts) -> Iterator[Finding]:
    found = facts.known.unreadable
    if found:
        entries = "an entry" if len(found) == 1 else f"{len(found)} entries"
        told = "; ".join(f"{one.shown} {one.why}" for one in found[:_MOST_TOLD])
        more = " …" if len(found) > _MOST_TOLD else ""
        yield AREA.warning(
            "registry-unreadable",
            f"{entries} of the registry cannot be read: {told}{more}",
            "Find out who writes to this Valkey; `fleet` lists them, nothing is decided by them.",
        )


_RULES: tuple[Callable[[FleetFacts], Iterator[Finding]], ...] = (
    doubles,
    _silent,
    _skewed,
    _blind,
    _cut_off,
    _hosts_without_queue,
    _queues_without_worker,
    _drained,
    _partly_paused,
    _stops,
    _unwritten_records,
    differing,
    _unreadable,
)
