"""Records that a host left pending in Valkey and does not come back for are written by another (contracts 3).

That is safe at any instant: a record is moved, never copied, in one script; and both hosts may write the same
one, since file, row and mirror entry are replaced by newer news only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hosts.keys import HOSTS_KNOWN, pending_records
from hosts.names import in_alphabet
from pidispatch_site.log import event

if TYPE_CHECKING:
    import redis

MOST_AT_ONCE = 500
BYTES_AT_ONCE = 4 * 1024 * 1024
_TAKE_OVER = (Path(__file__).parent / "lua" / "take_over.lua").read_text(encoding="ascii")


def take_over(
    client: redis.Redis,
    host_id: str,
    *,
    vanished_ms: int,
    most: int = MOST_AT_ONCE,
    size: int = BYTES_AT_ONCE,
) -> int:
    """Move records of hosts without a beat for `vanished_ms` behind our own pending ones, in their order.

    Answers how many came over, at most `most` of about `size` bytes: unless 0, there may be more, and the
    recorder should be woken. Valkey's clock judges the silence. Raises redis-py's errors; may be repeated.
    """
    taken = client.register_script(_TAKE_OVER)(
        keys=[HOSTS_KNOWN, pending_records(host_id)],
        args=[host_id, vanished_ms, pending_records(""), most, size],
    )
    for left_by, name, count in taken:
        worker = name.decode("utf-8", "replace")
        event(
            "pending_records_taken_over",
            hostId=left_by.decode("ascii"),
            worker=worker if in_alphabet(worker) else None,
            count=count,
        )
    return sum(count for _, _, count in taken)
