"""What a job waits for: how its `waitFor` is written, and what a worker reads from it (Q 5.1, 9.1).

A list of one to four conditions, all of which must hold. Each is an object with one key: `after`, an instant
with its own zone, at most once; or `profile`, the name of a check that the host declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dispatch.operator_files.problems import Problem, shown

FIELD = "waitFor"
MOST_CONDITIONS = 4
# Both come to stand in log lines, and a worker reads them off a queue that others write.
MOST_OF_A_NAME = 255
MOST_OF_AN_INSTANT = 64

_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_PROFILE = re.compile(rf"[A-Za-z0-9._-]{{1,{MOST_OF_A_NAME}}}")
_NOT_A_LETTER = re.compile(r"[^a-z]")

_SHAPE = '{"after": INSTANT} or {"profile": NAME}'
_INSTANT_RULE = (
    "an existing date and time with its own zone, such as 2026-09-01T09:00:00Z or 2026-09-01T09:00+02:00"
)
_PROFILE_RULE = "a name of letters, digits, dots, underscores and hyphens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a worker read from a queued job.

    `after` is the instant to wait for, `profiles` the checks in their order, repeats included. `label` names
    the conditions for a log line; None if not one could be read. With `unreadable` (a count) above 0 the rest
    is not the whole truth: the job is refused. Of more than `MOST_CONDITIONS` only the first ones are here.
    """

    after: datetime | None
    profiles: tuple[str, ...]
    label: str | None
    unreadable: int


@dataclass(frozen=True, slots=True)
class _Condition:
    """One condition as far as it can be read; `names_after`: it is meant as an instant."""

    after: datetime | None
    profile: str | None
    label: str | None
    names_after: bool
    is_readable: bool


def instant(text: object) -> datetime | None:
    """Read an instant of `after` in UTC, cut to the millisecond; None for whatever is none, or too long.

    `2026-09-01T09:00Z`, seconds and their fraction optional, `±hh:mm` instead of `Z`.
    """
    if not isinstance(text, str) or len(text) > MOST_OF_AN_INSTANT:
        return None
    found = _INSTANT.fullmatch(text)
    if not found:
        return None
    *parts, fraction, sign, hours, minutes = found.groups()
    milliseconds = int((fraction or "")[:3].ljust(3, "0"))
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    try:
        return datetime(year, month, day, hour, minute, second, milliseconds * 1000, UTC) - ahead
    except (ValueError, OverflowError):
        # No such date, or one beyond the first or the last year.
        return None


def is_profile(name: object) -> bool:
    """Tell whether it can name a check."""
    return isinstance(name, str) and _PROFILE.fullmatch(name) is not None


def read(wait_for: Sequence[object] | None) -> Conditions | None:
    """Read the conditions of a queued job; None if it waits for nothing."""
    if not wait_for:
        return None
    found = [_read_one(condition) for condition in wait_for[:MOST_CONDITIONS]]
    # Which of two instants counts, or which four of many conditions, is nobody's guess, and the rest is then
    # not to be trusted either.
    is_doubtful = len(wait_for) > MOST_CONDITIONS or sum(one.names_after for one in found) > 1
    unreadable = len(wait_for) if is_doubtful else sum(not one.is_readable for one in found)
    return Conditions(
        after=next((one.after for one in found if one.after), None),
        profiles=tuple(one.profile for one in found if one.profile),
        label=" + ".join(one.label for one in found if one.label) or None,
        unreadable=unreadable,
    )


def problems_of(authored: object, *, place: str) -> list[Problem]:
    """List what is wrong with a `waitFor` as someone wrote it at `place`, such as `run.waitFor`."""
    if not isinstance(authored, list | tuple):
        return [Problem(place, f"is {shown(authored)}; allowed is a list of conditions, each {_SHAPE}")]
    if not 1 <= len(authored) <= MOST_CONDITIONS:
        allowed = f"allowed are 1 to {MOST_CONDITIONS}; leave the field out to wait for nothing"
        return [Problem(place, f"has {len(authored)} conditions; {allowed}")]
    problems: list[Problem] = []
    seen: set[str] = set()
    for index, condition in enumerate(authored):
        text = _wrong(condition) or _repeated(condition, seen)
        if text:
            problems.append(Problem(f"{place}[{index}]", text))
    return problems


def misspelled(keys: Iterable[str]) -> tuple[str, ...]:
    """Find the keys that are meant as `waitFor` and are none: other case, separators, blanks."""
    return tuple(key for key in keys if key != FIELD and _is_meant(key))


def problems_of_trigger(
    on: Mapping[str, object], run: Mapping[str, object], *, place: str = ""
) -> list[Problem]:
    """List what is wrong with the waiting of one trigger: the field, its place, its spelling, its company."""
    problems = [
        Problem(f"{place}on", f"has the key {shown(key)}; conditions to wait for stand in run.{FIELD}")
        for key in on
        if _is_meant(key)
    ]
    problems += [
        Problem(f"{place}run", f"has the key {shown(key)}; it is spelled {FIELD}") for key in misspelled(run)
    ]
    if FIELD not in run:
        return problems
    problems += problems_of(run[FIELD], place=f"{place}run.{FIELD}")
    for is_given, other in (("replicas" in run, "run.replicas"), (on.get("once") is True, "on.once")):
        if is_given:
            problems.append(
                Problem(f"{place}run.{FIELD}", f"stands beside {other}; allowed is one of the two")
            )
    return problems


def _read_one(condition: object) -> _Condition:
    if not isinstance(condition, Mapping):
        return _Condition(None, None, None, names_after=False, is_readable=False)
    text, name = condition.get("after"), condition.get("profile")
    after = instant(text)
    profile = name if is_profile(name) else None
    return _Condition(
        after=after,
        profile=profile,
        label=f"after {text}" if after else profile,
        names_after="after" in condition,
        is_readable=len(condition) == 1 and bool(after or profile),
    )


def _wrong(condition: object) -> str | None:
    if not isinstance(condition, Mapping) or len(condition) != 1:
        return f"is {shown(condition)}; allowed is {_SHAPE}, one of them"
    ((key, value),) = condition.items()
    match key:
        case "after":
            if instant(value):
                return None
            return (
                f"has after {shown(value)}; allowed is {_INSTANT_RULE}{_at_most(MOST_OF_AN_INSTANT, value)}"
            )
        case "profile":
            if is_profile(value):
                return None
            return f"has profile {shown(value)}; allowed is {_PROFILE_RULE}{_at_most(MOST_OF_A_NAME, value)}"
        case _:
            return f"has the key {shown(key)}; allowed is {_SHAPE}"


def _at_most(most: int, value: object) -> str:
    return f", at most {most} characters" if isinstance(value, str) and len(value) > most else ""


def _repeated(condition: Mapping[str, str], seen: set[str]) -> str | None:
    ((key, value),) = condition.items()
    same = key if key == "after" else f"profile {shown(value)}"
    if same in seen:
        return f"is a second {same}; allowed is one"
    seen.add(same)
    return None


def _is_meant(key: str) -> bool:
    return _NOT_A_LETTER.sub("", key.lower()) == FIELD.lower()
