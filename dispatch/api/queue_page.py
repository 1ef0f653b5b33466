"""What a program asks of the queues: the first jobs of many, or all jobs of one, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

from dispatch.api import asked
from dispatch.api.access import RefusedError
from dispatch.console import lookup, queue_shown
from dispatch.console.queues import named_queues, read_queues
from dispatch.queue.apart import apart
from dispatch.queue.reading import TooManyError
from dispatch.queue.turns import Turn
from pidispatch_site.errors import ConfigurationError

if TYPE_CHECKING:
    import redis

_QUEUE, _LIMIT, _NEXT = "queue", "limit", "next"
_JOBS, _MOST_JOBS = 20, 1000
# Of every queue at once: fifty of them must be read within a second.
_MOST_OF_EACH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which queues (none: all), at most how many jobs of each section, and after which turn of a queue."""

    queues: tuple[str, ...]
    limit: int
    after: Turn | None = None


def asked_of(given: QueryDict) -> Asked:
    """Read `queue` (any number of times), `limit`, and `next` as an answer about one queue gave it."""
    asked.only(given, (_QUEUE, _LIMIT, _NEXT))
    try:
        queues = named_queues(given.getlist(_QUEUE))
    except ConfigurationError as error:
        raise asked.wrong(str(error)) from error
    most = _MOST_JOBS if len(queues) == 1 else _MOST_OF_EACH
    return Asked(
        queues=queues, limit=asked.limit(given, default=_JOBS, most=most), after=_after(given, queues)
    )


def read(client: redis.Redis, wanted: Asked) -> dict[str, Any]:
    """Answer what `queue --json` prints; about one queue also `next`, which is null at the end.

    Of one queue the answers that follow each other have each job once (`dispatch.queue.reading`). There is no
    `next` where a queue cannot be read or has too many jobs, nor of several queues: those answers are no part
    of a reading. `RefusedError` where one was to go on, and the queue has too many jobs by now.
    """
    if len(wanted.queues) == 1:
        try:
            return _page(client, *wanted.queues, wanted)
        except TooManyError as fault:
            if wanted.after is not None:
                raise _too_many(fault) from fault
    unreadable: dict[str, str] = {}
    queues = wanted.queues or read_queues(client).names
    views = lookup.view(client, queues, limit=wanted.limit, unreadable=unreadable)
    return queue_shown.as_data(views, unreadable)


def _page(client: redis.Redis, queue: str, wanted: Asked) -> dict[str, Any]:
    unreadable: dict[str, str] = {}
    with apart(queue, unreadable):
        view, last = lookup.page(client, queue, after=wanted.after, limit=wanted.limit)
    if unreadable:
        return queue_shown.as_data((), unreadable)
    return {**queue_shown.as_data((view,)), _NEXT: f"{queue}~{last.written}" if last else None}


def _too_many(fault: TooManyError) -> RefusedError:
    return RefusedError(
        409,
        "too-many-jobs",
        f"{fault} Ask without next for the first of each section, or again with it when there are fewer.",
    )


def _after(given: QueryDict, queues: tuple[str, ...]) -> Turn | None:
    texts = given.getlist(_NEXT)
    if not texts:
        return None
    if len(queues) != 1 or len(texts) != 1:
        raise asked.wrong(
            "next is given once and with one queue: that of the answer it is from (?queue=…&next=…)."
        )
    queue, _, written = texts[0].partition("~")
    turn = Turn.parse(written)
    if turn is None:
        raise asked.wrong(
            "next is not what an answer of this address gave; begin without it, and end where it is null."
        )
    if queue != queues[0]:
        raise asked.wrong(f"next is of the queue {queue[:80]!r}, and {queues[0]} is asked for.")
    return turn
