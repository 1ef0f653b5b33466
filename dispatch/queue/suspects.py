"""Finding queues whose jobs nobody alive has, for hosts that do not drain them: the dead have nobody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from redis.exceptions import ResponseError

from dispatch.queue import keys
from dispatch.queue.scripts import Scripts
from hosts.faults import token_of

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspects:
    """The queues that are worth a sweep, and those of which nobody can tell, each with the fault's token."""

    queues: tuple[str, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)


def suspects(client: redis.Redis, queues: Sequence[str], *, late: float) -> Suspects:
    """Find those of the queues that are worth a sweep, in their order; `late` in seconds.

    A taker that has been silent for longer has something in hand or started, or a job has started that no
    taker is known of. One step for all of them; it judges no job.
    """
    if not queues:
        return Suspects()
    named = [keys.queue_keys(queue) for queue in queues]
    answers = cast(
        "list[int | ResponseError]",
        Scripts(client).call(
            "suspects",
            [key for one in named for key in (one.takers, one.started)],
            (keys.JOB, round(late * 1000), *queues),
        ),
    )
    found = list(zip(queues, answers, strict=True))
    return Suspects(
        queues=tuple(queue for queue, answer in found if answer == 1),
        unreadable={queue: token_of(answer) for queue, answer in found if isinstance(answer, ResponseError)},
    )
