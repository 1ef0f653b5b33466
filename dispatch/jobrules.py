"""Which jobs make sense: the rules of Q 2.2 and 5.1 on a job's fields, for callers and the queue alike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from dispatch.jobdata import CronTrigger, ForgeTrigger, JobData
from pidispatch_site import parsing

_FLOW = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")

# What is text in a control character; the others steer terminals and parsers.
_TEXT_CONTROLS = frozenset("\t\n\r")

LOCAL_FIELDS = frozenset({"folder", "task", "chain_depth", "parent_job_id", "github"})
FORGE_FIELDS = frozenset(
    {"resume", "repo", "project_id", "azure", "target", "instructions", "replica", "replicas"}
)


class Flaw(StrEnum):
    """Why a payload is no job of ours; safe to log."""

    TOO_LARGE = "too-large"
    NOT_JSON = "not-json"
    DUPLICATE_KEY = "duplicate-key"
    NOT_A_CALL = "not-a-call"
    FOREIGN_CALLABLE = "foreign-callable"
    WRONG_ARGUMENTS = "wrong-arguments"
    UNKNOWN_VERSION = "unknown-version"
    FIELD_MISSING = "field-missing"
    FIELD_UNKNOWN = "field-unknown"
    FIELD_TYPE = "field-type"
    FIELD_VALUE = "field-value"
    FIELD_MISPLACED = "field-misplaced"
    FIELD_CONFLICT = "field-conflict"


@dataclass(frozen=True, slots=True)
class Malformed:
    """What stands in the queue is no job of ours: why, and which of our fields it is about, if any.

    Both are words of our own, never of the payload, so both may be logged.
    """

    detail: Flaw
    field: str | None = None


def wire_name(attribute: str) -> str:
    """Write an attribute's name as it stands on the wire: `max_turns` is `maxTurns`."""
    head, *rest = attribute.split("_")
    return head + "".join(part.capitalize() for part in rest)


def is_well_formed(text: str) -> bool:
    """Tell whether the text can be written as UTF-8: it holds no half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_line(text: str) -> bool:
    """Tell whether the text is one non-empty line of proper characters without blanks at its ends."""
    # A byte order mark is a blank to the reference and none to Python.
    return (
        bool(text)
        and text == text.strip().strip("\ufeff")
        and not any(unicodedata.category(char) in {"Cc", "Cs"} for char in text)
    )


def is_flow_name(text: str) -> bool:
    """Tell whether the text can name a skill: 1 to 64 of `a-z 0-9 - _`, a letter or digit at both ends."""
    return _FLOW.fullmatch(text) is not None


def is_command(text: str) -> bool:
    """Tell whether the text is a command with its arguments: one line that does not begin with a slash."""
    return is_line(text) and not text.startswith("/")


def is_name(text: str) -> bool:
    """Tell whether the text can name a provider or a model: as PI_PROVIDER and PI_MODEL may."""
    return _is_read_by(parsing.token, text)


def is_image(text: str) -> bool:
    """Tell whether the text can be an image reference: as PI_JOB_IMAGE may."""
    return _is_read_by(parsing.image, text)


def find_control(text: str) -> int | None:
    """Find the first control character that is neither tab nor line end; None in what is text throughout."""
    return next(
        (
            index
            for index, char in enumerate(text)
            if unicodedata.category(char) == "Cc" and char not in _TEXT_CONTROLS
        ),
        None,
    )


def is_folder(text: str) -> bool:
    """Tell whether the text is an absolute path that the kernel could open and a record could name."""
    return text.startswith("/") and "\0" not in text and is_well_formed(text)


def is_positive(number: int) -> bool:
    """Tell whether the number counts something: 1 and up, within what every consumer's integer holds."""
    return 1 <= number < 2**31


# A flow need not be a skill's name here: it is a hint in the prompt, and schedules may name any (E 1.7).
_VALUES: Mapping[str, Callable[[Any], bool]] = {
    "flow": is_line,
    "command": is_command,
    "provider": is_name,
    "model": is_name,
    "max_turns": is_positive,
    "image": is_image,
    "skills_dir": is_line,
    "secrets_profile": is_line,
    "folder": is_folder,
    "chain_depth": is_positive,
    "parent_job_id": is_line,
    "repo": is_line,
    "replica": is_positive,
    "replicas": lambda number: number in {2, 3},
}


def find_flaw(job: JobData) -> Malformed | None:
    """Find the first thing about a job that makes no sense; None when it is a job that we could run."""
    return _find_misplaced(job) or _find_bad_value(job) or _find_conflict(job) or _find_missing(job)


def _is_read_by(parse: Callable[[str], str], text: str) -> bool:
    try:
        return parse(text) == text
    except parsing.Unusable:
        return False


def _is_given(job: JobData, attribute: str) -> bool:
    return getattr(job, attribute) is not None


def _find_misplaced(job: JobData) -> Malformed | None:
    foreign = LOCAL_FIELDS if job.kind.is_forge else FORGE_FIELDS
    for item in fields(JobData):
        if item.name in foreign and _is_given(job, item.name):
            return Malformed(Flaw.FIELD_MISPLACED, wire_name(item.name))
    own = ForgeTrigger if job.kind.is_forge else CronTrigger
    if job.trigger is not None and not isinstance(job.trigger, own):
        return Malformed(Flaw.FIELD_MISPLACED, "trigger")
    return None


def _find_bad_value(job: JobData) -> Malformed | None:
    for name, is_good in _VALUES.items():
        value = getattr(job, name)
        if value is not None and not is_good(value):
            return Malformed(Flaw.FIELD_VALUE, wire_name(name))
    return None


def _find_conflict(job: JobData) -> Malformed | None:
    if job.command is not None and job.flow is not None:
        return Malformed(Flaw.FIELD_CONFLICT, "flow")
    if job.command is not None and job.task is not None:
        return Malformed(Flaw.FIELD_CONFLICT, "task")
    if (job.chain_depth is None) != (job.parent_job_id is None):
        return Malformed(Flaw.FIELD_CONFLICT, "chainDepth")
    if (job.replica is None) != (job.replicas is None) or (job.replica or 0) > (job.replicas or 0):
        return Malformed(Flaw.FIELD_CONFLICT, "replica")
    return None


def _find_missing(job: JobData) -> Malformed | None:
    needed = ["repo", "target", "trigger"] if job.kind.is_forge else ["folder"]
    if job.command is None:
        needed.append("flow" if job.kind.is_forge else "task")
    missing = [name for name in needed if not _is_given(job, name)]
    return Malformed(Flaw.FIELD_MISSING, missing[0]) if missing else None
