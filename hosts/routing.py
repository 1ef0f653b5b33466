"""Which host's queue a job goes to, by what it needs and what live hosts have (Q 7.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hosts.capabilities import parse
from hosts.names import in_alphabet
from hosts.rows import HostRow, Presence, Unreachable

_BASIS = 0x811C9DC5
_PRIME = 0x01000193

Rows = Iterable[object] | Unreachable | None


class Why(StrEnum):
    """What decided; everything but `HOST` means the shared queue."""

    NO_NEEDS = "no-needs"
    NOBODY_LIVES = "nobody-lives"
    NOBODY_HAS_IT = "nobody-has-it"
    ALL_HAVE_IT = "all-have-it"
    NO_OWN_QUEUE = "no-own-queue"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Route:
    """The host whose own queue the job goes to, None for the shared queue, and what decided."""

    host: str | None
    why: Why


def route(rows: Rows, needs: Collection[str] | None, job_id: str) -> str | None:
    """Name the host whose queue the job goes to; None for the shared queue. `decide` also tells why."""
    return decide(rows, needs, job_id).host


def decide(rows: Rows, needs: Collection[str] | None, job_id: str) -> Route:
    """Choose a host for the job among those that live, always the same one for the same job and hosts.

    A row is a `HostRow`, or a mapping with the wire's names; anything else is no host. A host that drains
    takes nothing: it is chosen only when no other has what is needed, since the job then waits instead of
    being refused elsewhere.
    """
    if not needs:
        return Route(None, Why.NO_NEEDS)
    live = _live(rows)
    if not live:
        return Route(None, Why.NOBODY_LIVES)
    capable = [row for row in live if row.caps.issuperset(needs)]
    if not capable:
        return Route(None, Why.NOBODY_HAS_IT)
    if len(capable) == len(live):
        return Route(None, Why.ALL_HAVE_IT)
    routable = [row for row in capable if row.routes and in_alphabet(row.name)]
    # Rows of one name are one host.
    names = sorted({row.name for row in routable if not row.draining} or {row.name for row in routable})
    if not names:
        return Route(None, Why.NO_OWN_QUEUE)
    return Route(names[fnv1a(job_id) % len(names)], Why.HOST)


def fnv1a(text: str) -> int:
    """Hash a text as the reference does: FNV-1a, 32 bits wide, over UTF-16 code units."""
    found = _BASIS
    units = text.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(units), 2):
        found = (found ^ int.from_bytes(units[at : at + 2], "little")) * _PRIME & 0xFFFFFFFF
    return found


def _live(rows: Rows) -> list[HostRow]:
    if rows is None or isinstance(rows, Unreachable):
        return []
    read = (_from_wire(row) if isinstance(row, Mapping) else row for row in rows)
    return [row for row in read if isinstance(row, HostRow) and row.presence is Presence.ALIVE]


def _from_wire(row: Mapping[Any, Any]) -> HostRow:
    name, stale = row.get("name"), row.get("staleMs")
    return HostRow(
        name=name if isinstance(name, str) else "",
        stale_ms=stale if isinstance(stale, int) and not isinstance(stale, bool) else None,
        caps=parse(row.get("caps")),
        routes=_is_true(row.get("routes")),
        draining=_is_true(row.get("draining")),
    )


def _is_true(value: object) -> bool:
    return value is True or value == "true"
