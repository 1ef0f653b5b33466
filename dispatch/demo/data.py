"""The demo with data: a fleet at work and its past, for whoever wants to see the console's pages filled."""

from __future__ import annotations

from datetime import UTC, datetime

from dispatch.demo import fleet, past, work
from dispatch.demo.stage import Stage
from dispatch.demo.telling import Teller


def play(here: Stage, teller: Teller) -> Stage:
    """Set it up; answer the host whose console has it all. Raises OperationalError."""
    now = datetime.now(UTC)
    teller.step(f"{past.DAYS} days of invented runs, and a Valkey server of its own")
    ours = fleet.made(here, now)
    first = ours.hosts[fleet.FIRST]
    found = past.records(now, past.scopes(str(here.folder)))
    filling = first.start("past", "demo", "--fill", now.isoformat())
    fleet.spend(ours, found, now)
    teller.say(f"{len(found)} runs; what they spent stands in the counters of the caps.")
    teller.step("Three workers with names, slots and state directories of their own")
    until_they_take_jobs = ours.start_workers()
    until_they_take_jobs()
    teller.say(", ".join(f"{name} with {slots} slots" for name, slots in past.HOSTS.items()))
    teller.step("Jobs that run, wait, sleep and are held; a paused queue, a drained host, a lost schedule")
    work.put_off(ours, now)
    work.at_work(ours, now)
    work.tear_down(ours, found)
    here.until_over("past", filling)
    ours.client.close()
    return first
