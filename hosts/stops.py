"""Requests to stop and to cancel, and the answers of the workers, as Valkey keeps them (contracts 2, Q 17).

Who asks a host to stop what it runs turns its switch on in the same step: after that nothing begins, so that
what must stop is all there. A request concerns only what was claimed before it (`at`, Valkey's clock): a host
that wakes later stops nothing newer. Functions raise redis-py's errors; each may be repeated after a lost
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import redis
from redis.exceptions import ResponseError

from hosts import keys, switches

_LUA = Path(__file__).parent / "lua"
_STOP = switches.SETS + (_LUA / "stop.lua").read_text()
_ORDERS, _ANSWER_STOP, _ASK_CANCEL, _ANSWER_CANCEL, _WITHDRAW_CANCEL = (
    (_LUA / f"{name}.lua").read_text()
    for name in ("orders", "answer_stop", "ask_cancel", "answer_cancel", "withdraw_cancel")
)
_STOP_ANSWER_MS = 60 * 60 * 1000
_CANCEL_REQUEST_MS = 60 * 1000
_CANCEL_ANSWER_MS = 5 * 60 * 1000
_REQUEST_ID = re.compile(r"[0-9a-zA-Z-]{1,64}")
_INSTANT = re.compile(rb"[0-9]{1,16}")
_CONTAINER = b"c:"


class Confirmed(StrEnum):
    """What a host says of a container: its engine said that it is gone, or has not said so yet."""

    GONE = "gone"
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request to stop what was claimed up to `at_ms` (Valkey's clock)."""

    request_id: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A request to stop that nobody has taken back: who, why and when (ms; 0: it does not say).

    `came_with_drain`: the end of its host's drain takes it back, and the end of the fleet's pause does not.
    """

    by: str
    reason: str
    at_ms: int
    came_with_drain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of one worker. `is_unreadable`: a request to stop stands that nobody of ours wrote.

    `listed` are the host's containers, read only while a request to stop stands. `cancels`: job id to the id
    of the request.
    """

    stop: StopRequest | None = None
    is_unreadable: bool = False
    listed: frozenset[str] = frozenset()
    cancels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A host's answer to the request of this id: what it says of each container, by name."""

    request_id: str
    containers: Mapping[str, Confirmed]


def ask(
    client: redis.Redis,
    hosts: Iterable[str],
    *,
    by: str,
    reason: str,
    request_id: str,
    only: str | None = None,
) -> StopRequest:
    """Pause the fleet and ask these hosts to stop what they run; with `only` drain that host and ask it.

    The switch has no end: it holds until it is taken back. A blank `reason` leaves that of a switch that
    holds, and whose that is.
    """
    switch = keys.pause(keys.FLEET) if only is None else keys.drain(only)
    asked = sorted({*hosts} if only is None else {only})
    by, reason = by[: switches.LONGEST_TEXT], reason[: switches.LONGEST_TEXT]
    at = client.register_script(_STOP)(
        keys=[switch, *(keys.stop_request(host) for host in asked)],
        args=[by, reason, request_id, "pause" if only is None else "drain"],
    )
    return StopRequest(request_id, int(at))


def read(client: redis.Redis, *, host: str, containers: str, job_ids: Sequence[str]) -> Asked:
    """Read what is asked of a worker and of these jobs of it; `containers` is the key of its list of them."""
    stands, request_id, at, listed, cancels = client.register_script(_ORDERS)(
        keys=[keys.stop_request(host), containers, *(keys.cancel_request(job_id) for job_id in job_ids)]
    )
    request = _request(_text(request_id), at)
    return Asked(
        stop=request,
        is_unreadable=bool(stands) and request is None,
        listed=frozenset(map(_text, listed)) if request else frozenset(),
        cancels={job: _text(one) for job, one in zip(job_ids, cancels, strict=True) if one},
    )


def standing(client: redis.Redis, hosts: Sequence[str]) -> Mapping[str, Standing]:
    """Read which requests to stop stand for these hosts; of one that is no hash, only that it does.

    What the server refuses is raised: whether a request stands is not known then.
    """
    with client.pipeline(transaction=False) as pipeline:
        for host in hosts:
            pipeline.hgetall(keys.stop_request(host))
        found = pipeline.execute(raise_on_error=False)
    return {host: _standing(fields) for host, fields in zip(hosts, found, strict=True) if fields}


