"""`on` of an entry: what a job starts upon, read by its type (Q 5.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from dispatch.operator_files.problems import shown
from dispatch.operator_files.zones import zone_named
from dispatch.schedules import patterns
from dispatch.triggers.entries import CommentOn, CronOn, Disarmed, IssueOn, LabelOn, On, PullRequestOn
from dispatch.triggers.field_values import flag, number, text
from dispatch.triggers.forges import REVIEW_STATES, REVIEWED, Words
from dispatch.triggers.given import Given
from pidispatch_site.parsing import LARGEST

SELECTORS = ("any", "all", "none")
_ONE_ITEM = ("number", "once", "disarmed")
_DISARMED_KEYS = frozenset({"at", "jobId"})

# A job's id holds it, and stands in log lines and keys.
_ID = re.compile(r"[A-Za-z0-9._-]{1,255}")

_ID_RULE = "a name of letters, digits, dots, underscores and hyphens, of at most 255"
_PATTERN_RULE = "five or six fields such as 0 3 * * *, or a name such as @daily"
_ZONE_RULE = "an IANA time zone such as Europe/London, or no tz for the host's own"
# A distance from UTC is no zone by that name.
_OFFSET = re.compile(r"(?:UTC|GMT|Z)?(?P<sign>[+-])(?P<hours>0?[0-9]|1[0-4])(?::?00)?", re.IGNORECASE)
_LABEL_RULE = "a label's name"
_CLOSING_ONLY = "only rules about closing have it"
_NO_LABELS = "the rule has no labels to choose by"


def is_id(value: object) -> bool:
    """Tell whether it can be the id of a schedule, and so stand in a message and a log line."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def read(kind: str, given: Given, words: Words | None) -> On | None:
    """Read the fields of an entry of this type; None when something that it needs is wrong.

    `words` are those of its forge, None when no known forge is named: then no action is judged.
    """
    return _READERS[kind](given, words)


def _cron(given: Given, _words: Words | None) -> CronOn | None:
    given.refuse(SELECTORS, _NO_LABELS)
    given.refuse(_ONE_ITEM, _CLOSING_ONLY)
    id_ = given.needed("id", _ID_RULE, text(is_id))
    pattern = given.needed("pattern", _PATTERN_RULE, text())
    zone = given.take("tz", _zone_rule(given.row.get("tz")), _zone)
    if pattern is None:
        return None
    if problem := patterns.problem_of(pattern, schedule_id=id_ or "", tz=zone):
        given.wrong("pattern", problem)
    return CronOn(id=id_, pattern=pattern, tz=zone) if id_ else None


def _zone(value: object) -> str | None:
    """Read a zone's name as the zone database spells it."""
    found = zone_named(value) if isinstance(value, str) else None
    return found.key if found else None


def _zone_rule(value: object) -> str:
    found = _OFFSET.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return _ZONE_RULE
    name = f"Etc/GMT{'-' if found['sign'] == '+' else '+'}{int(found['hours'])}"
    fixed = f"; for a fixed distance {name}, whose sign is the other way round"
    return _ZONE_RULE + (fixed if zone_named(name) else "")


def _label(given: Given, _words: Words | None) -> LabelOn:
    given.refuse(_ONE_ITEM, _CLOSING_ONLY)
    given.refuse(["reviewState"], f"it belongs to the action {REVIEWED} of pull requests")
    found = _selectors(given)
    _need_a_positive(given, "a rule about labels")
    return LabelOn(**found)


def _comment(given: Given, _words: Words | None) -> CommentOn | None:
    given.refuse(_ONE_ITEM, _CLOSING_ONLY)
    phrase = given.needed("phrase", 'a text that calls, such as "@pi"', text())
    return CommentOn(phrase=phrase) if phrase else None


