"""Background actions as Valkey keeps them for a week: `op:<id>`, `op:<id>:rows`, and the latest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dispatch.pages.operation_state import Progress, Row, head_text, read_progress, row_text

if TYPE_CHECKING:
    import redis

_LUA = Path(__file__).parent / "lua"
_KEEP, _READ = ((_LUA / f"{name}.lua").read_text() for name in ("keep_operation", "read_operations"))
_LATEST = "op:latest"
_ID = re.compile(r"[0-9a-f]{32}")
_KEPT_SECONDS = 7 * 24 * 60 * 60
_MOST_LATEST = 200
_ROWS_A_CALL = 1_000
_LONGEST_TEXT = 100_000


def is_id(text: str) -> bool:
    """Tell whether it can be the id of an action; nothing else becomes a key."""
    return _ID.fullmatch(text) is not None


def keep(client: redis.Redis, progress: Progress, rows: Sequence[Row], *, replaces: bool) -> int:
    """Write how it stands and add these rows, or put them in the place of those that stand.

    Answers when it began, in ms of Valkey's clock. Raises redis-py's errors; some rows may stand then.
    """
    texts = [row_text(row) for row in rows]
    script = client.register_script(_KEEP)
    named = [_key(progress.id), _rows_key(progress.id), _LATEST]
    starts = range(0, max(1, len(texts)), _ROWS_A_CALL)
    began = 0
    for first in starts:
        # Whoever reads that it is done reads every row, too.
        head = head_text(progress) if first == starts[-1] else ""
        how = "all" if replaces and first == 0 else "more"
        about: list[str | int] = [progress.id, head, _KEPT_SECONDS, _MOST_LATEST, how]
        began = int(script(keys=named, args=[*about, *texts[first : first + _ROWS_A_CALL]]))
    return began


def read(client: redis.Redis, operation_id: str, *, first: int = 0, count: int = 200) -> Progress | None:
    """Read an action with `count` of its rows from `first` on; None for one that nobody knows (any more)."""
    found = _read(client, [operation_id] if is_id(operation_id) else [], first=first, count=count)
    return next(iter(found), None)


def latest(client: redis.Redis, count: int = 20) -> tuple[Progress, ...]:
    """Read the actions that began last, the newest first, without their rows."""
    members = cast("list[bytes]", client.zrevrange(_LATEST, 0, count - 1))
    texts = (member.decode("ascii", "replace") for member in members)
    return _read(client, [text for text in texts if is_id(text)], first=0, count=0)


def _read(client: redis.Redis, ids: Sequence[str], *, first: int, count: int) -> tuple[Progress, ...]:
    if not ids:
        return ()
    named = [key for one in ids for key in (_key(one), _rows_key(one))]
    answer: Any = client.register_script(_READ)(keys=named, args=[first, count, _LONGEST_TEXT])
    now_ms, *found = answer
    every = (read_progress(one, row, now_ms=now_ms) for one, row in zip(ids, found, strict=True))
    return tuple(one for one in every if one is not None)


def _key(operation_id: str) -> str:
    return f"op:{operation_id}"


def _rows_key(operation_id: str) -> str:
    return f"op:{operation_id}:rows"
