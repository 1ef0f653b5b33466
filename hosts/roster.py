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
# These bound what peers can make the server and its readers wait for and hold.
MOST_HOSTS = 2000
LONGEST_ROW = 16_384
MOST_BYTES = 16_000_000
# In the place of the values of a row.
_NO_ROW = {b"wrong-type": "is not a hash", b"unread": "is left out: other rows are too long"}


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
            *(MOST_HOSTS, LONGEST_ROW + 1, MOST_BYTES),
            *FIELDS,
        )
    except RedisError as fault:
        return Unreachable(token_of(fault))
    return _roster(*answer)


def _roster(
    now_ms: int, count: int, rows: list[bytes], drained: list[bytes], known_count: int, known: list[bytes]
) -> Roster:
    drains = frozenset(drained)
    found = [*(_row(text, now_ms, drains) for text in rows), *map(_known, known)]
    unreadable_rows = [row for row in found if isinstance(row, UnreadableRow)]
    return Roster(
        now_ms=now_ms,
        hosts=tuple(sorted((row for row in found if isinstance(row, HostRow)), key=lambda row: row.name)),
        unreadable=(
            *sorted(unreadable_rows, key=lambda row: row.shown),
            *_left_out(keys.HOSTS_LIVE, count, len(rows)),
            *_left_out(keys.HOSTS_KNOWN, known_count, len(known)),
        ),
        known=tuple(
            sorted((one for one in found if isinstance(one, KnownHost)), key=lambda one: one.host_id)
        ),
    )


def _row(text: bytes, now_ms: int, drains: frozenset[bytes]) -> HostRow | UnreadableRow:
    member, *values = text.split(b"\0")
    if len(text) > LONGEST_ROW:
        return unreadable(member, f"is longer than {LONGEST_ROW} bytes")
    if len(values) == 1 and values[0] in _NO_ROW:
        return unreadable(member, _NO_ROW[values[0]])
    if len(values) != len(FIELDS):
        return unreadable(member, "holds a zero byte")
    fields = dict(zip(FIELDS, values, strict=True))
    return read_row(member, fields, now_ms=now_ms, draining=member in drains)


def _known(text: bytes) -> KnownHost | UnreadableRow:
    member, _, entry = text.partition(b"\0")
    return read_known(member, entry)


def _left_out(key: str, count: int, looked_at: int) -> tuple[UnreadableRow, ...]:
    if count < 0:
        return (unreadable(key.encode(), "is not a hash"),)
    if count > looked_at:
        return (unreadable(key.encode(), f"names {count} hosts; {looked_at} were read"),)
    return ()
