"""Jobs: what callers may ask for, what this worker can do already, and the callable that RQ's hash names.

The types are in `dispatch.jobdata`, the wire in `dispatch.payload`; both are reached from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NoReturn, TypedDict, Unpack

from dispatch.ids import Kind
from dispatch.jobdata import (
    AzureRepository,
    Comment,
    Condition,
    CronTrigger,
    ForgeTrigger,
    JobData,
    Matched,
    Review,
    Sender,
    Target,
)
from dispatch.jobrules import (
    Flaw,
    Malformed,
    find_control,
    is_command,
    is_flow_name,
    is_folder,
    is_image,
    is_name,
    is_positive,
    is_well_formed,
)
from dispatch.payload import CALLABLE, decode, encode
from dispatch.waits import conditions
from pidispatch_site.errors import ConfigurationError

__all__ = [
    "CALLABLE",
    "AzureRepository",
    "Comment",
    "CronTrigger",
    "Flaw",
    "ForgeTrigger",
    "JobData",
    "Kind",
    "Malformed",
    "Matched",
    "Review",
    "Sender",
    "Target",
    "Wishes",
    "decode",
    "encode",
    "local_job",
    "run",
    "unavailable_field",
]

# Longer than anybody writes, and short enough for a prompt, for Valkey and for a page.
MAX_TASK_BYTES = 256 * 1024

# What a job may ask for that is not built yet, by the field's name on the wire. The issue that builds it
# removes the row.
_NOT_AVAILABLE: tuple[tuple[str, Callable[[JobData], bool]], ...] = (
    ("github", lambda job: job.github is True),
    ("packages", lambda job: job.packages is True),
    ("skillsDir", lambda job: job.skills_dir is not None),
    ("secrets", lambda job: bool(job.secrets)),
    ("secretsProfile", lambda job: job.secrets_profile is not None),
    ("resume", lambda job: job.resume is True),
    ("replica", lambda job: job.replica is not None),
    ("replicas", lambda job: job.replicas is not None),
)


def run(job: object = None) -> NoReturn:
    """Refuse to run: a stock RQ worker on our queue must not be able to skip the gates and the budget.

    The product's own worker reads the job's data and never calls this.
    """
    raise RuntimeError(
        "pi-dispatch jobs run only under `manage.py runworker`, which admits, pays for and records them;"
        " point no other RQ worker at this queue"
    )


def unavailable_field(job: JobData, *, kinds: Collection[Kind]) -> str | None:
    """Name the first field by which a job asks for a part that is not built yet; None when there is none.

    `kinds` are those that the worker can prepare a workspace for.
    """
    if job.kind not in kinds:
        return "kind"
    return next((name for name, asks in _NOT_AVAILABLE if asks(job)), None)


class Wishes(TypedDict, total=False):
    """What may be asked of a local job; absent and None are the same.

    `wait_for` has 1 to 4 conditions of Q 9.1 as they stand on the wire.
    """

    task: str | None
    flow: str | None
    command: str | None
    provider: str | None
    model: str | None
    max_turns: int | None
    image: str | None
    wait_for: tuple[Condition, ...] | None


def local_job(folder: str, **wishes: Unpack[Wishes]) -> JobData:
    """Build the job that a person asks for on a folder of this host, given by its canonical absolute path.

    Raises ConfigurationError with every problem found.
    """
    job = JobData(kind=Kind.LOCAL, folder=folder, **wishes)
    problems = [*_entry_problems(job), *_text_problems(folder, job)]
    if job.max_turns is not None and not is_positive(job.max_turns):
        problems.append(f"max turns is {job.max_turns}; allowed is a whole number from 1")
    if job.wait_for is not None:
        found = conditions.problems_of(job.wait_for, place="waitFor")
        problems += (f"{one.place} {one.text}" for one in found)
    if problems:
        raise ConfigurationError(*problems)
    return job


def _entry_problems(job: JobData) -> list[str]:
    flow, command = job.flow, job.command
    problems: list[str] = []
    if flow is not None and command is not None:
        problems.append("both a flow and a command are given; name one of them")
    if flow is not None and not is_flow_name(flow):
        problems.append(
            f"flow {_quoted(flow)} is no flow name; allowed are 1 to 64 lower-case letters, digits, - and _,"
            " with a letter or digit at both ends"
        )
    if command is None:
        return problems + _task_problems(job.task)
    if not is_command(command):
        problems.append(
            f"command {_quoted(command)} is not usable; write the name and its arguments on one line,"
            " without the slash and without blanks at the ends"
        )
    if job.task is not None:
        problems.append("a command takes no task; put what it needs into its arguments")
    return problems


def _task_problems(task: str | None) -> list[str]:
    if task is None or not task.strip():
        return ["the task is empty; say what is to be done"]
    if not is_well_formed(task):
        return ["the task is not well-formed text; pass it as UTF-8"]
    size = len(task.encode())
    if size > MAX_TASK_BYTES:
        limit = f"the task has {size} bytes, allowed are {MAX_TASK_BYTES}"
        return [f"{limit}; put the long part into a file of the repository and name it in the task"]
    return _control_problems(task)


def _control_problems(task: str) -> list[str]:
    position = find_control(task)
    if position is None:
        return []
    found = f"the task holds the control character U+{ord(task[position]):04X} at position {position}"
    return [f"{found}; only tabs and line ends are allowed"]


def _text_problems(folder: str, job: JobData) -> list[str]:
    problems: list[str] = []
    if not is_folder(folder):
        problems.append(f"folder {_quoted(folder)} is not usable; give an absolute path of UTF-8 characters")
    for name, text in (("provider", job.provider), ("model", job.model)):
        if text is not None and not is_name(text):
            problems.append(
                f"{name} {_quoted(text)} is not usable; give a name without spaces, of at most 200 printable"
                " ASCII characters"
            )
    if job.image is not None and not is_image(job.image):
        problems.append(
            f"image {_quoted(job.image)} is no image reference; give a name like pi-job:latest, without"
            " spaces and beginning with a letter or digit"
        )
    return problems


def _quoted(text: str) -> str:
    """Show a caller's own word in an error: escaped, and cut where it is no longer of use."""
    shown = ascii(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
