"""The figures at the head of the overview: who is there, what runs and waits, what came of it and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from dispatch.console.counts import number_of, total_of
from dispatch.console.fleet_facts import FleetFacts, QueueLook
from dispatch.queue.waiters import WaitReason
from hosts.rows import Presence, Roster
from runs.rollups import Totals
from runs.wording import amount, dollars

_UNKNOWN = "?"
_FLEET = "admin:console_fleet"
_QUEUE = "admin:console_queue"
_RUNS = "admin:runs_run_changelist"
_ASLEEP = "until a cap, a window or a folder is free"
_BUSY = "busy"
_SLEEPS: Mapping[str, str] = {
    WaitReason.CAP: "for a cap",
    WaitReason.PAUSE_WINDOW: "for a pause window",
    _BUSY: "for a busy folder or repository",
    WaitReason.RETRY: "for another try",
}
_INSIGHTS = "admin:console_insights"


@dataclass(frozen=True, slots=True)
class Card:
    """One figure; `place` and `query` are the page that it leads to, `tone` how good `about` is."""

    name: str
    value: str
    about: str = ""
    tone: str = ""
    place: str = ""
    query: str = ""


def fleet_cards(facts: FleetFacts) -> list[Card]:
    """Lay out what stands in Valkey now."""
    queues = list(facts.queues.values())
    running = total_of([queue.active for queue in queues])
    return [
        _hosts(facts),
        Card("Running", running, _slots(facts), place=_QUEUE, query="section=running"),
        _waiting(facts, queues),
        _deferred(queues),
        Card(
            "Held",
            total_of([queue.held for queue in queues]),
            "until a condition is met",
            place=_QUEUE,
            query="section=held",
        ),
    ]


def day_cards(day: Totals, since: datetime) -> list[Card]:
    """Lay out the last 24 hours, of which `since` begins the first; jobs are counted once they end for good.

    Each leads to where those are; failures that are tried again stand in the list besides.
    """
    runs, tokens = number_of(day.runs, "run", "runs"), f"{amount(day.tokens_total)} tokens"
    tone = "bad" if day.failed else ""
    begins = f"since {since:%m-%d %H:%M} UTC"
    failed = urlencode({"outcome": "failed", "since": f"{since:%Y-%m-%d %H:%M}"})
    return [
        Card("Failed in 24 h", amount(day.failed), f"of {runs} {begins}", tone, _RUNS, failed),
        Card("Cost in 24 h", dollars(day.cost), f"{tokens} {begins}", place=_INSIGHTS, query="span=24h"),
    ]


def _hosts(facts: FleetFacts) -> Card:
    if not isinstance(facts.roster, Roster):
        about = f"the registry cannot be read ({facts.roster.reason})"
        return Card("Hosts alive", _UNKNOWN, about, "bad", _FLEET)
    counts = Counter(host.presence for host in facts.hosts)
    alive, late, gone = (counts[one] for one in (Presence.ALIVE, Presence.LATE, Presence.GONE))
    drained = sum(host.draining and host.presence is not Presence.GONE for host in facts.hosts)
    others = ((drained, "drained"), (late, "late"), (gone, "gone"))
    told = [f"{count} {word}" for count, word in others if count]
    tone = "bad" if not alive else "warn" if late or drained else ""
    return Card("Hosts alive", str(alive), ", ".join(told), tone, _FLEET)


def _slots(facts: FleetFacts) -> str:
    used, total = facts.slots
    return f"{used:,} of {total:,} slots used"


def _deferred(queues: list[QueueLook]) -> Card:
    """Tell for what they sleep, where every queue tells it of all its jobs."""
    value = total_of([queue.deferred for queue in queues])
    counts: Counter[str] = Counter()
    for queue in queues:
        counts.update(queue.put_off)
        counts[_BUSY] += max(0, (queue.deferred or 0) - sum(queue.put_off.values()))
    is_told = all(queue.put_off for queue in queues if queue.deferred) and counts.total()
    about = ", ".join(f"{counts[one]:,} {words}" for one, words in _SLEEPS.items() if counts[one])
    return Card("Deferred", value, about if is_told else _ASLEEP, place=_QUEUE, query="section=deferred")


def _waiting(facts: FleetFacts, queues: list[QueueLook]) -> Card:
    paused = sum(queue.waiting or 0 for queue in queues if facts.pause or queue.pause)
    stuck = sum(queue.waiting or 0 for queue in queues if not facts.is_taken_from(queue))
    held_up = [
        f"{count:,} of them {where}"
        for count, where in ((paused, "in paused queues"), (stuck, "in queues without a worker"))
        if count
    ]
    about, tone = (", ".join(held_up), "warn") if held_up else ("in line for a slot", "")
    value = total_of([queue.waiting for queue in queues])
    return Card("Waiting", value, about, tone, _QUEUE, "section=waiting")
