"""What each action on a host is called, and what it will do, in sentences, before anybody confirms it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dispatch.console.counts import number_of
from dispatch.pages.fleet_host_view import Verb, flag_words
from dispatch.pages.fleet_lines import paused_words
from dispatch.pages.fleet_reading import HostFacts
from dispatch.queue.states import State
from hosts.rows import Presence

LABELS: Mapping[Verb, str] = {
    Verb.PAUSE: "Pause its queue",
    Verb.RESUME: "Resume its queue",
    Verb.DRAIN: "Drain",
    Verb.UNDRAIN: "Undrain",
    Verb.STOP: "Stop its jobs",
    Verb.REROUTE: "Reroute its queue",
}
#: Those that hold until they are ended, or for as long as somebody says.
LASTING = frozenset({Verb.PAUSE, Verb.DRAIN})


def effects(verb: Verb, facts: HostFacts) -> tuple[str, ...]:
    """Say what the action does as the host stands now."""
    return tuple(_EFFECTS[verb](facts))


def _pause(facts: HostFacts) -> Iterator[str]:
    queue = facts.fleet.queues.get(facts.queue)
    yield f"Nothing starts any more from {facts.queue}, until somebody resumes it or the pause ends."
    if queue:
        yield f"{number_of(queue.waiting or 0, 'job waits', 'jobs wait')} there now."
    if queue and queue.pause:
        yield f"It is {paused_words(queue.pause, facts.fleet.now_ms)} already: this takes that one's place."
    yield f"{_running(facts)} {facts.name} still takes jobs from the shared queue."


def _resume(facts: HostFacts) -> Iterator[str]:
    queue = facts.fleet.queues.get(facts.queue)
    waiting = queue.waiting if queue else None
    yield f"{number_of(waiting or 0, 'job', 'jobs')} of {facts.queue} may start again."
    if queue and queue.pause:
        yield f"Now it is {paused_words(queue.pause, facts.fleet.now_ms)}."
    else:
        yield "It has no pause of its own now: there is nothing to end."
    if facts.fleet.pause:
        yield "The whole fleet is paused besides: nothing starts until that is ended, too."


def _drain(facts: HostFacts) -> Iterator[str]:
    queue = facts.fleet.queues.get(facts.queue)
    yield f"{facts.name} takes no new job from any queue, until somebody undrains it or the drain ends."
    yield _running(facts)
    if queue:
        yield f"{number_of(queue.jobs, 'job', 'jobs')} of {facts.queue} wait for it; a reroute moves them."
    if facts.drain:
        yield f"It is drained {flag_words(facts.drain)}. This takes that one's place."
    if facts.look is None or facts.look.presence is not Presence.ALIVE:
        yield "It is not alive now: when it comes back it takes no job."


def _undrain(facts: HostFacts) -> Iterator[str]:
    yield f"{facts.name} takes jobs again, from its own queue and from the shared one."
    if facts.drain:
        yield f"It is drained {flag_words(facts.drain)}."
    else:
        yield "It is not drained now: there is nothing to end."
    if facts.name in facts.fleet.asked_to_stop:
        yield "A request to stop stands for it; one that came with its drain is taken back."
    if facts.fleet.pause:
        yield "The whole fleet is paused besides: nothing starts until that is ended, too."


def _stop(facts: HostFacts) -> Iterator[str]:
    started = sum(entry.state is State.STARTED for entry in facts.entries)
    yield f"{facts.name} is drained: it takes no new job until somebody undrains it."
    yield f"{number_of(started, 'job that runs', 'jobs that run')} there will be stopped, not run again."
    yield f"{number_of(len(facts.begun), 'container', 'containers')} must be confirmed as gone by its engine."


def _reroute(facts: HostFacts) -> Iterator[str]:
    yield f"What waits on {facts.queue} goes to hosts that can do it; what runs is left alone."


def _running(facts: HostFacts) -> str:
    count = len(facts.entries)
    if not count:
        return "Nothing runs there now."
    return f"{number_of(count, 'job that it has goes', 'jobs that it has go')} on to the end."


_EFFECTS = {
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
    Verb.DRAIN: _drain,
    Verb.UNDRAIN: _undrain,
    Verb.STOP: _stop,
    Verb.REROUTE: _reroute,
}
