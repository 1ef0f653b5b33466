"""The six fields of a cron pattern: which values each has, by number and by name."""

from __future__ import annotations

from dataclasses import dataclass

from dispatch.operator_files.problems import shown


class PatternError(ValueError):
    """A pattern that is refused: what was found and what is allowed, to go on after the pattern's place."""


@dataclass(frozen=True, slots=True)
class Field:
    """One of the six: its values and, from `low` on, their names. Each refusal is a PatternError."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    # Of days of the month only those that every month has.
    high_hashed: int = 0

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1

    @property
    def is_weekday(self) -> bool:
        """Whether 7 is Sunday, and days of the month such as 5L may stand here."""
        return self.name == WEEKDAY

    def allowed(self) -> str:
        """Say what may stand here."""
        words = f", {self.names[0]} to {self.names[-1]}" if self.names else ""
        more = {DAY: ", L (the last day)", WEEKDAY: ", 5L (the last Friday), 5#2 (the second), 7 (Sunday)"}
        return (
            f"{self.low} to {self.high}{words}, *, a range a-b, a step /n, a list a,b,"
            f" H, H(a-b), H/n{more.get(self.name, '')}"
        )

    def number(self, text: str) -> int:
        """Read one value, given as a number or by its name."""
        if text in self.names:
            return self.names.index(text) + self.low
        high = 7 if self.is_weekday else self.high
        if not text.isdigit() or not self.low <= int(text) <= high:
            raise self.refused(text)
        return int(text)

    def step(self, text: str) -> int:
        """Read what follows a slash; one beyond the field would never be counted out."""
        if not 1 <= int(text) <= self.size:
            raise PatternError(
                f"has the step /{text} in its {self.name} field; allowed is /1 to /{self.size}"
            )
        return int(text)

    def refused(self, text: str) -> PatternError:
        """Say that a term may not stand here."""
        return PatternError(f"has {shown(text)} in its {self.name} field; allowed is {self.allowed()}")


DAY = "day-of-month"
WEEKDAY = "day-of-week"
MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
SECOND = Field("second", 0, 59)
FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field(DAY, 1, 31, high_hashed=28),
    Field("month", 1, 12, MONTH_NAMES),
    Field(WEEKDAY, 0, 6, WEEKDAY_NAMES),
)
