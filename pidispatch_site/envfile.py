"""The `.env` file and what comes of it together with the process's own environment (contracts 1).

Lines are `NAME=value`, taken literally: no quotes, no expansion, no `export`. Empty lines and lines that
start with `#` say nothing. A later line of the same name wins; the process's environment wins over the file.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

LARGEST_FILE_BYTES = 1024 * 1024
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_QUOTED = re.compile(r"'.*'|\".*\"", re.DOTALL)


class Environment(Mapping[str, str]):
    """The variables that count, with what was wrong with the file they partly come from.

    Reading it is lenient (a bad line is as if it were not there); `problems` is what the strict reader, the
    configuration, adds to its own. `unread` is what to say of a file that should have been read and could not
    be: then nothing in here can be trusted to be what the operator set. Its text never shows a value.
    """

    def __init__(
        self, values: Mapping[str, str], *, problems: tuple[str, ...] = (), unread: str | None = None
    ) -> None:
        self._values = dict(values)
        self.problems = problems
        self.unread = unread

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Environment of {len(self._values)} variables>"


def merged(process: Mapping[str, str], *, folder: Path | None) -> Environment:
    """Lay the process's environment over the file that PI_ENV_FILE names, else over `.env` in `folder`.

    Never raises: what is wrong with the file stands in the answer. A missing `.env` that nobody named is no
    fault, nor is a current folder that is gone (None): there is no `.env` in it.
    """
    named = process.get("PI_ENV_FILE")
    if folder is None and not named:
        return Environment(process)
    path = (folder or Path("/")) / (named or ".env")
    try:
        content = _content(path)
    except FileNotFoundError:
        unread = f"PI_ENV_FILE names {path}, which does not exist" if named else None
    except (OSError, ValueError) as exc:
        unread = f"the file {path} cannot be read: {getattr(exc, 'strerror', None) or exc}"
    else:
        values, problems = lines(content, source=str(path))
        return Environment({**values, **process}, problems=problems)
    return Environment(process, unread=unread, problems=(unread,) if unread else ())


def _content(path: Path) -> bytes:
    # A pipe or a device would block or never end.
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise ValueError(f"it is larger than {LARGEST_FILE_BYTES} bytes")
    return content


def lines(content: bytes, *, source: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the variables of a file's content, and a problem for each line that does not do what it seems to.

    A line that is no `NAME=value` is left out of the variables. A problem names the line, not its text.
    """
    values: dict[str, str] = {}
    problems: list[str] = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        line = raw.removesuffix(b"\r").lstrip(b" \t")
        if not line.strip() or line.startswith(b"#"):
            continue
        match = _match(line)
        if match is None:
            problems.append(f"{source}, line {number}: expected NAME=value, no spaces around =, no export")
            continue
        name, value = match.groups()
        values[name] = value
        if _QUOTED.fullmatch(value):
            problems.append(
                f"{source}, line {number}: {name} is in quotes; values are taken literally, remove them"
            )
    return values, tuple(problems)


def _match(line: bytes) -> re.Match[str] | None:
    if b"\0" in line:
        return None
    try:
        return _LINE.fullmatch(line.decode("utf-8"))
    except UnicodeDecodeError:
        return None
