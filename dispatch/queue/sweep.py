"""Finding jobs whose owner is gone: what it had in hand goes back, what it had started fails, recorded.

Owners are judged by their beats alone (contracts 3). A process judges a peer only after it has itself
watched, uninterrupted, for as long as the silence that it judges: after an outage every beat is old.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dispatch.queue import keys
from dispatch.queue.apart import WRONG_TYPE, apart
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.scripts import Scripts
from dispatch.queue.timings import Timings
from dispatch.queue.verdicts import Entry, Lost, Verdicts, text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    import redis

    from dispatch.queue.owner import Owner

# A script asks no beat: the owner is known to be gone.
_ASK_NOBODY = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep decided, and nobody else: jobs back in their queue (RQ ids), and jobs that failed.

    `unreadable` has the queues of which something had to be left out, each with the fault's token.
    """

    put_back: tuple[str, ...] = ()
    failed: tuple[Lost, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """What a sweep under way has decided so far."""

    put_back: list[str] = field(default_factory=list)
    failed: list[Lost] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def add(self, verdict: Entry | Lost | None) -> None:
        match verdict:
            case Entry():
                self.put_back.append(text(verdict.raw_id))
            case Lost():
                self.failed.append(verdict)
            case None:
                pass

    def swept(self) -> Swept:
        return Swept(put_back=tuple(self.put_back), failed=tuple(self.failed), unreadable=self.unreadable)


class Sweeper:
    """The sweep of one worker process, for one thread; `interrupted` is for any.

    `in_hand` answers the tokens that runs of this process hold on a queue. `record` makes the bytes for a job
    that is lost with its worker, which go to this host's pending records; it must not raise, whatever the job
    is. `clock` is monotonic seconds. Ticks come more often than `timings.late`.
    """

    def __init__(
        self,
        client: redis.Redis,
        owner: Owner,
        *,
        in_hand: Callable[[str], Collection[str]],
        record: Callable[[Lost], bytes],
        timings: Timings | None = None,
        clock: Callable[[], float] = time.monotonic,
        delays: Delays = no_delay,
    ) -> None:
        self._owner = owner
        self._scripts = Scripts(client)
        self._in_hand = in_hand
        self._timings = timings or Timings()
        self._verdicts = Verdicts(
            client,
            owner.host_id,
            record=record,
            most_put_backs=self._timings.most_put_backs,
            delays=delays,
        )
        self._clock = clock
        self._watching_since = clock()
        self._looked_at_ms: int | None = None
        # Entries of our own boot that no run holds, and since when.
        self._unheld: dict[Entry, float] = {}

    def interrupted(self) -> None:
        """Hear that Valkey was away: peers could not beat, so their silence means nothing for a while."""
        self._watching_since = self._clock()

    def at_boot(self, queues: Sequence[str]) -> Swept:
        """Take over at once what older boots of this host had.

        Only under the host's worker lock, which proves them dead, and after their containers are reaped.
        """
        found = _Found()
        for queue in queues:
            with apart(queue, found.unreadable):
                in_hand, started = self._survey(queue, found, older_boots=True)
                self._put_back(self._of_older_boots(in_hand), _ASK_NOBODY, found)
                self._stall(self._of_older_boots(started), _ASK_NOBODY, found)
        return found.swept()

    def tick(self, queues: Sequence[str]) -> Swept:
        """Judge the owners of these queues' jobs, and our own entries that no run of this process holds.

        The queues need not be those that this worker drains: a host that died for good has nobody else. What
        stands in the keys of one, or of one job, keeps no other from being judged.
        """
        found = _Found()
        # What stands on a queue that is not looked at now stays unheld since when it was.
        unheld = {one: since for one, since in self._unheld.items() if one.queue not in queues}
        for queue in queues:
            with apart(queue, found.unreadable):
                unheld |= self._judge(queue, found)
        self._unheld = unheld
        return found.swept()

    def _judge(self, queue: str, found: _Found) -> dict[Entry, float]:
        """Judge one queue; answer the entries of our own boot that no run holds, and since when."""
        in_hand, started = self._survey(queue, found, older_boots=False)
        unheld = self._find_unheld(queue, in_hand + started)
        self._put_back(self._forgotten(in_hand, unheld), _ASK_NOBODY, found)
        self._stall(self._forgotten(started, unheld), _ASK_NOBODY, found)
        late, gone = self._timings.late, self._timings.gone
        self._put_back(self._of_peers(in_hand, late), _milliseconds(late), found)
        self._stall(self._of_peers(started, gone), _milliseconds(gone), found)
        return unheld

    def _survey(self, queue: str, found: _Found, *, older_boots: bool) -> tuple[list[Entry], list[Entry]]:
        """Read what may have lost its owner: in hand, and started."""
        names = keys.queue_keys(queue)
        timings = self._timings
        now_ms, in_hand, started, passed_over = self._scripts.call(
            "survey",
            (names.takers, names.started),
            (
                *(queue, keys.JOB, self._owner.boot, self._older_boots if older_boots else ""),
                *(_milliseconds(timings.late), _milliseconds(timings.gone), timings.sweep_most),
                _milliseconds(timings.forgotten),
            ),
        )
        self._notice_a_gap(now_ms)
        if passed_over:
            found.unreadable[queue] = WRONG_TYPE
        return _entries(queue, in_hand), _entries(queue, started)

    def _notice_a_gap(self, now_ms: int) -> None:
        """Count a time without looks (this process or its machine was suspended) as an interruption."""
        if self._looked_at_ms is not None and now_ms - self._looked_at_ms > _milliseconds(self._timings.late):
            self.interrupted()
        self._looked_at_ms = now_ms

    @property
    def _older_boots(self) -> str:
        return f"{self._owner.host_id}-"

    def _of_older_boots(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        return (
            one for one in entries if one.boot != self._owner.boot and one.boot.startswith(self._older_boots)
        )

    def _of_peers(self, entries: Iterable[Entry], silence: float) -> Iterator[Entry]:
        if self._clock() - self._watching_since < silence:
            return iter(())
        return (one for one in entries if one.boot != self._owner.boot)

    def _find_unheld(self, queue: str, entries: Iterable[Entry]) -> dict[Entry, float]:
        held = self._in_hand(queue)
        now = self._clock()
        return {
            one: self._unheld.get(one, now)
            for one in entries
            if one.boot == self._owner.boot and one.claim not in held
        }

    def _forgotten(self, entries: Iterable[Entry], unheld: dict[Entry, float]) -> Iterator[Entry]:
        latest = self._clock() - self._timings.grace
        return (one for one in entries if one in unheld and unheld[one] <= latest)

    def _put_back(self, entries: Iterable[Entry], silence_ms: int, found: _Found) -> None:
        # Each goes to the front, so the one taken last goes first.
        for one in reversed(list(entries)):
            with apart(one.queue, found.unreadable):
                found.add(self._verdicts.put_back(one, silence_ms))

    def _stall(self, entries: Iterable[Entry], silence_ms: int, found: _Found) -> None:
        for one in entries:
            with apart(one.queue, found.unreadable):
                found.add(self._verdicts.stall(one, silence_ms))


def _entries(queue: str, flat: Sequence[Any]) -> list[Entry]:
    """Read triples of boot, token and id, one after another."""
    return [
        Entry(queue, text(boot), token, raw_id)
        for boot, token, raw_id in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    ]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
