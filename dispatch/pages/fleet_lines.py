"""The fleet as its page shows it: a line a host, out of the facts that `manage.py fleet` tells.

Levels are the console's colours (`good`, `warn`, `bad`, blank); each stands beside a word that says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts, HostLook, QueueLook
from dispatch.console.fleet_words import blind_to, clipped, skew_words, was_cut_off
from dispatch.console.instants import span
from dispatch.console.pause_shown import in_short
from dispatch.pages.fleet_traits import NOTHING, TRAITS, Trait, concerning, trait_of, usual_values
from hosts.names import in_alphabet
from hosts.rows import SKEW_TOLD_MS, HostRow, Presence

_UNREADABLE = "?"
_LEVELS: Mapping[Presence, str] = {Presence.ALIVE: "good", Presence.LATE: "warn", Presence.GONE: "bad"}


@dataclass(frozen=True, slots=True)
class Word:
    """A short text with its level."""

    text: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many slots are used; `used` and `total` are None where the host does not say both."""

    text: str = NOTHING
    used: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue; figures as texts, `?` for one that cannot be read. `host` may be visited."""

    name: str
    host: str | None
    waiting: str
    deferred: str
    held: str
    states: tuple[Word, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLine:
    """One host. `traits` by their headings; `warnings` is how many findings speak of it."""

    name: str
    presence: Word
    beat: str
    skew: Word
    states: tuple[Word, ...]
    slots: Slots
    queue: QueueLine | None
    traits: Mapping[str, Trait]
    caps: tuple[str, ...]
    warnings: int


def host_lines(
    facts: FleetFacts, hosts: Sequence[HostLook], findings: Sequence[Finding]
) -> tuple[HostLine, ...]:
    """Describe these hosts; differences are told against the whole fleet."""
    usual = usual_values(facts, TRAITS, findings)
    concern = concerning(facts, findings)
    return tuple(_host_line(facts, host, usual, len(concern.get(host.name, ()))) for host in hosts)


def _host_line(facts: FleetFacts, host: HostLook, usual: Mapping[str, str | None], warnings: int) -> HostLine:
    row = host.row
    return HostLine(
        name=host.name,
        presence=Word(host.presence.value, _LEVELS[host.presence]),
        beat=NOTHING if host.stale_ms is None else f"{span(host.stale_ms)} ago",
        skew=_skew(row),
        states=tuple(_states(host, facts)),
        slots=_slots(row),
        queue=queue_line(host.queue, facts) if host.queue else None,
        traits={one.heading: trait_of(row, one, usual) for one in TRAITS},
        caps=tuple(sorted(row.caps)) if row else (),
        warnings=warnings,
    )


def _skew(row: HostRow | None) -> Word:
    if row is None or row.skew_ms is None:
        return Word(NOTHING)
    if abs(row.skew_ms) > SKEW_TOLD_MS:
        return Word(f"{skew_words(row.skew_ms)} Valkey's", "warn")
    return Word(f"{round(row.skew_ms / 1000):+d} s")


def _slots(row: HostRow | None) -> Slots:
    if row is None or (row.slots_used is None and row.concurrency is None):
        return Slots()
    used, total = (_UNREADABLE if one is None else str(one) for one in (row.slots_used, row.concurrency))
    text = f"{used} of {total}"
    if row.slots_used is None or not row.concurrency:
        return Slots(text)
    return Slots(text, min(row.slots_used, row.concurrency), row.concurrency)


def _states(host: HostLook, facts: FleetFacts) -> Iterator[Word]:
    row = host.row
    if host.draining:
        yield Word("drained", "warn")
    if host.name in facts.asked_to_stop:
        yield Word("asked to stop", "warn")
    if row and blind_to(row):
        yield Word(f"blind ({clipped(blind_to(row))})", "bad")
    if row and was_cut_off(row):
        yield Word("was cut off", "warn")


def queue_line(queue: QueueLook, facts: FleetFacts) -> QueueLine:
    """Describe one queue, its own pause included."""
    waiting, deferred, held = (
        _UNREADABLE if one is None else f"{one:,}" for one in (queue.waiting, queue.deferred, queue.held)
    )
    is_host = queue.host is not None and in_alphabet(queue.host)
    return QueueLine(
        queue.name,
        queue.host if is_host else None,
        waiting,
        deferred,
        held,
        tuple(_queue_states(queue, facts)),
    )


def _queue_states(queue: QueueLook, facts: FleetFacts) -> Iterator[Word]:
    if queue.pause:
        yield Word(in_short(queue.pause, facts.now_ms), "warn")
    if not facts.is_taken_from(queue):
        yield Word("no worker takes from it", "bad" if queue.jobs else "")
