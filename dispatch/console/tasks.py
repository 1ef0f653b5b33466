"""The task of a job out of a file or a pipe: as long as a job's may be, and in no list of processes."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from dispatch.jobs import MAX_TASK_BYTES
from pidispatch_site.errors import ConfigurationError

STDIN = "-"


def read_task(named: str, *, stdin: BinaryIO) -> str:
    """Read the task from the file of this name, `-` for `stdin`, without the line breaks at its end.

    Raises `ConfigurationError` for what cannot be read, is too long or is no UTF-8; whether it is empty is
    the job's question.
    """
    if named == STDIN:
        return _text(stdin.read(MAX_TASK_BYTES + 1), "the standard input")
    try:
        with Path(named).open("rb") as file:
            content = file.read(MAX_TASK_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"the task file {named!r} cannot be read: {error.strerror}") from error
    return _text(content, f"the task file {named}")


def _text(content: bytes, source: str) -> str:
    if len(content) > MAX_TASK_BYTES:
        raise ConfigurationError(
            f"the task in {source} has more than {MAX_TASK_BYTES} bytes; put the long part into a file of the"
            " repository and name it in the task"
        )
    try:
        return content.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the task in {source} is not UTF-8 text; save it as UTF-8") from error
