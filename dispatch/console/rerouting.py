"""Where the waiting jobs of a host's queue go when that host is dead or retired, and why some stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from dispatch.ids import Kind
from dispatch.jobs import JobData, Malformed, encode
from hosts import names
from hosts.capabilities import needs_of
from hosts.routing import Why, decide
from hosts.rows import HostRow


class Stay(StrEnum):
    """Why a job stays, as a token."""

    FOLDER = "folder"
    NEEDS = "needs"
    UNREADABLE = "unreadable"
    IN_HAND = "in-hand"
    STARTED = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staying:
    """A job that stays: `why` goes on with "it stays:", `needs` is what its next host would lack."""

    job_id: str
    reason: Stay
    why: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the operator wants: away from `host`; `others` are the live hosts beside it.

    `to` is the one of them that takes all; `only_shared`: none but the shared queue. `same_folders`: a folder
    of the host is the same wherever its jobs go.
    """

    host: str
    others: tuple[HostRow, ...]
    to: HostRow | None = None
    only_shared: bool = False
    same_folders: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Per queue the raw ids that go there, in the order given, and who stays."""

    moves: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    stays: tuple[Staying, ...] = ()


class Candidate(Protocol):
    """A job that waits: its id as it stands in Valkey, the natural id, and what it is to do.

    `needs` are capabilities that were asked for beside those that its data names.
    """

    @property
    def raw_id(self) -> bytes: ...  # noqa: D102
    @property
    def job_id(self) -> str: ...  # noqa: D102
    @property
    def job(self) -> JobData | Malformed: ...  # noqa: D102
    @property
    def needs(self) -> frozenset[str]: ...  # noqa: D102


def plan(candidates: Iterable[Candidate], choice: Choice) -> Plan:
    """Choose a queue for each job, or say why it stays."""
    moves: dict[str, list[bytes]] = defaultdict(list)
    stays = []
    for one in candidates:
        found = _place(one, choice)
        if isinstance(found, Staying):
            stays.append(found)
        else:
            moves[found].append(one.raw_id)
    return Plan(moves=moves, stays=tuple(stays))


def _place(one: Candidate, choice: Choice) -> str | Staying:
    if isinstance(one.job, Malformed):
        why = "what it is to do cannot be read by this version"
        return Staying(job_id=one.job_id, reason=Stay.UNREADABLE, why=why)
    if one.job.kind is Kind.LOCAL and not choice.same_folders:
        why = f"its folder is on {choice.host}; --local-folders says that it is the same where the job goes"
        return Staying(job_id=one.job_id, reason=Stay.FOLDER, why=why)
    needs = needs_of(encode(one.job)["data"]) | one.needs
    if choice.to is None:
        return _routed(one, needs, choice)
    missing = needs - choice.to.caps
    return (
        _lacking(one, missing, f"{choice.to.name} does not have that")
        if missing
        else names.host_queue(choice.to.name)
    )


def _routed(one: Candidate, needs: frozenset[str], choice: Choice) -> str | Staying:
    route = decide(choice.others, needs, one.job_id)
    if route.why in {Why.NO_NEEDS, Why.ALL_HAVE_IT}:
        return names.SHARED_QUEUE
    if route.host is not None and not choice.only_shared:
        return names.host_queue(route.host)
    return _lacking(one, needs, _LACKING[route.why])


_LACKING: Mapping[Why, str] = {
    Why.NOBODY_LIVES: "no other host is alive",
    Why.NOBODY_HAS_IT: "no live host has that",
    Why.NO_OWN_QUEUE: "those that have it have no queue of their own",
    Why.HOST: f"a host without it could take the job from {names.SHARED_QUEUE}",
}


def _lacking(one: Candidate, needs: Iterable[str], but: str) -> Staying:
    named = tuple(sorted(needs))
    return Staying(
        job_id=one.job_id, reason=Stay.NEEDS, why=f"it needs {', '.join(named)}, and {but}", needs=named
    )
