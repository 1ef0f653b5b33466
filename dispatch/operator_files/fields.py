"""The fields of one object in an operator's file: each is read, or what is wrong with it is noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dispatch.operator_files.problems import Problem, shown
from runs.workspace.scope import BLANKS

Value = TypeVar("Value")


class Fields:
    """The object `row` that stands at `place`; what is wrong goes into `problems`."""

    def __init__(self, row: Mapping[str, Any], place: str, problems: list[Problem]) -> None:
        self.row = row
        self._place = place
        self._problems = problems

    def required(self, field: str, allowed: str, read: Callable[[str], Value | None]) -> Value | None:
        """Read a text that has to be there; as `optional`."""
        if field not in self.row:
            self.wrong(field, f"is missing; allowed is {allowed}")
        return self.optional(field, allowed, read)

    def optional(self, field: str, allowed: str, read: Callable[[str], Value | None]) -> Value | None:
        """Read a text without the blanks around it; None without the field.

        If `read` makes nothing of it, that is noted as wrong, with what is `allowed`.
        """
        return self.checked(field, self.row[field], allowed, read) if field in self.row else None

    def checked(
        self, place: str, value: object, allowed: str, read: Callable[[str], Value | None]
    ) -> Value | None:
        """Read a value that stands at `place` within the object, such as `days[1]`."""
        found = read(value.strip(BLANKS)) if isinstance(value, str) else None
        if found is None:
            self.wrong(place, f"is {shown(value)}; allowed is {allowed}")
        return found

    def wrong(self, place: str, text: str) -> None:
        """Note what is wrong at `place` within the object."""
        self._problems.append(Problem(f"{self._place}.{place}", text))
