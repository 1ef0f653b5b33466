"""What a check found: ok, a warning or a failure, said in one line, with what to do about it (Q 13)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How a check came out. A warning never makes a command fail."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line. `check` is the token of what was looked at, `area` the group it is told in.

    `fix` says what to do and is never blank for what is not ok; `hosts` are those that it speaks of.
    """

    area: str
    check: str
    mark: Mark
    text: str
    fix: str = ""
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would leave a person alone with a problem."""
        if self.mark is not Mark.OK and not self.fix:
            raise ValueError(f"the finding {self.check} names no fix")


@dataclass(frozen=True, slots=True)
class Area:
    """Makes the findings of one area."""

    name: str

    def ok(self, check: str, text: str) -> Finding:
        """Say that nothing is wrong."""
        return Finding(area=self.name, check=check, mark=Mark.OK, text=text)

    def warning(self, check: str, text: str, fix: str, *, hosts: tuple[str, ...] = ()) -> Finding:
        """Say what may be wrong, or is and hinders nothing yet."""
        return Finding(area=self.name, check=check, mark=Mark.WARNING, text=text, fix=fix, hosts=hosts)

    def failed(self, check: str, text: str, fix: str, *, hosts: tuple[str, ...] = ()) -> Finding:
        """Say what is wrong."""
        return Finding(area=self.name, check=check, mark=Mark.FAILED, text=text, fix=fix, hosts=hosts)
