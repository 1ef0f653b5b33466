"""The words for what keeps a job from running: one source for `run --wait`, `why` and `queue`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dispatch.instants import epoch_ms, instant_of
from dispatch.money.windows import LEDGER_REFUSED, Window, window_end
from dispatch.queue.entries import Entry
from dispatch.queue.waiters import WaitReason
from runs.outcome import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    """Why a job sleeps, as the rest of a sentence, and what ends that, as a sentence.

    `is_exact`: it wakes when the reason ends. Else the wake time is of the next look, and often renewed.
    """

    brief: str
    ends: str
    is_exact: bool = False


_TURNS = "It wakes when the window of the cap turns, or when {freed}; `manage.py budget` shows the caps."

SLEEPS: Mapping[str, Sleep] = {
    WaitReason.PAUSE_WINDOW: Sleep(
        brief="a pause window holds",
        ends="It wakes when the window ends, or seconds after the window is shortened or removed"
        " (PI_PAUSE_WINDOWS_FILE).",
        is_exact=True,
    ),
    WaitReason.WAIT: Sleep(
        brief="its conditions are not met yet",
        ends="It is asked again by itself, less and less often, and refused when it has been held too long.",
    ),
    WaitReason.SCOPE_BUSY: Sleep(
        brief="its folder or repository is busy",
        ends="It is woken when the folder or repository is free again, the longest waiting job first.",
    ),
    WaitReason.SCOPE_BUSY_FLEET: Sleep(
        brief="as many jobs of its repository run in the fleet as its limit allows",
        ends="It looks again by itself, every few seconds.",
    ),
    WaitReason.CAP: Sleep(
        brief="a cap is used up",
        ends=_TURNS.format(freed="the cap is raised"),
        is_exact=True,
    ),
    WaitReason.RETRY: Sleep(
        brief="it could not run and is tried again",
        ends="It is tried again by itself.",
        is_exact=True,
    ),
}

# By the first part of a cause: what is said, and what frees the job before the window turns.
_FULL_CAPS: Mapping[str, tuple[str, str]] = {
    Reason.OVER_BUDGET: (
        "the cap of starts a {window} is reached",
        "it is raised (`manage.py settings --set {key}=N`)",
    ),
    Reason.SOFT_HOLD: (
        "what the soft hold leaves free of the cap of starts a {window} is spent",
        "the soft hold is raised or removed (`manage.py settings`, softHoldPct), or the cap raised ({key})",
    ),
    Reason.SCOPE_CAP: (
        "the cap of its folder or repository, starts a {window}, is reached",
        "it is raised (PI_SCOPED_LIMITS_FILE)",
    ),
    Reason.DAILY_TOKEN_CAP: (
        "the cap of tokens a {window} is reached",
        "it is raised (`manage.py settings --set dailyTokenCap=N`)",
    ),
}
_CAP_KEYS: Mapping[str, str] = {
    Window.DAY: "dailyCap",
    Window.WEEK: "weeklyCap",
    Window.MONTH: "monthlyCap",
}


def sleep_of(reason: str | None, cause: str | None = None) -> Sleep:
    """Find the words for a reason; those for one of another version name it.

    `cause` is the token that stands with a sleep for a cap and tells which one (`scope-cap:day`).
    """
    known = SLEEPS.get(reason or "")
    if known is None:
        return Sleep(brief=f"the reason given is {reason or 'none'}", ends="It wakes by itself.")
    return (_full_cap(cause) if reason == WaitReason.CAP else None) or known


def wakes_ms(entry: Entry, now_ms: int) -> int | None:
    """Tell when it wakes for what it sleeps for: a parked job looks in between, its window turns later."""
    window = (entry.cause or "").partition(":")[2]
    if entry.reason != WaitReason.CAP or window not in _CAP_KEYS:
        return entry.until_ms
    if entry.until_ms is None or entry.until_ms <= now_ms:
        return entry.until_ms
    return max(entry.until_ms, epoch_ms(window_end(Window(window), instant_of(now_ms))))


def _full_cap(cause: str | None) -> Sleep | None:
    refusal, _, window = (cause or "").partition(":")
    if refusal == LEDGER_REFUSED:
        return Sleep(
            brief="a counter of the caps is no number, and nobody knows whether one is reached",
            ends="`manage.py budget` shows which; delete it and its window counts from 0. The job looks again"
            " by itself.",
        )
    if refusal not in _FULL_CAPS or window not in _CAP_KEYS:
        return None
    brief, freed = _FULL_CAPS[refusal]
    ends = _TURNS.format(freed=freed.format(key=_CAP_KEYS[window]))
    return Sleep(brief=brief.format(window=window), ends=ends, is_exact=True)


def sentence(text: str) -> str:
    """Make a sentence of what was said as a part of one."""
    return f"{text[:1].upper()}{text[1:]}."
