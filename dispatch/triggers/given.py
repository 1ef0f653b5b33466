"""The fields of one object of an entry: each is read as it stands, or what is wrong with it is noted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dispatch.operator_files.fields import Fields
from dispatch.operator_files.problems import shown
from dispatch.triggers.field_values import is_broken
from dispatch.triggers.meant import key_meant

Value = TypeVar("Value")


class Given(Fields):
    """`Fields` whose values keep the blanks around them, as the entries of a triggers file do."""

    def has(self, field: str) -> bool:
        """Tell whether the field is there, whatever its value."""
        return field in self.row

    def take(self, field: str, allowed: str, read: Callable[[Any], Value | None]) -> Value | None:
        """Read a field; None without it. If `read` makes nothing of it, that is noted."""
        return self.judged(field, self.row[field], allowed, read) if field in self.row else None

    def needed(self, field: str, allowed: str, read: Callable[[Any], Value | None]) -> Value | None:
        """Read a field that has to be there; as `take`."""
        if field not in self.row:
            self.wrong(field, f"is missing{self.meant(field)}; allowed is {allowed}")
        return self.take(field, allowed, read)

    def meant(self, *fields: str) -> str:
        """Ask whether another key that is there stands for one of these, as ` (is … a slip for it?)`."""
        found = next((key for key in self.row if key not in fields and key_meant(key, fields)), None)
        return f" (is {shown(found)} a slip for it?)" if found is not None else ""

    def judged(
        self, place: str, value: object, allowed: str, read: Callable[[Any], Value | None]
    ) -> Value | None:
        """Read a value that stands at `place` within the object, such as `any[1]`."""
        found = read(value)
        if found is None:
            broken = ", which holds half a character or NUL" if is_broken(value) else ""
            self.wrong(place, f"is {shown(value)}{broken}; allowed is {allowed}")
        return found

    def texts(self, field: str, allowed: str, read: Callable[[Any], str | None]) -> tuple[str, ...] | None:
        """Read a list of texts, which may be empty; None without it, or when something is wrong with it."""
        listed = self.take(field, f"a list, each item {allowed}", _list)
        if listed is None:
            return None
        found = [self.judged(f"{field}[{at}]", one, allowed, read) for at, one in enumerate(listed)]
        known = [one for one in found if one is not None]
        return tuple(known) if len(known) == len(found) else None

    def inside(self, field: str, row: Mapping[str, Any]) -> Given:
        """Go into the object that stands in this field."""
        return Given(row, f"{self._place}.{field}", self._problems)

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Note each of these fields that is there and has no business here."""
        for name in names:
            if name in self.row:
                self.wrong(name, f"has no meaning here, since {why}; take it out")

    def clash(self, names: Iterable[str], other: str) -> None:
        """Note each of these fields that is there and does not go together with another one."""
        for name in names:
            if name in self.row:
                self.wrong(name, f"stands beside {other}; allowed is one of the two")


def _list(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else None
