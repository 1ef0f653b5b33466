"""`scoped-limits.json`: caps and concurrency of single folders and repositories (Q 5.3).

A file about money: what is not understood is refused and not dropped, since a dropped limit is a wider one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dispatch.jobrules import is_well_formed
from dispatch.money.windows import Caps
from dispatch.operator_files import strict_json
from dispatch.operator_files.integers import whole_number
from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from pidispatch_site.parsing import LARGEST
from runs.workspace.scope import BLANKS, canonical_folder, canonical_repository

VERSION = 1

# One job at a time edits a folder, whatever the file says.
_FOLDER_CEILING = 1
LIMITS = ("day", "week", "month", "concurrent")
KEYS = frozenset({"scope", *LIMITS})
_ROW = 'an object such as {"scope": "/srv/site", "day": 5}'
_FILE = f'{{"version": {VERSION}, "limits": [...]}}'
_SCOPE = "an absolute folder or a repository as its forge writes it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedLimit:
    """One row: its canonical scope, starts per window and containers at once (None: not limited)."""

    scope: str
    day: int | None = None
    week: int | None = None
    month: int | None = None
    concurrent: int | None = None

    @property
    def caps(self) -> Caps:
        """The row's spend windows; none is active when it limits concurrency alone."""
        return Caps(day=self.day, week=self.week, month=self.month)


@dataclass(frozen=True, slots=True)
class ScopedLimits:
    """The rows of a file, in its order; no two have the same scope."""

    rows: tuple[ScopedLimit, ...] = ()
    _by_scope: Mapping[str, ScopedLimit] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_scope", {row.scope: row for row in self.rows})

    def of(self, scope: str | None) -> ScopedLimit | None:
        """Find the row of a job's canonical scope, by exact equality; None when there is none."""
        return None if scope is None else self._by_scope.get(scope)

    def __len__(self) -> int:
        return len(self.rows)


NO_LIMITS = ScopedLimits()


def ceiling(limit: ScopedLimit | None, *, is_forge: bool) -> int | None:
    """Tell how many containers may run at once for a job's row; None is without a limit.

    On a folder it is 1 with and without a row: a row could only lower it.
    """
    if not is_forge:
        return _FOLDER_CEILING
    return None if limit is None else limit.concurrent


def parse(content: bytes, *, name: str) -> ScopedLimits:
    """Read the content of the file of this name; OperatorFileError with everything that is wrong with it."""
    document = strict_json.load(content, name=name)
    if not isinstance(document, dict):
        raise OperatorFileError(name, [Problem("", f"holds {shown(document)}; allowed is {_FILE}")])
    found = tuple(_version_problems(document))
    if _is_newer(document):
        # Whether the rest is right is for a program to say that knows that version.
        raise OperatorFileError(name, found)
    rows = _rows(document)
    problems = [*found, *_list_problems(document), *_row_problems(rows), *_duplicates(rows)]
    if problems:
        raise OperatorFileError(name, problems)
    return ScopedLimits(tuple(_limit(row) for row in rows))


def _is_newer(document: Mapping[str, Any]) -> bool:
    return (whole_number(document.get("version")) or 0) > VERSION


def _version_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    if "version" not in document:
        yield Problem("version", f'is missing; add "version": {VERSION}')
    elif _is_newer(document):
        found = shown(document["version"])
        yield Problem(
            "version",
            f"is {found}, and this program understands up to {VERSION}: it could drop a limit that it does"
            f" not know; install a newer pi-dispatch, or write the file as version {VERSION}",
        )
    elif whole_number(document["version"]) is None:
        yield Problem("version", f"is {shown(document['version'])}; allowed is {VERSION}")


def _rows(document: Mapping[str, Any]) -> Sequence[Any]:
    rows = document.get("limits")
    return rows if isinstance(rows, list) else ()


def _list_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    if "limits" not in document:
        yield Problem("limits", 'is missing; add "limits": [], with an object for each scope in it')
    elif not isinstance(document["limits"], list):
        yield Problem("limits", f"is {shown(document['limits'])}; allowed is a list of objects")


def _row_problems(rows: Sequence[Any]) -> Iterator[Problem]:
    for index, row in enumerate(rows):
        place = f"limits[{index}]"
        if not isinstance(row, dict):
            yield Problem(place, f"is {shown(row)}; allowed is {_ROW}")
            continue
        yield from _scope_problems(row, f"{place}.scope")
        yield from _limit_problems(row, place)


def _scope_problems(row: Mapping[str, Any], place: str) -> Iterator[Problem]:
    scope = row.get("scope")
    if "scope" not in row:
        yield Problem(place, f"is missing; allowed is {_SCOPE}")
    elif not isinstance(scope, str) or not scope.strip(BLANKS):
        yield Problem(place, f"is {shown(scope)}; allowed is {_SCOPE}")
    elif "*" in scope:
        yield Problem(
            place,
            f"is {shown(scope)}; a limit has no wildcard: write a row for each scope, or PI_DAILY_CAP,"
            " PI_WEEKLY_CAP and PI_MONTHLY_CAP for all jobs together",
        )
    elif not is_well_formed(scope):
        yield Problem(place, f"is {shown(scope)}, which holds half a character; allowed is {_SCOPE}")


def _limit_problems(row: Mapping[str, Any], place: str) -> Iterator[Problem]:
    given = [key for key in LIMITS if row.get(key) is not None]
    for key in given:
        if whole_number(row[key]) is None:
            yield Problem(
                f"{place}.{key}",
                f"is {shown(row[key])}; allowed is a whole number from 1 to {LARGEST}, or no {key} at all for"
                " no limit (to let nothing start, use a pause window)",
            )
    if not given:
        others = [key for key in row if key != "scope" and key not in LIMITS]
        found = f" (it has {shown(others)})" if others else ""
        yield Problem(place, f"limits nothing{found}; set at least one of {', '.join(LIMITS)}")


def _duplicates(rows: Sequence[Any]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, row in enumerate(rows):
        scope = _canonical(row)
        if scope is None:
            continue
        before = first.setdefault(scope, index)
        if before != index:
            yield Problem(
                f"limits[{index}].scope",
                f"is {shown(row['scope'])}, the same scope as limits[{before}]"
                f" ({shown(rows[before]['scope'])}); put all limits of a scope into one row",
            )


def _canonical(row: object) -> str | None:
    """Give the row's scope as a job's is derived; None when it has none."""
    scope = row.get("scope") if isinstance(row, dict) else None
    if not isinstance(scope, str):
        return None
    trimmed = scope.strip(BLANKS)
    return canonical_folder(trimmed) if trimmed.startswith("/") else canonical_repository(trimmed)


def _limit(row: Mapping[str, Any]) -> ScopedLimit:
    scope = _canonical(row)
    if scope is None:
        raise ValueError("a row is made of what was checked")
    return ScopedLimit(scope=scope, **{key: whole_number(row.get(key)) for key in LIMITS})
