"""What should be alike on every host of a fleet and is not: versions, images, zones, operator files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.fleet_words import AREA, named, short_value
from hosts.rows import HostRow

_MOST_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Same:
    """One thing that hosts say of themselves; a host that is silent on it is not compared.

    A digest (`is_digest`) says nothing to a person, who hears which hosts agree. Of a file (`is_file`) hosts
    give one too, and who is silent has no file.
    """

    check: str
    what: str
    value_of: Callable[[HostRow], str]
    fix: str
    is_digest: bool = False
    is_file: bool = False


_SAME = (
    _Same(
        check="versions-differ",
        what="versions",
        value_of=lambda row: row.version,
        fix="Fine during an upgrade; afterwards bring every host to the same version.",
    ),
    _Same(
        check="images-differ",
        what="job images",
        value_of=lambda row: row.image_digest,
        fix="Check whether that is meant: a job has another image on another host. Build or load the same"
        " one, then restart the worker.",
    ),
    _Same(
        check="zones-differ",
        what="time zones",
        value_of=lambda row: row.tz,
        fix="A schedule without a zone of its own means another hour on each: set one zone on all machines.",
    ),
    _Same(
        check="cron-differs",
        what="cron schedules",
        # A host without one abstains (Q 10.3).
        value_of=lambda row: row.fp_cron,
        fix="Bring the files of PI_TRIGGERS_FILE, and the zones of the machines, to the same state: until"
        " they agree no schedule is put in or taken out.",
        is_digest=True,
    ),
    _Same(
        check="pause-windows-differ",
        what="pause windows",
        value_of=lambda row: row.fp_pause,
        fix="Bring the files of PI_PAUSE_WINDOWS_FILE to the same state; workers take an edit by themselves.",
        is_file=True,
    ),
    _Same(
        check="scoped-limits-differ",
        what="scoped limits",
        value_of=lambda row: row.fp_limits,
        fix="Bring the files of PI_SCOPED_LIMITS_FILE to the same state; workers take an edit by themselves.",
        is_file=True,
    ),
    _Same(
        check="settings-differ",
        what="settings files",
        value_of=lambda row: row.fp_settings,
        fix="Check whether that is meant: `manage.py settings` shows what counts on each host.",
        is_file=True,
    ),
    _Same(
        check="spending-caps-differ",
        what="spending caps",
        value_of=lambda row: row.fp_spending,
        fix="One budget must have one cap: give PI_DAILY_CAP, PI_WEEKLY_CAP, PI_MONTHLY_CAP,"
        " PI_SOFT_HOLD_PCT, PI_DAILY_TOKEN_CAP and PI_CAP_ACTION the same value on every host, then restart"
        " the workers.",
        is_digest=True,
    ),
)


#: The checks of all that is compared.
DIFFERENCES = frozenset(same.check for same in _SAME)


def differing(facts: FleetFacts) -> Iterator[Finding]:
    """Compare the hosts that are there."""
    for same in _SAME:
        groups = _groups(facts.rows, same)
        if len(groups) > 1:
            hosts = sorted(host for members in groups.values() for host in members)
            yield AREA.warning(same.check, _told(same, groups), same.fix, hosts=tuple(hosts))


def _told(same: _Same, groups: Mapping[str, list[str]]) -> str:
    first = list(groups.items())[:_MOST_GROUPS]
    more = f"; {len(groups) - _MOST_GROUPS} more besides" if len(groups) > _MOST_GROUPS else ""
    if same.is_file or same.is_digest:
        told = (named(hosts) if value else f"{named(hosts)} (no file)" for value, hosts in first)
        return f"{same.what} differ between {' / '.join(told)}{more}"
    said = "; ".join(f"{short_value(value)} on {named(hosts)}" for value, hosts in first)
    return f"{same.what} differ: {said}{more}"


def _groups(rows: Iterable[HostRow], same: _Same) -> dict[str, list[str]]:
    """Sort the hosts by what they say, what most say first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        value = same.value_of(row)
        if value or same.is_file:
            groups[value].append(row.name)
    return {value: groups[value] for value in sorted(groups, key=lambda one: (-len(groups[one]), one))}
