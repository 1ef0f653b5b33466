"""The errors that reach a person, and the exit code each one means."""

from __future__ import annotations


class PidispatchError(Exception):
    """Something went wrong that the operator can understand; the text says what to do.

    `exit_code` is what a command ends with: 1, trying again may work.
    """

    exit_code = 1


class ConfigurationError(PidispatchError):
    """The configuration or the input is wrong: repeating it unchanged cannot work (exit code 2).

    Carries every problem found, not the first; the message lists them one a line.
    """

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        self.problems: tuple[str, ...] = problems
        super().__init__("\n".join(problems))


class OperationalError(PidispatchError):
    """A part the operator runs (Valkey, the engine, the disk) did not do its part; again may work."""
