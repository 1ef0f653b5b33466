"""`run` of an entry: what is run, read by whether it is local work or a forge's (Q 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatch.ids import Kind
from dispatch.jobrules import find_control, is_command, is_flow_name, is_image, is_line, is_name
from dispatch.jobs import MAX_TASK_BYTES
from dispatch.triggers import secret_fields
from dispatch.triggers.entries import Run
from dispatch.triggers.field_values import flag, number, text
from dispatch.triggers.given import Given
from dispatch.waits.conditions import FIELD as WAIT_FOR
from dispatch.waits.conditions import MOST_CONDITIONS

MOST_INSTRUCTIONS = 2000
_MOST_TURNS = 2**31 - 1
# Rules whose events are about a project, not about one of its repositories.
_NO_REPOSITORY = frozenset({"label", "comment"})

_FLAG_RULE = "true or false"
_FOLDER_RULE = "the path of a folder, without blanks around it"
_TASK_RULE = f"a text of at most {MAX_TASK_BYTES} bytes, with no control characters but tabs and line ends"
_FLOW_RULE = "a skill's name: 1 to 64 of a-z, 0-9, - and _, a letter or digit at both ends"
_INSTRUCTIONS_RULE = f"a text of at most {MOST_INSTRUCTIONS} characters"
_REPOSITORY_RULE = "the name of a repository, without a slash: work items of azure belong to none"
_COMMAND_RULE = "one line without a slash before it or blanks around it"
_IMAGE_RULE = "an image reference such as pi-job:latest"
_NAME_RULE = "a name without spaces, of at most 200 printable ASCII characters"


def read(given: Given, *, kind: Kind | None, type_: str | None, is_schedule: bool) -> Run | None:
    """Read what an entry of this type (of `on`) runs; None without a known kind."""
    own = _of_a_folder(given) if is_schedule else _of_a_forge(given, kind, type_)
    shared: dict[str, Any] = {
        "command": given.take("command", _COMMAND_RULE, text(is_command)),
        "packages": given.take("packages", _FLAG_RULE, flag),
        "image": given.take("image", _IMAGE_RULE, text(is_image)),
        "skills_dir": given.take("skillsDir", _FOLDER_RULE, text(is_line)),
        "resume": given.take("resume", _FLAG_RULE, flag),
        "secrets": secret_fields.references(given),
        "secrets_profile": secret_fields.profile(given),
        "wait_for": _wait_for(given.row),
    }
    _check_company(given, is_schedule=is_schedule)
    return Run(kind=kind, **own, **shared) if kind else None


def _of_a_folder(given: Given) -> dict[str, Any]:
    given.refuse(["repository"], "a schedule works in a folder")
    given.refuse(["instructions"], "a schedule has a task instead")
    given.refuse(["replicas"], "one folder has one job at a time")
    if given.row.get("resume") is True:
        given.wrong("resume", "is true; allowed is false, since a schedule has no session to resume")
    found: dict[str, Any] = {
        "folder": given.needed("folder", "the path of a folder", text()),
        "flow": given.take("flow", "one line without blanks around it", text(is_line)),
        "github": given.take("github", _FLAG_RULE, flag),
        "provider": given.take("provider", _NAME_RULE, text(is_name)),
        "model": given.take("model", _NAME_RULE, text(is_name)),
        "max_turns": given.take(
            "maxTurns", f"a whole number from 1 to {_MOST_TURNS}", number(least=1, most=_MOST_TURNS)
        ),
    }
    if not given.has("command"):
        found["task"] = given.needed("task", _TASK_RULE, text(_is_task))
    return found


def _of_a_forge(given: Given, kind: Kind | None, type_: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "flow": given.take("flow", _FLOW_RULE, text(is_flow_name)),
        "instructions": given.take("instructions", _INSTRUCTIONS_RULE, text(_is_short)),
        "replicas": given.take("replicas", "2 or 3", number(least=2, most=3)),
    }
    if kind is Kind.AZURE and type_ in _NO_REPOSITORY:
        found["repository"] = given.needed("repository", _REPOSITORY_RULE, text(_is_repository))
    elif kind and type_:
        given.refuse(["repository"], "only rules of azure about labels and comments have to name one")
    return found


def _is_task(task: str) -> bool:
    # Each character once: a long task has few different ones.
    return len(task.encode()) <= MAX_TASK_BYTES and find_control("".join(set(task))) is None


def _is_short(instructions: str) -> bool:
    return len(instructions) <= MOST_INSTRUCTIONS


def _is_repository(name: str) -> bool:
    return is_line(name) and "/" not in name


def _check_company(given: Given, *, is_schedule: bool) -> None:
    """Note which fields do not go together."""
    if not given.has("flow") and not given.has("command"):
        meant = given.meant("flow", "command")
        given.wrong("flow", f"is missing{meant}; add a flow, or a command instead")
    if given.has("command"):
        given.clash(["flow", "task" if is_schedule else "instructions"], "command")
    if given.row.get("resume") is True:
        given.clash(["command", "secrets"] + ([] if is_schedule else ["replicas"]), '"resume": true')


def _wait_for(row: Mapping[str, Any]) -> tuple[Mapping[str, str], ...] | None:
    """Keep the conditions as authored; what is wrong with them is told by `dispatch.waits.conditions`."""
    listed = row.get(WAIT_FOR)
    return tuple(listed[:MOST_CONDITIONS]) if isinstance(listed, list) else None
