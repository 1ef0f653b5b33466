"""What `run` has a job wait for: the conditions that its options make, and what this host says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from dispatch.operator_files.problems import shown
from dispatch.waits import conditions
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError


def authored(afters: Sequence[str], profiles: Sequence[str]) -> tuple[Mapping[str, str], ...] | None:
    """Write the options as conditions: the clock's first, which costs nothing, then checks in their order."""
    return (*({"after": text} for text in afters), *({"profile": name} for name in profiles)) or None


def judged_here(wait_for: Sequence[object] | None, config: Config, *, now: datetime) -> tuple[str, ...]:
    """Judge conditions that are well written by what this host declares and allows; `now` is aware.

    Answers what a person should know of them; ConfigurationError with all that cannot come true.
    """
    found = conditions.read(wait_for)
    if found is None:
        return ()
    problems, notes = _of_instant(found.after, timedelta(milliseconds=config.wait_after_max_ms), now)
    undeclared = _undeclared(found.profiles, config.wait_profiles)
    if config.worker_name_declared:
        # One host of several: another one's worker may take the job.
        notes += [f"{text}; a worker that does not have it either refuses the job" for text in undeclared]
    else:
        problems += undeclared
    if problems:
        raise ConfigurationError(*problems)
    return tuple(notes)


def _of_instant(after: datetime | None, longest: timedelta, now: datetime) -> tuple[list[str], list[str]]:
    """List what is wrong with the instant, and what should be known of it."""
    if after is None:
        return [], []
    ahead = timedelta(seconds=round((after - now).total_seconds()))
    if after - now > longest:
        return [f"--after is {ahead} away; allowed are {longest} (PI_WAIT_AFTER_MAX_MS)"], []
    if after <= now:
        return [], [f"--after has passed by {-ahead}; the job does not wait for it"]
    return [], []


def _undeclared(profiles: Sequence[str], declared: Mapping[str, object]) -> list[str]:
    allowed = f"declared are {', '.join(sorted(declared))}" if declared else "none is declared"
    return [
        f"--wait-for {shown(name)} is not in this host's PI_WAIT_PROFILES; {allowed}"
        for name in profiles
        if name not in declared
    ]
