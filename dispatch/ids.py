"""The deterministic ids of jobs (Q 2.3), and the same ids in the alphabet that RQ allows.

Whoever enqueues the same work twice must arrive at the same id, so an id is a pure function of what is asked.
Texts are hashed as the reference hashes them: UTF-8, a lone surrogate as U+FFFD, NUL between the parts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from dispatch.instants import epoch_ms

# An id becomes the stem of a file name; 200 bytes leave room for `.json` and a temporary suffix within 255.
MAX_ID_BYTES = 200

# What the ids of a schedule's jobs begin with.
OCCURRENCE = "repeat:"
# What those begin with that a person starts.
MANUAL = "manual:"

_INSTANT = re.compile(r"[0-9]{1,15}")
_RQ_ID = re.compile(r"(?:[A-Za-z0-9-]|_[0-9a-f]{2})+")
_ESCAPED = re.compile(rb"[^A-Za-z0-9-]")
_ESCAPE = re.compile(rb"_([0-9a-f]{2})")


class Kind(StrEnum):
    """Where a job's repository lives: a folder of this host, or a forge."""

    LOCAL = "local"
    GITHUB = "github"
    GITLAB = "gitlab"
    FORGEJO = "forgejo"
    AZURE = "azure"

    @property
    def is_forge(self) -> bool:
        """Defined as "not local", so that a new forge inherits every gate (Q 2.1)."""
        return self is not Kind.LOCAL


class TargetType(StrEnum):
    """What a forge job is about."""

    ISSUE = "issue"
    PULL_REQUEST = "pull_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """How one forge's items are written in ids.

    The prefix of a delivery's id, the mark before a pull request's number, and the forge's word for closing
    one (None: it has none).
    """

    prefix: str
    pull_request_mark: str
    close_word: str | None


SPELLINGS: Mapping[Kind, Spelling] = {
    Kind.GITHUB: Spelling(prefix="gh-", pull_request_mark="#", close_word="closed"),
    Kind.GITLAB: Spelling(prefix="gl-", pull_request_mark="!", close_word="close"),
    Kind.FORGEJO: Spelling(prefix="fj-", pull_request_mark="#", close_word="closed"),
    Kind.AZURE: Spelling(prefix="az-", pull_request_mark="!", close_word=None),
}


def _well_formed(text: str) -> str:
    """Read the text as UTF-16 would: halves that belong together joined, a lone one replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(map(_well_formed, parts)).encode()).hexdigest()[:16]


def local_id(
    folder: str,
    *,
    flow: str | None = None,
    command: str | None = None,
    task: str | None = None,
    now: datetime,
) -> str:
    """Name a run that a person asks for: same words, same folder, same UTC minute is the same job.

    A command takes the flow's place as `cmd:<command>`. Raises ValueError for a `now` without a time zone.
    """
    if now.tzinfo is None:
        raise ValueError("an id needs an instant with a time zone")
    minute = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")
    return f"local-{_digest(folder, slot_of(flow=flow, command=command), task or '', minute)}"


def chained_id(parent_job_id: str, *, flow: str | None, task: str | None) -> str:
    """Name a child that a job asks for; no time is in it, so a retried parent asks for the same children."""
    return f"chain-{_digest(parent_job_id, flow or '', task or '')}"


def occurrence_id(schedule_id: str, *, instant: datetime) -> str:
    """Name one instant of a schedule: `repeat:<schedule>:<epoch ms>`."""
    return f"{OCCURRENCE}{schedule_id}:{epoch_ms(instant)}"


def manual_id(schedule_id: str, *, instant: datetime) -> str:
    """Name a schedule's job that a person starts at this instant: `manual:<schedule>:<epoch ms>` (Q 17)."""
    return f"{MANUAL}{schedule_id}:{epoch_ms(instant)}"


