"""The operator's files of this host on the settings page: what each says, and which workers have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dispatch.console.adoption import LIMITS, SETTINGS, WINDOWS, Adoption, Followed, Tone
from dispatch.console.fleet_words import named
from dispatch.console.limit_rules import LIMIT_RULES
from dispatch.console.rule_listing import judged
from dispatch.console.rules import Rules
from dispatch.console.window_rules import WINDOW_RULES
from dispatch.operator_files import overlay
from dispatch.operator_files.overlay import KEYS
from dispatch.operator_files.problems import OperatorFileError
from dispatch.pages import followed
from dispatch.pages.sight import Sight, Unseen
from hosts import roster
from hosts.rows import HostRow, Presence, Unreachable
from pidispatch_site import conf
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError, PidispatchError

#: The kinds of files by their words in addresses.
KINDS: Mapping[str, Followed] = {"overlay": SETTINGS, "windows": WINDOWS, "limits": LIMITS}
_REFUSED = "does not load: every job of this host is refused until it does"
_KEPT = "does not load: workers keep the last version that did, and none starts with this one"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    """One file: what it says without a scope or a path, and who has taken it over, in a colour's words.

    `is_named`: this site is told which file it is, so that it can be edited here.
    """

    kind: str
    label: str
    variable: str
    says: str
    is_wrong: bool
    tone: Tone
    taken: tuple[str, ...]
    is_named: bool


def path_of(kind: str, environment: Mapping[str, str], config: Callable[[], Config]) -> Path | None:
    """Tell which file this site reads, None where none is named; ConfigurationError."""
    if kind == "overlay":
        return config().settings_file
    return path_named(KINDS[kind].variable, environment)


def path_named(variable: str, environment: Mapping[str, str]) -> Path | None:
    """Read the path that a variable names; ConfigurationError for one that cannot be used."""
    if environment.get(variable) == "":
        # It could mean no file or a forgotten one; no worker starts with it either.
        raise ConfigurationError(
            f"{variable} is set to an empty value; expected a path, or the line taken out"
        )
    found: Path | None = conf.one(variable, environment)
    return found


def lines_of(
    seen: Sight, environment: Mapping[str, str], config: Callable[[], Config], now: datetime
) -> Iterator[FileLine]:
    """Look at every file, and once at the registry."""
    found = seen.read(roster.read)
    for kind, what in KINDS.items():
        path: Path | None = None
        try:
            path = path_of(kind, environment, config)
            says, is_wrong = _said(kind, path, now)
            tone, taken = _taken(found, path, what, environment)
        except PidispatchError:
            # Which variable that is, and why, stands above for the whole page.
            says, is_wrong, tone, taken = (
                "cannot be told: the configuration does not load",
                True,
                Tone.BAD,
                (),
            )
        yield FileLine(
            kind=kind,
            label=what.what.capitalize(),
            variable=what.variable,
            says=says,
            is_wrong=is_wrong,
            tone=tone,
            taken=taken,
            is_named=path is not None,
        )


def readers(rows: Sequence[HostRow], what: Followed) -> tuple[Tone, str]:
    """Say who reads such a file, for a site that is told of none."""
    hosts = [row.name for row in rows if row.presence is not Presence.GONE and what.value_of(row)]
    if not hosts:
        return Tone.GOOD, "No worker that is there reads one."
    reads = "reads one" if len(hosts) == 1 else "read one each"
    return Tone.WARN, (
        f"{named(sorted(hosts))} {reads}, of which this site knows nothing: set {what.variable} for this"
        " site, too, to see and edit that of its host here."
    )


def readers_seen(seen: Sight, what: Followed) -> str:
    """Ask the registry, then as `readers`."""
    found = seen.read(roster.read)
    return found.why if isinstance(found, Unseen) else _without_path(found, what)[1]


def _without_path(found: object, what: Followed) -> tuple[Tone, str]:
    if isinstance(found, Unreachable):
        why = f"Valkey does not tell which hosts there are ({found.reason})."
        return Tone.WARN, f"That cannot be told now. {why}"
    rows: Sequence[HostRow] = getattr(found, "hosts", ())
    return readers(rows, what)


def _taken(
    found: object, path: Path | None, what: Followed, environment: Mapping[str, str]
) -> tuple[Tone, tuple[str, ...]]:
    if isinstance(found, Unseen):
        return Tone.WARN, (f"That cannot be told now. {found.why}",)
    if path is None or isinstance(found, Unreachable):
        tone, sentence = _without_path(found, what)
        return tone, (sentence,)
    adoption: Adoption = followed.of_rows(getattr(found, "hosts", ()), path, what, environment)
    return adoption.tone, adoption.sentences


def _said(kind: str, path: Path | None, now: datetime) -> tuple[str, bool]:
    if path is None:
        return "not set for this site", False
    content = followed.standing(path).content
    if kind == "overlay":
        return _of_overlay(content)
    rules: Rules = {"windows": WINDOW_RULES, "limits": LIMIT_RULES}[kind]
    if content is None:
        return "there is no such file, or it cannot be read: no worker starts without it", True
    found = judged(content, rules)
    if found.rules is None:
        return _KEPT, True
    return rules.counted(found.rules, now), False


def _of_overlay(content: bytes | None) -> tuple[str, bool]:
    if content is None:
        return "there is no such file: it sets nothing", False
    try:
        found = overlay.parse(content, name="")
    except OperatorFileError:
        return _REFUSED, True
    keys = [key.name for key in KEYS if getattr(found, key.field) is not None]
    return f"sets {', '.join(keys)}" if keys else "sets nothing", False
