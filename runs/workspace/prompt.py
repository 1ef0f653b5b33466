"""The words a local job says to the agent: `/job/prompt.md` (E 3.5)."""

from __future__ import annotations

from pidispatch_site.errors import ConfigurationError

TASK_BYTES_MAX = 64 * 1024

_POINTER = "The context of this job (what started it, on which folder and commit) is in /job/event.json."
# Tabs and line ends of both kinds are text; the other control characters steer terminals and parsers.
_ALLOWED_CONTROLS = frozenset("\t\n\r")


def local_prompt(*, task: str | None = None, flow: str | None = None, command: str | None = None) -> str:
    """Build the complete prompt of a local job.

    A command job is exactly `/<command>`. Else a line for the flow (if any), a line for the context, an empty
    line, and the task verbatim, last and with nothing after it.
    """
    if command is not None:
        return f"/{command}"
    skill = [f'Use the skill "{flow}" for this job.'] if flow and not flow.isspace() else []
    return "\n".join([*skill, _POINTER, "", task or ""])


def prompt_bytes(prompt: str) -> bytes:
    """Encode the prompt as UTF-8; what is no text (a lone surrogate) becomes `?`, never an error."""
    return prompt.encode("utf-8", "replace")


def check_task(task: str) -> str:
    """Return the task as it is, or raise a `ConfigurationError` that says what is wrong with it.

    Refused: blank; more than 64 KiB of UTF-8 (what a person writes is a page; more belongs into a file of the
    folder); control characters other than tab and line ends; text that is not Unicode.
    """
    problem = _task_problem(task)
    if problem is not None:
        raise ConfigurationError(problem)
    return task


def _task_problem(task: str) -> str | None:
    if not task.strip():
        return "The task is empty: say with --task what the agent should do."
    try:
        size_bytes = len(task.encode("utf-8"))
    except UnicodeEncodeError:
        return "The task is not valid UTF-8 text."
    if size_bytes > TASK_BYTES_MAX:
        return (
            f"The task has {size_bytes} bytes; {TASK_BYTES_MAX} (64 KiB) are allowed. "
            "Put long material into a file of the folder, commit it and name it in the task."
        )
    for position, char in enumerate(task):
        if (char < " " or char == "\x7f") and char not in _ALLOWED_CONTROLS:
            return (
                f"The task holds the control character U+{ord(char):04X} at position {position}; "
                "only tabs and line ends are allowed."
            )
    return None
