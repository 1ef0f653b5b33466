"""What a person types: options that say no more than they need to, and texts that are repaired."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta

from dispatch import durations

# Django's own options, which nobody uses here, would fill each usage line.
HIDDEN = {
    "--version",
    "--verbosity",
    "--settings",
    "--pythonpath",
    "--traceback",
    "--no-color",
    "--force-color",
    "--skip-checks",
}


def duration(text: str) -> timedelta:
    """Read `--for`; argparse turns the error into usage and exit code 2."""
    try:
        return durations.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def one_line(text: str) -> str:
    """Make one line that can be stored and shown anywhere: half characters and control characters go.

    A pause is never refused for the wording of its reason.
    """
    if not text.isprintable():
        whole = text.encode("utf-8", "replace").decode()
        text = "".join(letter if letter.isprintable() else " " for letter in whole)
    return " ".join(text.split())
