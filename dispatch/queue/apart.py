"""Keeping what stands in one queue's keys from costing the others: anybody may have written it there."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

from redis.exceptions import ResponseError

from hosts.faults import token_of
from pidispatch_site.clients import VALKEY_FAULTS

# Of a queue that a script left out because a key of it has another type than ours.
WRONG_TYPE = "wrong-type"


@contextmanager
def apart(queue: str, unreadable: MutableMapping[str, str]) -> Iterator[None]:
    """End the block where the server refuses something, and note why under the queue (`token_of`).

    Faults of Valkey go through.
    """
    try:
        yield
    except VALKEY_FAULTS:
        raise
    except ResponseError as fault:
        unreadable[queue] = token_of(fault)
