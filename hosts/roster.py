"""Reading the registry: who is there, in one round trip however many they are (Q 7.1).

An answer that the registry cannot be read is not the answer that nobody is there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis
from redis.exceptions import RedisError

from hosts import keys, switches
from hosts.faults import token_of
from hosts.row_reading import FIELDS, read_known, read_row, unreadable
from hosts.rows import HostRow, KnownHost, Roster, Unreachable, UnreadableRow

_READ = switches.HOLDS + (Path(__file__).parent / "lua" / "roster.lua").read_text()
# Both bound what peers can make a reader wait for and hold.
MOST_HOSTS = 2000
LONGEST_ROW = 16_384


def read(client: redis.Redis) -> Roster | Unreachable:
    """Read every row, every known host and which hosts drain, at one instant of Valkey's clock.

    Never raises for what peers wrote, nor for a server that is away. Names without a row leave the list.
    """
    try:
        # EVAL and not its hash: one round trip also where the server does not know the script yet.
        answer: Any = client.eval(
            _READ,
            2,
            *(keys.HOSTS_LIVE, keys.HOSTS_KNOWN, keys.host_row(""), keys.drain("")),
            *(MOST_HOSTS, LONGEST_ROW + 1),
            *FIELDS,
        )
    except RedisError as fault:
        return Unreachable(token_of(fault))
    now_ms, count, rows, known_count, known = answer
    found = [_row(member, text, now_ms) for member, text in _pairs(rows)]
    listed = [read_known(member, entry) for member, entry in _pairs(known or [])]
    return Roster(
        now_ms=now_ms,
        hosts=tuple(sorted((row for row in found if isinstance(row, HostRow)), key=lambda row: row.name)),
        unreadable=(
            *sorted(
                (row for row in (*found, *listed) if isinstance(row, UnreadableRow)),
                key=lambda row: row.shown,
            ),
            *_left_out(keys.HOSTS_LIVE, count),
            *_left_out(keys.HOSTS_KNOWN, known_count),
        ),
        known=tuple(
            sorted((one for one in listed if isinstance(one, KnownHost)), key=lambda one: one.host_id)
        ),
    )


def _pairs(flat: list[bytes]) -> zip[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _row(member: bytes, text: bytes, now_ms: int) -> HostRow | UnreadableRow:
    if not text:
        return unreadable(member, "is not a hash")
    if len(text) > LONGEST_ROW:
        return unreadable(member, f"is longer than {LONGEST_ROW} bytes")
    drained, *values = text.split(b"\0")
    if len(values) != len(FIELDS):
        return unreadable(member, "holds a zero byte")
    return read_row(member, dict(zip(FIELDS, values, strict=True)), now_ms=now_ms, draining=drained == b"1")


def _left_out(key: str, count: int | None) -> tuple[UnreadableRow, ...]:
    if count is None:
        return (unreadable(key.encode(), "is not a hash"),)
    if count > MOST_HOSTS:
        return (unreadable(key.encode(), f"names {count} hosts; {MOST_HOSTS} of them were looked at"),)
    return ()
