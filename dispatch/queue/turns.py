"""The order in which a queue is read page by page: the first queued first, wherever the jobs stand.

Where a job stands changes while somebody reads; when it was first queued and its id never do. A page has all
jobs of the queue between two turns, so that one that is there all the time is on exactly one page.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

_WRITTEN = re.compile(r"([0-9]{1,16})~([0-9a-f]{32})")


class Turn(NamedTuple):
    """A job's place in that order: its first queueing (epoch ms, 0: nobody says), then a digest of its id."""

    first_queued_ms: int
    digest: str

    @classmethod
    def of(cls, first_queued_ms: int, raw_id: bytes) -> Turn:
        """Give the turn of the job of this id; an id may be longer than an address takes, a digest is not."""
        return cls(first_queued_ms, hashlib.blake2b(raw_id, digest_size=16).hexdigest())

    @classmethod
    def parse(cls, text: str) -> Turn | None:
        """Read what `written` wrote; None when it is something else."""
        found = _WRITTEN.fullmatch(text)
        return cls(int(found[1]), found[2]) if found else None

    @property
    def written(self) -> str:
        """The turn as a text for addresses."""
        return f"{self.first_queued_ms}~{self.digest}"


def last_of_page(sections: Iterable[Iterable[Turn]], *, after: Turn | None, limit: int) -> Turn | None:
    """Say which turn the page after this one ends with, so that no section has more than `limit` jobs of it.

    The section that has most jobs early has `limit` of them, another may have none. None: all that is left
    fits.
    """
    rests = (sorted(turn for turn in turns if is_between(turn, after, None)) for turns in sections)
    return min((rest[limit - 1] for rest in rests if len(rest) > limit), default=None)


def is_between(turn: Turn, after: Turn | None, last: Turn | None) -> bool:
    """Tell whether a turn comes after the one and not after the other; None bounds nothing."""
    return (after is None or turn > after) and (last is None or turn <= last)
