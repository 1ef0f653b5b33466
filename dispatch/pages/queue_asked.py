"""What the address of the queue's page asks for, and addresses that ask for something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from dispatch.console.board import LONG_PAGE, Wanted
from dispatch.ids import MAX_ID_BYTES, natural_id, rq_id
from dispatch.queue.selecting import Standing
from hosts.names import is_queue

QUEUE, SECTION, BEGINNING, PAGE, ROWS, LIVE = "queue", "section", "id", "page", "rows", "live"
# More than there can be; what is beyond the last page shows none.
_LAST_PAGE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to show; `is_live`: lists that refresh themselves, without boxes to tick.

    An address says so only where it is not as it would be anyway (`is_live_untold`).
    """

    wanted: Wanted
    is_live: bool = False
    is_live_untold: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any], *, is_live_untold: bool = False) -> Asked:
        """Take what an address or a form says; what is not understood is as if it were not there."""
        queue, section = str(given.get(QUEUE, "")), str(given.get(SECTION, ""))
        page = str(given.get(PAGE, ""))[: len(str(_LAST_PAGE)) + 1]
        beginning = str(given.get(BEGINNING, "")).strip()[:MAX_ID_BYTES]
        is_live = {"1": True, "0": False}.get(str(given.get(LIVE)), is_live_untold)
        wanted = Wanted(
            queue=queue if is_queue(queue) else None,
            standing=Standing(section) if section in set(Standing) else None,
            beginning=beginning,
            page=min(max(int(page), 1), _LAST_PAGE) if page.isascii() and page.isdigit() else 1,
            # A long page is too much to be read again every few seconds.
            is_long=not is_live and str(given.get(ROWS)) == str(LONG_PAGE),
        )
        return cls(wanted=wanted, is_live=is_live, is_live_untold=is_live_untold)

    @property
    def live(self) -> str | None:
        """What an address says of it."""
        return None if self.is_live is self.is_live_untold else str(int(self.is_live))

    def address(self, **changes: Any) -> str:
        """Write the query of the same page with changes to `wanted`, on its first page unless told."""
        wanted = replace(self.wanted, **{"page": 1, **changes})
        values = {
            QUEUE: wanted.queue,
            SECTION: wanted.standing.value if wanted.standing else None,
            BEGINNING: wanted.beginning,
            PAGE: wanted.page if wanted.page > 1 else None,
            ROWS: LONG_PAGE if wanted.is_long and wanted.standing else None,
            LIVE: self.live,
        }
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


def token_of(job_id: str) -> str | None:
    """Write a job's id as addresses and forms carry it; None for one that no address can name."""
    try:
        return rq_id(job_id)
    except ValueError:
        return None


def job_of(token: str) -> str | None:
    """Read what `token_of` wrote; None for anything else."""
    return natural_id(token)
