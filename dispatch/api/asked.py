"""Reading what a program asks for: strictly, so that a misspelt filter is not an answer about everything."""

from __future__ import annotations

from collections.abc import Collection

from django.http import QueryDict

from dispatch.api.access import RefusedError

_LONGEST = 300


def only(given: QueryDict, allowed: Collection[str]) -> None:
    """Refuse parameters that are not among these, and all but short plain text as a value."""
    for name, values in given.lists():
        if name not in allowed:
            raise wrong(f"There is no parameter {name[:40]!r}; allowed are {', '.join(allowed) or 'none'}.")
        if any(len(value) > _LONGEST or "\0" in value for value in values):
            raise wrong(f"{name} is longer than {_LONGEST} characters, or no text.")


def limit(given: QueryDict, *, default: int, most: int) -> int:
    """Read `limit`."""
    text = given.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise wrong(f"limit is {text[:20]!r}; expected a whole number from 1 to {most}.")
    return int(text)


def wrong(message: str) -> RefusedError:
    """Make the refusal of a request that makes no sense."""
    return RefusedError(400, "bad-request", message)
