"""Reading a whole queue page by page while its jobs go on.

What is promised to whoever follows the pages to the end: a job that is in the queue all that time is on
exactly one of them, whether it waits, is taken, put back, put off, woken or begun meanwhile, and whatever is
cancelled before it. Each is shown as it stands when its page is read. One that comes or ends meanwhile may be
on a page or not; one that goes to another queue leaves this one.

Nothing is kept between two pages: each looks at the ids of the whole queue at one instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dispatch.queue import hashes, keys
from dispatch.queue.chunks import chunks
from dispatch.queue.entries import NAMES, Entry, beats_of, number, read_entry
from dispatch.queue.listing import Listing, Section
from dispatch.queue.scripts import Scripts
from dispatch.queue.selecting import Standing
from dispatch.queue.states import State
from dispatch.queue.turns import Turn, is_between, last_of_page
from dispatch.queue.waiters import WaitReason

if TYPE_CHECKING:
    import redis

_TAKER = NAMES.index("taker")
# Jobs that wait and sleep. Nobody else is answered while the ids are listed: some 25 ms for so many.
MOST = 50_000
# Behind every place in a line.
_NOWHERE = 10**9


class TooManyError(Exception):
    """More jobs wait and sleep in a queue than are read page by page; says so in a sentence for a person."""

    def __init__(self, queue: str, count: int) -> None:
        super().__init__(f"{count} jobs wait and sleep in {queue}, and at most {MOST} are read page by page.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some jobs of a queue, laid out and counted as all of them are; `last` is their last turn.

    It is None at the end. A section may be short, even empty, and have more on a later page.
    """

    listing: Listing
    last: Turn | None


@dataclass(frozen=True, slots=True)
class _Found:
    """Where an id stood when all were listed; `place` counts from 1 in line, None elsewhere."""

    standing: Standing
    place: int | None = None


def read_page(client: redis.Redis, queue: str, *, after: Turn | None, limit: int) -> Page:
    """Read the page after this turn (None: the first), at most `limit` jobs of each section.

    Nobody else is answered while the ids are listed, some 5 ms for 10,000. `TooManyError` above MOST; raises
    redis-py's errors, too.
    """
    names = keys.queue_keys(queue)
    answer = Scripts(client).call(
        "members",
        (names.jobs, names.scheduled, names.started, names.takers, keys.waiters(queue, WaitReason.WAIT)),
        (queue, keys.JOB, MOST),
    )
    if len(answer) == 1:
        raise TooManyError(queue, *answer)
    now_ms, boots, running, *others = answer
    runs, line, held, asleep = (text.split(b"\n") if text else [] for text in (running, *others))
    found = _found(runs, line, held, asleep)
    turns = _turns(client, list(found))
    by_section = ([turns[one] for one in found if found[one].standing is each] for each in Standing)
    last = last_of_page(by_section, after=after, limit=limit)
    shown = [one for one in _sleepers_first(found) if is_between(turns[one], after, last)]
    count_held = min(len(held), len(asleep))
    totals = {
        Standing.RUNNING: len(runs),
        Standing.WAITING: len(line),
        Standing.DEFERRED: len(asleep) - count_held,
        Standing.HELD: count_held,
    }
    entries = _entries(client, queue, {one: found[one] for one in shown})
    return Page(listing=_listing(queue, now_ms, boots, totals, entries), last=last)


def _found(
    runs: Sequence[bytes], line: Sequence[bytes], held: Sequence[bytes], asleep: Sequence[bytes]
) -> dict[bytes, _Found]:
    """Give each id one section, in the order of `dispatch.queue.listing`; only its hash makes it a job's."""
    found = dict.fromkeys(runs, _Found(Standing.RUNNING))
    for place, one in enumerate(line, 1):
        found.setdefault(one, _Found(Standing.WAITING, place))
    sleeping = set(asleep)
    for one in held:
        if one in sleeping:
            found.setdefault(one, _Found(Standing.HELD))
    for one in asleep:
        found.setdefault(one, _Found(Standing.DEFERRED))
    # Nobody can ask for a job of no id.
    found.pop(b"", None)
    return found


def _sleepers_first(found: Mapping[bytes, _Found]) -> list[bytes]:
    """Order the ids so that who falls asleep while the page is read comes after those that slept."""
    return sorted(found, key=lambda one: found[one].standing in {Standing.RUNNING, Standing.WAITING})


def _turns(client: redis.Redis, raw_ids: Sequence[bytes]) -> Mapping[bytes, Turn]:
    """Ask when each was first queued: not at one instant, since it never changes."""
    with client.pipeline(transaction=False) as pipeline:
        scripts = Scripts(pipeline)
        for some in chunks(raw_ids):
            scripts.call("first_queued", (), (keys.JOB, b"\n".join(some)))
        answers: list[bytes] = pipeline.execute()
    values = [value for answer in answers for value in answer.split(b"\n")]
    return {
        raw_id: Turn.of(number(value.decode()) or 0, raw_id)
        for raw_id, value in zip(raw_ids, values, strict=True)
    }


def _entries(
    client: redis.Redis, queue: str, found: Mapping[bytes, _Found]
) -> Iterator[tuple[Standing, Entry]]:
    for raw_id, values in hashes.read(client, list(found), NAMES):
        before = found[raw_id]
        # Who has a taker was taken since its place was read.
        place = None if values[_TAKER] else before.place
        entry = read_entry(queue, raw_id, values, position=place)
        if entry.state is State.IN_HAND and not values[_TAKER] and before.standing is not Standing.RUNNING:
            # Came into the line since then: it is in nobody's hand, and its place was not read.
            entry = replace(entry, state=State.QUEUED)
        standing = _standing(entry, before.standing)
        if standing is not None:
            yield standing, entry


def _standing(entry: Entry, before: Standing) -> Standing | None:
    """Say where a job stands by its hash, None where that is nowhere any more."""
    match entry.state:
        case State.STARTED | State.IN_HAND:
            return Standing.RUNNING
        case State.QUEUED:
            return Standing.WAITING
        case State.SCHEDULED if before in {Standing.DEFERRED, Standing.HELD}:
            return before
        case State.SCHEDULED:
            return Standing.HELD if entry.reason == WaitReason.WAIT else Standing.DEFERRED
        case _:
            return None


def _listing(
    queue: str,
    now_ms: int,
    boots: Sequence[bytes],
    totals: Mapping[Standing, int],
    entries: Iterable[tuple[Standing, Entry]],
) -> Listing:
    """Lay the entries out, each section in its own order; who has just come to stand there is last."""
    jobs: dict[Standing, list[Entry]] = {one: [] for one in Standing}
    for standing, entry in entries:
        jobs[standing].append(entry)
    jobs[Standing.RUNNING].sort(key=lambda one: one.since_ms or now_ms)
    jobs[Standing.WAITING].sort(key=lambda one: one.position or _NOWHERE)
    sections: dict[str, Any] = {
        one.value: Section(total=totals[one], entries=tuple(jobs[one])) for one in Standing
    }
    return Listing(queue=queue, now_ms=now_ms, beats=beats_of(boots), **sections)
