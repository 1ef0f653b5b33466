"""What `run` has a job wait for: the conditions that its options make, and what this host says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from dispatch.console.instants import span, stamp
from dispatch.instants import epoch_ms
from dispatch.operator_files.problems import Problem, shown
from dispatch.waits import conditions
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError


def authored(afters: Sequence[str], profiles: Sequence[str]) -> tuple[Mapping[str, str], ...] | None:
    """Write the options as conditions: the clock's first, which costs nothing, then checks in their order."""
    return (*({"after": text} for text in afters), *({"profile": name} for name in profiles)) or None


def misused(afters: Sequence[str], profiles: Sequence[str]) -> tuple[str, ...]:
    """List what is wrong with the options as they are written, by the rules of conditions, in their words."""
    options = [*(("--after", text) for text in afters), *(("--wait-for", name) for name in profiles)]
    if len(options) > conditions.MOST_CONDITIONS:
        given = f"--after and --wait-for are given {len(options)} times together"
        return (f"{given}; allowed are {conditions.MOST_CONDITIONS}",)
    written = authored(afters, profiles)
    if written is None:
        return ()
    wrong = {problem.place: problem for problem in conditions.problems_of(written, place="")}
    found = ((option, wrong.get(f"[{index}]")) for index, option in enumerate(options))
    return tuple(_misuse(*option, problem) for option, problem in found if problem)


def _misuse(option: str, value: str, problem: Problem) -> str:
    """Say it of the option; the rule itself, after the semicolon, is the one of conditions."""
    rule = problem.text.rpartition("; ")[2]
    is_well_written = conditions.instant(value) if option == "--after" else conditions.is_profile(value)
    found = "is one too many" if option == "--after" else "is given twice"
    return f"{option} {shown(value)} {found if is_well_written else 'cannot be used'}; {rule}"


def judged_here(
    wait_for: Sequence[object] | None, config: Config, *, is_routed: bool, now: datetime
) -> tuple[str, ...]:
    """Judge conditions that are well written by what this host declares and allows; `now` is aware.

    Checks are judged unless the job is routed, to a host that has them. Answers what a person should know of
    them; ConfigurationError with all that cannot come true.
    """
    found = conditions.read(wait_for)
    if found is None:
        return ()
    problems, notes = _of_instant(found.after, config.wait_after_max_ms, now)
    if not is_routed:
        problems += _undeclared(found.profiles, config)
    if problems:
        raise ConfigurationError(*problems)
    return tuple(notes)


def _of_instant(after: datetime | None, longest_ms: int, now: datetime) -> tuple[list[str], list[str]]:
    """List what is wrong with the instant, and what should be known of it."""
    if after is None:
        return [], []
    ahead_ms = epoch_ms(after) - epoch_ms(now)
    if ahead_ms > longest_ms:
        last = stamp(epoch_ms(now) + longest_ms)
        allowed = f"allowed are {span(longest_ms)}, up to {last} (PI_WAIT_AFTER_MAX_MS)"
        return [f"--after is {span(ahead_ms)} away; {allowed}"], []
    if ahead_ms <= 0:
        return [], [f"--after has passed by {span(-ahead_ms)}; the job does not wait for it"]
    return [], []


def _undeclared(profiles: Sequence[str], config: Config) -> list[str]:
    declared = config.wait_profiles
    allowed = f"declared are {', '.join(sorted(declared))}" if declared else "none is declared"
    return [
        f"--wait-for {shown(name)} is not in this host's PI_WAIT_PROFILES; {allowed}"
        + (f"; --needs w:{name} sends the job to a host that has it" if config.worker_name_declared else "")
        for name in profiles
        if name not in declared
    ]