def answer(client: redis.Redis, *, host: str, request_id: str, containers: Mapping[str, Confirmed]) -> None:
    """Answer a request to stop with what is known of each container."""
    said = [text for name, state in containers.items() for text in (name, state.value)]
    client.register_script(_ANSWER_STOP)(
        keys=[keys.stop_answer(host)], args=[_STOP_ANSWER_MS, request_id, *said]
    )


def answers(client: redis.Redis, hosts: Sequence[str]) -> Mapping[str, Answer]:
    """Read what these hosts answered last; one without an answer, or with one of no use, is left out."""
    with client.pipeline(transaction=False) as pipeline:
        for host in hosts:
            pipeline.hgetall(keys.stop_answer(host))
        found = pipeline.execute(raise_on_error=False)
    pairs = zip(hosts, found, strict=True)
    return {host: _answer(fields) for host, fields in pairs if isinstance(fields, dict) and fields}


def ask_cancel(client: redis.Redis, job_id: str, *, request_id: str) -> None:
    """Ask whoever runs the job to stop it; what was answered to an earlier request is forgotten."""
    client.register_script(_ASK_CANCEL)(
        keys=[keys.cancel_answer(job_id), keys.cancel_request(job_id)], args=[request_id, _CANCEL_REQUEST_MS]
    )


def answer_cancel(client: redis.Redis, job_id: str, *, request_id: str, host: str) -> None:
    """Answer with the worker's name that the job is being stopped; the request is done with."""
    client.register_script(_ANSWER_CANCEL)(
        keys=[keys.cancel_request(job_id), keys.cancel_answer(job_id)],
        args=[request_id, host, _CANCEL_ANSWER_MS],
    )


def withdraw_cancel(client: redis.Redis, job_id: str, *, request_id: str) -> str | None:
    """Take an unanswered request back; names the worker that has answered after all."""
    found = client.register_script(_WITHDRAW_CANCEL)(
        keys=[keys.cancel_request(job_id), keys.cancel_answer(job_id)], args=[request_id]
    )
    return _text(found) or None


def cancel_answers(client: redis.Redis, job_ids: Sequence[str]) -> Mapping[str, str]:
    """Read which worker answered for which of these jobs."""
    if not job_ids:
        return {}
    found = cast("list[bytes | None]", client.mget([keys.cancel_answer(job_id) for job_id in job_ids]))
    return {job_id: _text(name) for job_id, name in zip(job_ids, found, strict=True) if name}


def _request(request_id: str, at: bytes) -> StopRequest | None:
    if not (_REQUEST_ID.fullmatch(request_id) and _INSTANT.fullmatch(at)):
        return None
    return StopRequest(request_id, int(at))


def _standing(found: Mapping[bytes, bytes] | Exception) -> Standing:
    is_of_wrong_type = isinstance(found, ResponseError) and str(found).startswith("WRONGTYPE")
    if isinstance(found, Exception) and not is_of_wrong_type:
        raise found
    fields = {} if isinstance(found, Exception) else found
    by, reason = (_text(fields.get(name))[: switches.LONGEST_TEXT] for name in (b"by", b"reason"))
    at = fields.get(b"at", b"")
    return Standing(
        by=by,
        reason=reason,
        at_ms=int(at) if _INSTANT.fullmatch(at) else 0,
        came_with_drain=fields.get(b"with") == b"drain",
    )


def _answer(fields: Mapping[bytes, bytes]) -> Answer:
    states: dict[str, Confirmed] = {}
    for name, said in fields.items():
        # What is no word of ours confirms nothing.
        if name.startswith(_CONTAINER):
            is_gone = said == Confirmed.GONE.value.encode()
            states[_text(name.removeprefix(_CONTAINER))] = (
                Confirmed.GONE if is_gone else Confirmed.UNCONFIRMED
            )
    return Answer(_text(fields.get(b"request", b"")), states)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
