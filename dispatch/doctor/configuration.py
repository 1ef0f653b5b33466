"""The configuration for whoever looks at a broken one: every problem told, the rest of it usable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dispatch.console.findings import Area, Finding
from pidispatch_site import conf
from pidispatch_site.conf import Config, ConfigWarning
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.known_names import BOUNDS_TO_COME
from pidispatch_site.variables import VARIABLES

AREA = Area("configuration")
_NAMES = frozenset(row.name for row in VARIABLES)
# A problem begins with the variable that it is about, after the place in the file where that is told.
_SUBJECT = re.compile(r"(?:.*, line \d+: )?([A-Z][A-Z0-9_]+)\b")
_ANY_DIRECTORY = "/nonexistent"
_SEE = "docs/settings.md says what is allowed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What of the environment can be relied on.

    `config` has the variables in `wrong` as if they were unset: nothing is to be concluded from those.
    """

    config: Config
    problems: tuple[str, ...] = ()
    wrong: frozenset[str] = frozenset()


def read(environment: Mapping[str, str]) -> Known:
    """Load the configuration; where it has problems, again without the variables that those speak of."""
    try:
        return Known(config=conf.load(environment))
    except ConfigurationError as error:
        problems = error.problems
    wrong = frozenset(filter(None, map(_subject, problems)))
    values = {name: text for name, text in environment.items() if _variable(name) not in wrong}
    if "PI_STATE_DIR" in wrong:
        values["PI_STATE_DIR"] = _ANY_DIRECTORY
    try:
        return Known(config=conf.load(values), problems=problems, wrong=wrong)
    except ConfigurationError:
        # It is not to be had in part: then nothing is concluded from any variable.
        config = conf.load({"PI_STATE_DIR": _ANY_DIRECTORY})
        return Known(config=config, problems=problems, wrong=_NAMES)


def look(known: Known, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Tell every problem, what a worker would refuse to start with, and what is set to no effect."""
    yield from map(_problem, known.problems)
    refused = [name for name in sorted(BOUNDS_TO_COME) if environment.get(name)]
    for name in refused:
        yield AREA.failed(
            "bound-not-built",
            f"{name} is set, and this version cannot keep to it yet: no worker starts",
            "Take it out to start without that bound.",
        )
    is_open = known.config.egress and "PI_EGRESS" not in known.wrong
    if is_open:
        yield AREA.failed(
            "egress",
            "PI_EGRESS is on, and this version cannot restrict the network of a job yet: no worker starts",
            "Set PI_EGRESS=0 to say that jobs may reach the whole network.",
        )
    if not (known.problems or refused or is_open):
        yield AREA.ok("variables", "every variable can be used")
    yield from (_warning(one) for one in known.config.warnings if one.name not in refused)


def not_looked_at(area: Area, check: str, *names: str) -> Finding:
    """Say of a check that it depends on variables that are wrong."""
    which = " and ".join(sorted(names))
    return area.warning(
        check,
        f"not looked at: {which} cannot be used as it stands",
        "Correct it (see configuration), then run this again.",
    )


def _subject(problem: str) -> str | None:
    found = _SUBJECT.match(problem)
    return _variable(found[1]) if found else None


def _variable(name: str) -> str:
    """Name the variable that NAME or NAME_FILE sets."""
    return name if name in _NAMES else name.removesuffix("_FILE")


def _problem(text: str) -> Finding:
    """Tell a problem; what it says of what is right, behind the semicolon, is the fix."""
    # A value that is told may hold a semicolon itself.
    mark = "; expected " if "; expected " in text else "; "
    found, _, allowed = text.partition(mark)
    fix = f"{mark[2:]}{allowed}." if allowed else "Correct it."
    return AREA.failed("variables", found, f"{fix[:1].upper()}{fix[1:]} {_SEE}")


def _warning(warning: ConfigWarning) -> Finding:
    found, _, hint = str(warning).partition("; ")
    fix = f"{hint[:1].upper()}{hint[1:]} Else take it out." if hint else "Take it out, or leave it for later."
    return AREA.warning("variables-unused", found, fix)