def _pull_request(given: Given, words: Words | None) -> On | None:
    action = _action(given, words, words.pull_request if words else ())
    closes = bool(words and action and words.close in action)
    found: dict[str, tuple[str, ...] | None] = {}
    if closes or (words and not words.has_selectors):
        given.refuse(SELECTORS, _NO_LABELS)
    else:
        found = _selectors(given)
    if words and action and words.labelled in action:
        _need_a_positive(given, f"the action {words.labelled}")
    if words and action and not closes:
        given.refuse(_ONE_ITEM, _CLOSING_ONLY)
    item, once = _one_item(given) if closes else (None, None)
    states = _review_states(given, words, action)
    if not action:
        return None
    on = PullRequestOn(action=action, review_state=states, number=item, once=once, **found)
    return _spent(given, on) if closes else on


def _issue(given: Given, words: Words | None) -> On | None:
    given.refuse(SELECTORS, _NO_LABELS)
    action = _action(given, words, words.issue if words else ())
    item, once = _one_item(given)
    return _spent(given, IssueOn(action=action, number=item, once=once)) if action else None


_READERS: Mapping[str, Callable[[Given, Words | None], On | None]] = {
    "cron": _cron,
    "label": _label,
    "comment": _comment,
    "pull_request": _pull_request,
    "issue": _issue,
}


def _selectors(given: Given) -> dict[str, tuple[str, ...] | None]:
    return {name: given.texts(name, _LABEL_RULE, text()) for name in SELECTORS}


def _need_a_positive(given: Given, who: str) -> None:
    # What is there and no list is told as that.
    if not any(given.row.get(name, []) != [] for name in ("any", "all")):
        given.wrong(
            "any", f"is missing or empty, and so is all; {who} needs at least one label in one of them"
        )


def _action(given: Given, words: Words | None, known: tuple[str, ...]) -> tuple[str, ...] | None:
    """Read the words of the forge; None when something is wrong with them."""
    listed = f"one of {', '.join(known)}" if words else "a word of the forge"
    if not given.has("action"):
        given.wrong("action", f"is missing{given.meant('action')}; allowed is a list, each item {listed}")
        return None
    found = given.texts("action", listed, text(lambda word: word in known if words else True))
    if found == ():
        given.wrong("action", f"is an empty list; allowed is at least {listed}")
    if words and found and words.close in found and set(found) != {words.close}:
        given.wrong("action", f"is {shown(list(found))}; {words.close} stands alone, in a rule of its own")
        return None
    return found or None


def _review_states(
    given: Given, words: Words | None, action: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    if words and REVIEWED not in words.pull_request:
        given.refuse(["reviewState"], "only github tells the state of a review")
        return None
    if action and REVIEWED not in action:
        given.refuse(["reviewState"], f"it belongs to the action {REVIEWED}")
        return None
    allowed = f"one of {', '.join(REVIEW_STATES)}"
    states = given.texts("reviewState", allowed, text(lambda word: word in REVIEW_STATES))
    if states == ():
        given.wrong("reviewState", f"is an empty list; allowed is at least {allowed}, or no reviewState")
    return states


def _one_item(given: Given) -> tuple[int | None, bool | None]:
    """Read `number` and `once` of a rule about closing."""
    found = given.take(
        "number", f"a whole number from 1 to {LARGEST}, or no number for every one", number(least=1)
    )
    once = given.take("once", "true or false", flag)
    if once and not given.has("number"):
        given.wrong("once", "is true without a number; add the number of the one that it waits for")
    return found, once


def _spent(given: Given, on: PullRequestOn | IssueOn) -> On | None:
    """Read the mark that the worker leaves when a one-shot has run; without it the rule is as it was."""
    if not given.has("disarmed"):
        return on
    if on.once is not True:
        given.wrong("disarmed", 'stands without "once": true; only what runs once can be spent')
    mark = given.row["disarmed"]
    if not isinstance(mark, dict):
        given.wrong("disarmed", f'is {shown(mark)}; allowed is {{"at": INSTANT, "jobId": ID}}')
        return None
    for key in mark:
        if key not in _DISARMED_KEYS:
            given.wrong("disarmed", f"has the key {shown(key)}; allowed are at and jobId")
    inside = given.inside("disarmed", mark)
    at = inside.needed("at", "the instant at which it was spent", text())
    job_id = inside.take("jobId", "the id of the job that it was spent by, or no jobId", text())
    return Disarmed(at=at, job_id=job_id, was=on) if at else None
