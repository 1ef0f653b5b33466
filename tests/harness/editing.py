"""The manners in which editors, scripts and deployments change a file."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

Manner = Callable[[Path, str], None]

_numbers = itertools.count()


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def replaced(path: Path, text: str) -> None:
    temporary = path.with_name(f".{next(_numbers)}")
    temporary.write_text(text)
    temporary.replace(path)


def linked(path: Path, text: str) -> None:
    """Write another file, and put a link to it in the place of what was there."""
    target = path.with_name(f"target-{next(_numbers)}")
    target.write_text(text)
    link = path.with_name(f".{next(_numbers)}")
    link.symlink_to(target)
    link.replace(path)


def through_the_link(path: Path, text: str) -> None:
    assert path.is_symlink()
    path.write_text(text)


def in_two_strokes(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text[:9])
        file.flush()
        time.sleep(0.05)
        file.write(text[9:])


#: Each leaves the text there; one of them needs the link that the one before it makes.
MANNERS: tuple[Manner, ...] = (in_place, replaced, linked, through_the_link, linked, in_two_strokes)
