"""Whether a host may act on its schedules: only while no live host of the fleet has others (Q 10.4).

Nobody is elected: the owner of a stale file would silently revert an edit. Agreement only ever withholds
permission.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hosts.rows import HostRow, Presence

OWN_UNREADABLE = "own-triggers-unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another host that has an opinion: the fingerprint of its schedules, and how many they are."""

    host: str
    fp_cron: str
    cron_count: int | None


@dataclass(frozen=True, slots=True)
class Proceed:
    """Nobody has other schedules; `peers` hosts have the same."""

    peers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Some do: `peers`, by name. `mine` is blank, with a `reason`, where this host cannot tell its own."""

    mine: str
    count: int | None
    peers: tuple[Peer, ...]
    reason: str | None = None


def judge(mine: str, count: int | None, peers: Iterable[HostRow], *, own_host_id: str) -> Proceed | Refused:
    """Judge by the rows that were read after this host's own was written with `mine` (blank: it cannot tell).

    Rows of this host's id are no peers, nor are hosts that are gone. One that is merely late is: it may live
    and hold on to its schedules, and to wait for it costs a minute and a half at most.
    """
    opinions = tuple(_opinions(peers, own_host_id))
    others = tuple(one for one in opinions if one.fp_cron != mine)
    if not others:
        return Proceed(len(opinions))
    return Refused(mine=mine, count=count, peers=others, reason=None if mine else OWN_UNREADABLE)


def _opinions(rows: Iterable[HostRow], own_host_id: str) -> Iterable[Peer]:
    for row in sorted(rows, key=lambda row: row.name):
        if row.fp_cron and row.host_id != own_host_id and row.presence is not Presence.GONE:
            yield Peer(host=row.name, fp_cron=row.fp_cron, cron_count=row.cron_count)