def occurrence_of(job_id: str) -> tuple[str, int | None] | None:
    """Read what `occurrence_id` wrote: the schedule and its instant (ms), None for one that is no number.

    None for the id of a job that no schedule started, and for an occurrence that names no schedule.
    """
    if not job_id.startswith(OCCURRENCE):
        return None
    schedule_id, _, instant = job_id.removeprefix(OCCURRENCE).rpartition(":")
    if not schedule_id:
        return None
    return schedule_id, int(instant) if _INSTANT.fullmatch(instant) else None


def delivery_id(kind: str, delivery: object, *, replica: object = None) -> str:
    """Name a forge's delivery, so that a redelivery is the same job; `replica` counts from 1.

    Raises ValueError, its text free of anything delivered, when the forge is unknown, when the delivery has
    no usable id (never replaced by a random one) or when the replica is no positive whole number.
    """
    spelling = SPELLINGS.get(Kind(kind)) if kind in set(Kind) else None
    if spelling is None:
        raise ValueError("a delivery comes from a known forge")
    if not isinstance(delivery, str) or not delivery:
        raise ValueError("a delivery needs a non-empty id of its own")
    natural = spelling.prefix + delivery
    if replica is not None:
        if type(replica) is not int or replica < 1:
            raise ValueError("a replica is counted with whole numbers from 1")
        natural += f"-r{replica}"
    _bytes_of(natural)
    return natural


def slot_of(*, flow: str | None, command: str | None) -> str:
    """Say in one text which flow or command is meant: a command takes the flow's place as `cmd:<command>`."""
    return f"cmd:{command}" if command else flow or ""


def is_closing(kind: Kind, *, matched_type: str, matched_action: str | None) -> bool:
    """Tell whether the trigger that matched is about an item being closed (Q 2.3)."""
    if matched_type == "issue":
        return True
    spelling = SPELLINGS.get(kind)
    word = spelling.close_word if spelling else None
    return matched_type == "pull_request" and word is not None and matched_action == word


def window_key(
    kind: Kind,
    *,
    repo: str,
    target: TargetType,
    number: int,
    slot: str,
    closing: bool = False,
    replica: int | None = None,
) -> str:
    """Name what a delivery means: deliveries of one key are one job for ten minutes (Q 2.3, second layer).

    `slot` is of `slot_of`, `closing` of `is_closing`. An issue's mark is always `#`; a pull request's differs
    by forge, because some number both independently.
    """
    sibling = "" if replica is None else f":r{replica}"
    item = target_label(kind, repo=repo, target=target, number=number)
    return f"{item}:{'closed:' if closing else ''}{slot}{sibling}"


def target_label(kind: Kind, *, repo: str, target: TargetType, number: int) -> str:
    """Write an item of a forge in short: `acme/web#7`, or `acme/web!7` for a pull request of some forges."""
    spelling = SPELLINGS.get(kind)
    mark = spelling.pull_request_mark if spelling and target is TargetType.PULL_REQUEST else "#"
    return f"{repo}{mark}{number}"


def _bytes_of(natural: str) -> bytes:
    try:
        encoded = natural.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a job id must be well-formed Unicode") from error
    if not 1 <= len(encoded) <= MAX_ID_BYTES:
        raise ValueError(f"a job id has 1 to {MAX_ID_BYTES} bytes, this one {len(encoded)}")
    return encoded


def rq_id(natural: str) -> str:
    """Write a job id in RQ's alphabet, so that different ids stay different.

    Each UTF-8 byte outside `[A-Za-z0-9-]`, `_` included, becomes `_` and two lower-case hex digits. Raises
    ValueError for an id that is empty, longer than MAX_ID_BYTES, or no well-formed Unicode.
    """
    return _ESCAPED.sub(lambda hit: b"_%02x" % hit[0][0], _bytes_of(natural)).decode("ascii")


def natural_id(rq: str) -> str | None:
    """Read back what `rq_id` wrote; None when it writes no id so (a foreign job in the queue)."""
    if not _RQ_ID.fullmatch(rq):
        return None
    encoded = _ESCAPE.sub(lambda hit: bytes.fromhex(hit[1].decode()), rq.encode("ascii"))
    try:
        natural = encoded.decode()
        return natural if rq_id(natural) == rq else None
    except ValueError:
        return None
