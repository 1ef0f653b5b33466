"""The mirror of run records in Valkey, by which each host knows what ran on the others (Q 15.3, fleet mode).

`runs:index` is a sorted set of stems by the run's end in ms, `runs:rec:<stem>` a record's line. All of it
may be deleted at any time: the truth is in the files of each host. Raw logs never come here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.log import event
from runs import merging
from runs.files import Entry, marked_stem, stem
from runs.merging import Mirrored
from runs.record import DamagedRecordError, Record, position_ms
from runs.shape import iso

if TYPE_CHECKING:
    import redis

INDEX = "runs:index"
BODY = "runs:rec:"
MOST_MEMBERS = 5_000
LONGEST_DAYS = 92

_DAY_MS = 24 * 60 * 60 * 1000
_TRIM_AT_ONCE = 200
# Of lines in one script, and of lines that a reader takes in: a server is not held up, a process not filled.
_WRITE_BYTES = 1024 * 1024
_MISSED_BYTES = 4 * 1024 * 1024
_READ_BYTES = 16 * 1024 * 1024
_READ_AT_ONCE = 128
_EPOCH_TEXT = "1970-01-01T00:00:00.000Z"
_LUA = Path(__file__).with_name("lua")
_WRITE, _PRUNE = (
    (_LUA / f"{name}.lua").read_text(encoding="ascii") for name in ("mirror_write", "mirror_prune")
)


def window_ms(retention_days: int) -> int:
    """Tell how long entries live: as this host's files, which 0 days keep for ever, but 92 days at most."""
    return min(retention_days or LONGEST_DAYS, LONGEST_DAYS) * _DAY_MS


def why(fault: RedisError) -> str:
    """Name a fault of the mirror in a token that is safe to log and to show."""
    if isinstance(fault, OutOfMemoryError):
        return "server-full"
    if isinstance(fault, VALKEY_FAULTS):
        return "no-answer"
    if isinstance(fault, ResponseError) and "WRONGTYPE" in str(fault):
        return "wrong-type"
    return "refused"


class Mirror:
    """Writes one host's records into the mirror. For one thread; the client bounds each call (2 s)."""

    def __init__(self, client: redis.Redis, *, retention_days: int) -> None:
        self._script = client.register_script(_WRITE)
        self._window_ms = window_ms(retention_days)
        self._fails = False
        self._missed: tuple[Entry, ...] = ()

    def write(self, entries: Sequence[Entry]) -> bool:
        """Mirror these records unless newer news of their jobs is there; tell whether that went through.

        Never raises for what Valkey does: a failure is logged once, and once that it is over. What was not
        taken is kept for `retry`, the newest of it.
        """
        due = (*self._missed, *entries)
        try:
            for chunk in _chunks(due):
                self._call(chunk)
        except RedisError as fault:
            if not self._fails:
                event("run_mirror_failed", reason=why(fault))
            self._fails, self._missed = True, _newest(due)
            return False
        self._missed = ()
        if self._fails:
            event("run_mirror_restored")
        self._fails = False
        return True

    def retry(self) -> None:
        """Try again what was not taken."""
        if self._missed:
            self.write(())

    def _call(self, entries: Sequence[Entry]) -> None:
        keys = [INDEX]
        longest_ms = LONGEST_DAYS * _DAY_MS
        args: list[str | bytes | int] = [BODY, self._window_ms, longest_ms, MOST_MEMBERS, _TRIM_AT_ONCE]
        for entry in entries:
            record = entry.record
            keys += [BODY + stem(record.job_id), BODY + marked_stem(record.job_id)]
            args += [record.job_id, record.attempt, int(record.final), _end(record)]
            args += [position_ms(record), entry.line]
        self._script(keys=keys, args=args)


def _end(record: Record) -> str:
    moment = record.ended_at or record.started_at or record.queued_at
    return iso(moment) if moment else _EPOCH_TEXT


def _newest(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Keep the last of them, as many as memory is spent on while the mirror fails."""
    size = 0
    for place in range(len(entries) - 1, -1, -1):
        size += len(entries[place].line)
        if size > _MISSED_BYTES:
            return tuple(entries[place + 1 :])
    return tuple(entries)


def _chunks(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    chunk: list[Entry] = []
    size = 0
    for entry in entries:
        if chunk and size + len(entry.line) > _WRITE_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(entry)
        size += len(entry.line)
    if chunk:
        yield chunk


@dataclass(frozen=True, slots=True)
class Fetched:
    """The readable records of some members, the bytes they came in, and how many members were pruned."""

    records: tuple[Record, ...]
    size: int
    pruned: int


def read(client: redis.Redis, *, wanted: int) -> Mirrored:
    """Read the newest `wanted` records; what cannot be read is in the answer and never raised.

    Bounded: of MOST_MEMBERS members and some MiB of lines the rest is left, and the answer is `truncated`.
    """
    found: list[Record] = []
    rank = looked = size = 0
    try:
        while len(found) < wanted:
            members = _ranked(client, rank, min(_READ_AT_ONCE, wanted - len(found)))
            if not members:
                return Mirrored(merging.OK if looked else merging.OFF, tuple(found))
            if looked >= MOST_MEMBERS or size >= _READ_BYTES:
                return Mirrored(merging.TRUNCATED, tuple(found))
            fetched = fetch(client, [member for member, _ in members])
            found += fetched.records
            size += fetched.size
            looked += len(members)
            rank += len(members) - fetched.pruned
    except RedisError as fault:
        return Mirrored(merging.unreachable(why(fault)))
    return Mirrored(merging.OK, tuple(found))


def index(client: redis.Redis) -> dict[bytes, float]:
    """List the newest MOST_MEMBERS members and the end of each run in ms, newest first. No member: `off`.

    Raises redis-py's errors.
    """
    return dict(_ranked(client, 0, MOST_MEMBERS))


def fetch(client: redis.Redis, members: Sequence[bytes]) -> Fetched:
    """Read the bodies of these members; prune the members without.

    Bodies that are damaged, or of another job than the member names, are skipped.

    Raises redis-py's errors.
    """
    keys = [BODY.encode("ascii") + member for member in members]
    bodies = cast("list[bytes | None]", client.mget(keys))
    gone = [key for key, body in zip(keys, bodies, strict=True) if body is None]
    found = (_record(member, body) for member, body in zip(members, bodies, strict=True) if body is not None)
    return Fetched(
        tuple(record for record in found if record is not None),
        sum(len(body) for body in bodies if body is not None),
        _pruned(client, gone),
    )


def _ranked(client: redis.Redis, start: int, count: int) -> list[tuple[bytes, float]]:
    found = client.zrevrange(INDEX, start, start + count - 1, withscores=True)
    return cast("list[tuple[bytes, float]]", found)


def _record(member: bytes, body: bytes) -> Record | None:
    try:
        record = Record.from_bytes(body)
    except DamagedRecordError:
        return None
    named = {stem(record.job_id), marked_stem(record.job_id)}
    return record if member.decode("ascii", "replace") in named else None


def _pruned(client: redis.Redis, gone: Sequence[bytes]) -> int:
    if not gone:
        return 0
    try:
        return int(client.register_script(_PRUNE)(keys=[INDEX, *gone], args=[BODY]))
    except ResponseError:
        # A server that takes no writes can be read all the same.
        return 0
