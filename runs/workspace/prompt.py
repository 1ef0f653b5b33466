"""The words a local job says to the agent: `/job/prompt.md` (E 3.5)."""

from __future__ import annotations

_POINTER = "The context of this job (what started it, on which folder and commit) is in /job/event.json."


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
