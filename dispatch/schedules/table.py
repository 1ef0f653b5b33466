"""One queue's table of schedules in Valkey: read, brought in line with a file, changed by hand.

Each change is one script that does all or nothing, and nothing when somebody changed what it was worked out
from; then it is worked out anew. Raises redis-py's errors; may be repeated after a lost answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from redis.exceptions import ResponseError

from dispatch.instants import instant_of
from dispatch.money.ledger import valkey_now
from dispatch.schedules import changes, definition, keys, notes, remembered
from dispatch.schedules.changes import Changes, Instants, Seen, shown
from dispatch.schedules.notes import whole_ms
from dispatch.schedules.scripts import text_of
from hosts import keys as hosts_keys
from hosts.faults import token_of
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.errors import ConfigurationError, OperationalError

if TYPE_CHECKING:
    import redis

    from dispatch.schedules.definition import Schedule

_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """One schedule of a table. `definition` is its canonical text, '' when it is not installed: torn down.

    `next_ms`: its next instant, None when its pattern has ended. `since_ms`: when it was put in, or its
    pattern or zone changed.
    """

    definition: str
    next_ms: int | None = None
    since_ms: int | None = None
    fired: notes.Acted | None = None
    torn: notes.Torn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """The ids that the table has now, that left it, and that stay out of it: torn down as they are."""

    installed: tuple[str, ...]
    removed: tuple[str, ...]
    torn: tuple[str, ...]


def read_tables(client: redis.Redis, queues: Sequence[str]) -> Mapping[str, Mapping[str, Resident] | str]:
    """Read the tables of these queues in one go.

    In the place of one with a key that cannot be read stands a token. Raises VALKEY_FAULTS.
    """
    with client.pipeline(transaction=False) as pipeline:
        for queue in queues:
            for key in (keys.definitions, keys.since, keys.fired, keys.torn):
                pipeline.hgetall(key(queue))
            pipeline.zrange(keys.upcoming(queue), 0, -1, withscores=True)
        found = pipeline.execute(raise_on_error=False)
    return {queue: _residents(found[at * 5 : at * 5 + 5]) for at, queue in enumerate(queues)}


class Table:
    """The schedules of one queue. Safe for threads."""

    def __init__(self, client: redis.Redis, queue: str) -> None:
        self.queue = queue
        self._client = client
        self._instants = Instants()
        self._apply = client.register_script(text_of("apply"))

    def resident(self) -> Mapping[str, Resident]:
        """Read all: by id what is installed, or was torn down. ResponseError for a key of another type."""
        answer = read_tables(self._client, [self.queue])[self.queue]
        if isinstance(answer, str):
            raise ResponseError(f"the schedules of queue {self.queue} cannot be read: {answer}")
        return answer

    def reconcile(
        self, schedules: Sequence[Schedule], *, now: datetime, former: Sequence[Seen] = ()
    ) -> Reconciled:
        """Put in what is new, replace what has changed, remove what is not among these.

        The next instant is kept where pattern and zone are the same; otherwise it is the first after `now`.
        What is new here and was in one of the `former` tables goes on from there.
        What the stall guard tore down comes back once its definition has changed. ConfigurationError names a
        schedule that this host cannot read.
        """
        out: list[str] = []
        ids = [one.id for one in schedules]

        def work_out(seen: Seen) -> Changes:
            wanted = Changes()
            out[:] = [one.id for one in schedules if not self._is_in(wanted, seen, one, now, former)]
            changes.prune(wanted, seen, ids)
            new = wanted.definitions.keys() - seen.definitions.keys()
            wanted.fired = remembered.taken_along(self._client, self.queue, new, former)
            wanted.forgotten = self._over(
                remembered.noted(self._client, self.queue) - {*map(str.encode, ids)}
            )
            return wanted

        self._instants.forget_others(schedules)
        removed = tuple(shown(self._change(work_out).removed))
        for schedule_id in removed:
            log.event("scheduler_removed_orphan", schedulerId=schedule_id)
        torn = frozenset(out)
        return Reconciled(
            installed=tuple(one.id for one in schedules if one.id not in torn),
            removed=removed,
            torn=tuple(out),
        )

    def hasten(self, *, now: datetime) -> tuple[str, ...]:
        """Bring what is due later than its pattern says back to the first instant after `now`.

        For a clock that went back. What cannot be read stays as it is. Answers the ids.
        """

        def work_out(seen: Seen) -> Changes:
            wanted = Changes()
            for one, text in seen.definitions.items():
                schedule = definition.read(text)
                if schedule and schedule.id.encode() == one:
                    changes.hasten(wanted, seen, one, self._instants.after(schedule, now))
            return wanted

        done = self._change(work_out)
        return tuple(shown([*done.upcoming, *done.ended]))

    def is_late(self, schedule: Schedule, next_ms: int | None, *, now: datetime) -> bool:
        """Whether a schedule that goes on at `next_ms` (None: never) has to before. ValueError as `after`."""
        following = self._instants.after(schedule, now)
        return following is not None and (next_ms is None or next_ms > following)

    def go_on(self, schedule_id: str, standing: bytes, next_ms: int | None) -> bool:
        """Set the next instant (ms; None: none comes) of what has this definition; False when it has not."""
        one = schedule_id.encode()
        wanted = Changes(expected={one: standing})
        wanted.set_next(one, next_ms)
        return self._do(wanted)

    def remove(self, schedule_ids: Iterable[str]) -> tuple[str, ...]:
        """Take these out, their tears too. Answers those that were there."""
        named = {one.encode() for one in schedule_ids}
        done = self._change(
            lambda seen: Changes(removed=sorted(seen.ids & named), forgotten=self._over(named))
        )
        return tuple(shown(done.removed))

    def clear(self) -> tuple[str, ...]:
        """Take everything out. Answers what was there."""
        noted = remembered.noted(self._client, self.queue)
        done = self._change(lambda seen: Changes(removed=sorted(seen.ids), forgotten=self._over(noted)))
        return tuple(shown(done.removed))

    def remembers(self) -> bool:
        """Whether there is a note of a job, of which schedule ever."""
        return bool(self._client.hlen(keys.fired(self.queue)))

    def restore(self, schedule_id: str, *, now: datetime | None = None) -> bool:
        """Put back what the stall guard tore down, to go on after `now` (None: Valkey's time).

        Its stalls count from 0 again. False when nothing of this id was torn down here.
        """
        moment = now or instant_of(valkey_now(self._client))
        one = schedule_id.encode()

        def work_out(seen: Seen) -> Changes:
            wanted = Changes(mended=[one] if one in seen.torn else [])
            tear = notes.read_torn(seen.torn.get(one))
            schedule = definition.read(tear.definition) if tear else None
            if schedule and schedule.id == schedule_id and one not in seen.definitions:
                untorn = Seen(definitions=seen.definitions, upcoming={}, since={}, torn={})
                changes.install(wanted, untorn, schedule, self._instants, now=moment)
            return wanted

        if not self._change(work_out).mended:
            return False
        self._client.delete(keys.stalls(schedule_id))
        return True

    def tear_down(self, schedule_id: str, *, stalls: int, at_ms: int) -> bool:
        """Take it out because of its stalls, and note that, so that no reconcile puts the same back.

        False when it is not installed here.
        """
        one = schedule_id.encode()

        def work_out(seen: Seen) -> Changes:
            standing = seen.definitions.get(one)
            if standing is None:
                return Changes()
            text = standing.decode("utf-8", "replace")
            tear = notes.Torn(
                fingerprint=notes.fingerprint(text), stalls=stalls, at_ms=at_ms, definition=text
            )
            return Changes(expected={one: standing}, uninstalled=[one], torn={one: tear.text().encode()})

        return bool(self._change(work_out).torn)

    def _is_in(
        self, wanted: Changes, seen: Seen, schedule: Schedule, now: datetime, former: Sequence[Seen]
    ) -> bool:
        try:
            return changes.install(wanted, seen, schedule, self._instants, now=now, former=former)
        except ValueError as error:
            raise ConfigurationError(f"schedule {schedule.id} {error}") from error

    def _over(self, ids: Collection[bytes]) -> dict[bytes, bytes]:
        return remembered.over(self._client, self.queue, ids)

    def _change(self, work_out: Callable[[Seen], Changes]) -> Changes:
        """Work out what is to change and do it, anew as long as others are faster."""
        for _ in range(_TRIES):
            wanted = work_out(self._read())
            if wanted.are_none or self._do(wanted):
                return wanted
        raise OperationalError(
            f"others change the schedules of queue {self.queue} at the same time; try again"
        )

    def _do(self, wanted: Changes) -> bool:
        return bool(self._apply(keys=self._keys(), args=[self.queue, *wanted.arguments()]))

    def _keys(self) -> list[str]:
        names = (keys.definitions, keys.upcoming, keys.since, keys.fired, keys.torn)
        return [*(name(self.queue) for name in names), hosts_keys.QUEUES_KNOWN]

    def _read(self) -> Seen:
        return remembered.read(self._client, self.queue)


def _residents(parts: Sequence[Any]) -> Mapping[str, Resident] | str:
    for part in parts:
        if isinstance(part, VALKEY_FAULTS):
            raise part
        if isinstance(part, Exception):
            return token_of(part)
    definitions, since, fired, torn, upcoming = parts
    following = dict(upcoming)
    return {
        name: Resident(
            definition=definitions.get(one, b"").decode("utf-8", "replace"),
            next_ms=whole_ms(following.get(one)),
            since_ms=whole_ms(since.get(one)),
            fired=notes.read_acted(fired.get(one)),
            torn=notes.read_torn(torn.get(one)),
        )
        for one in sorted({*definitions, *torn})
        for name in shown([one])
    }
