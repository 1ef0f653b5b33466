"""What each action on a host is called, and what it will do, in sentences, before anybody confirms it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from dispatch.console.counts import number_of
from dispatch.console.fleet_words import jobs_wait
from dispatch.pages.fleet_host_view import Verb, drain_words
from dispatch.pages.fleet_reading import HostFacts
from hosts.names import host_queue
from hosts.rows import Presence

LABELS: Mapping[Verb, str] = {
    Verb.PAUSE: "Pause its queue",
    Verb.RESUME: "Resume its queue",
    Verb.DRAIN: "Drain",
    Verb.UNDRAIN: "Undrain",
    Verb.STOP: "Drain and stop its jobs…",
    Verb.REROUTE: "Reroute its queue",
}
_STOP_DRAINED = "Stop its jobs…"
#: What the pages of the kill switch do, too, for a queue or a host.
_SWITCH = {
    Verb.PAUSE: "admin:console_switch_pause",
    Verb.RESUME: "admin:console_switch_resume",
    Verb.STOP: "admin:console_switch_stop",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A button that leads to the page of an action, which asks before it does anything; `label` is on it."""

    verb: Verb
    url: str
    label: str

    @property
    def is_danger(self) -> bool:
        """Whether it ends what runs."""
        return self.verb is Verb.STOP


def offer(verb: Verb, host: str, *, is_drained: bool = False) -> Offer:
    """Lead to an action on a host of a valid name; one that `is_drained` is not drained by being stopped."""
    label = _STOP_DRAINED if verb is Verb.STOP and is_drained else LABELS[verb]
    if verb not in _SWITCH:
        return Offer(verb, reverse(f"admin:console_host_{verb}", args=[host]), label)
    asked = {"host": host} if verb is Verb.STOP else {"queue": host_queue(host)}
    return Offer(verb, f"{reverse(_SWITCH[verb])}?{urlencode(asked)}", label)


def effects(verb: Verb, facts: HostFacts) -> tuple[str, ...]:
    """Say what DRAIN or UNDRAIN does as the host stands now."""
    return tuple(_EFFECTS[verb](facts))


def _drain(facts: HostFacts) -> Iterator[str]:
    queue = facts.fleet.queues.get(facts.queue)
    yield f"{facts.name} takes no new job from any queue, until somebody undrains it or the drain ends."
    yield _running(facts)
    if queue:
        waits = jobs_wait(queue)
        yield f"{waits[:1].upper()}{waits[1:]} in {facts.queue} for it; a reroute moves what others can do."
    if facts.drain:
        yield f"{drain_words(facts.drain)} This takes that one's place."
    if facts.look is None or facts.look.presence is not Presence.ALIVE:
        yield "It is not alive now: when it comes back it takes no job."


def _undrain(facts: HostFacts) -> Iterator[str]:
    yield f"{facts.name} takes jobs again, from its own queue and from the shared one."
    if facts.drain:
        yield drain_words(facts.drain)
    else:
        yield "It is not drained now: there is nothing to end."
    if facts.name in facts.fleet.asked_to_stop:
        yield "A request to stop stands for it; one that came with its drain is taken back."
    if facts.fleet.pause:
        yield "The whole fleet is paused besides: nothing starts until that is ended, too."


def _running(facts: HostFacts) -> str:
    count = len(facts.entries)
    if not count:
        return "Nothing runs there now."
    return f"{number_of(count, 'job that it has goes', 'jobs that it has go')} on to the end."


_EFFECTS = {Verb.DRAIN: _drain, Verb.UNDRAIN: _undrain}
