"""One history out of two: what this host keeps and what the fleet's mirror holds (Q 15.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from runs.record import Record, order, position_ms


class Degraded(StrEnum):
    """How much of the fleet's history an answer saw.

    `truncated`: the mirror holds more than could be read. `off`: nothing is mirrored, as on a single host or
    among workers that do not mirror yet. `unreachable`: nobody knows what is mirrored.
    """

    OK = "ok"
    TRUNCATED = "truncated"
    OFF = "off"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Standing:
    """What came of reading the mirror; `reason` is a token, and there only when it is unreachable."""

    degraded: Degraded
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.degraded} ({self.reason})" if self.reason else self.degraded.value


OK = Standing(Degraded.OK)
TRUNCATED = Standing(Degraded.TRUNCATED)
OFF = Standing(Degraded.OFF)


def unreachable(reason: str) -> Standing:
    """Say that the mirror could not be read."""
    return Standing(Degraded.UNREACHABLE, reason)


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What the mirror holds, as far as it was read; in no order, a job perhaps twice."""

    standing: Standing
    records: tuple[Record, ...] = ()


_SENTENCES = {
    Degraded.OK: "The history of all hosts that declare a name.",
    Degraded.TRUNCATED: "Only a part of the fleet's history was read: runs of other hosts may be missing.",
    Degraded.OFF: "This host only: no run of other hosts is mirrored; this is the only host that declares a"
    " name, or none of them has finished a run yet.",
    Degraded.UNREACHABLE: "This host only: the fleet's history cannot be read ({reason}), so that runs of"
    " other hosts are missing or old.",
}


_UNDECLARED = "This host only: it declares no PI_WORKER_NAME, so that no run of other hosts is read."


def sentence(standing: Standing, *, is_declared: bool = True) -> str:
    """Say to a person what an answer of this standing shows; `is_declared`: this host declares a name."""
    if not is_declared:
        return _UNDECLARED
    return _SENTENCES[standing.degraded].format(reason=standing.reason)


def merged(
    local: Iterable[Record],
    mirrored: Iterable[Record],
    *,
    limit: int,
    wanted: Callable[[Record], bool] = lambda _record: True,
) -> list[Record]:
    """List the newest of each job that is wanted, latest end first: merged, then sorted, then cut.

    Newer is what replaces a record anywhere else (`record.order`): of one attempt, the later end. This host's
    own word wins ties.
    """
    newest = newest_of(mirrored)
    for record in newest_of(local).values():
        known = newest.get(record.job_id)
        if known is None or order(record) >= order(known):
            newest[record.job_id] = record
    found = filter(wanted, newest.values())
    return sorted(found, key=lambda record: (position_ms(record), record.job_id), reverse=True)[:limit]


def newest_of(records: Iterable[Record]) -> dict[str, Record]:
    """Keep each job's newest record, the first of equals."""
    newest: dict[str, Record] = {}
    for record in records:
        known = newest.get(record.job_id)
        if known is None or order(record) > order(known):
            newest[record.job_id] = record
    return newest
