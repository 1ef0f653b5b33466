"""What one variable of the environment is, and the words that some of them choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class BackendKind(StrEnum):
    """What runs a job: a container engine, or the shipped scripted agent without any isolation."""

    DOCKER = "docker"
    PROCESS = "process"


class CapAction(StrEnum):
    """What becomes of a job that a spend cap holds up: an end without a run, or sleep until there is room."""

    REFUSE = "refuse"
    PARK = "park"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One row. `field` is the attribute of `Config` (None: read before the configuration, or by name only).

    `default` and `bounds` are the words of the documentation; `value` is the default where it is a constant.
    A secret may also stand in a file that `NAME_FILE` names, and its text is never repeated in a message.
    """

    name: str
    field: str | None
    default: str
    meaning: str
    parse: Callable[[str], Any]
    value: Any = None
    bounds: str = ""
    secret: bool = False
