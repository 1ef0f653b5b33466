"""Who takes jobs: one boot of one host's worker, and the tokens of its pops."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_NOT_IN_A_WORKER_NAME = re.compile(r"[^A-Za-z0-9._@-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One run of a host's worker. One object per process: all its queues draw their tokens from it.

    `boot` is `<host-id>-<8 hex>`; `host` is the worker's name, which records and people see.
    """

    boot: str
    host_id: str
    host: str
    _sequence: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False, compare=False)

    def next_token(self) -> str:
        """Make the token of the next pop, `boot/sequence`; never one twice. Safe for threads."""
        return f"{self.boot}/{next(self._sequence)}"

    def worker_name(self, queue: str) -> str:
        """Name this worker for RQ: `<host>.<boot>.<queue>`, in the characters that RQ's tools take."""
        return _NOT_IN_A_WORKER_NAME.sub("-", f"{self.host}.{self.boot}.{queue}")


def boot_of(token: str) -> str:
    """Tell the boot that made the token."""
    return token.rpartition("/")[0]


def execution_id(token: str) -> str:
    """Answer RQ's id of the execution that a token's begin creates.

    It follows from the token, so a repeated begin creates no second one, and whoever finds the token can take
    the execution away. `lua/shared/execution.lua` computes the same.
    """
    return hashlib.sha1(token.encode(), usedforsecurity=False).hexdigest()[:32]
