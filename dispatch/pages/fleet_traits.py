"""What hosts say of themselves, and in what they are unlike most of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dispatch.console.findings import Finding
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.fleet_words import short_value
from hosts.rows import HostRow, Presence

NOTHING = "—"


@dataclass(frozen=True, slots=True)
class Trait:
    """What a host says of itself; `differs`: other hosts say something else, and most do not say this."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Described:
    """A trait of a row: its heading, the check that says that hosts differ in it, and what is compared.

    `absent` stands for a blank one, which counts among the values where a host without one differs.
    """

    heading: str
    check: str | None
    value_of: Callable[[HostRow], str]
    absent: str = NOTHING


TRAITS = (
    Described("version", "versions-differ", lambda row: row.version),
    Described("image", "images-differ", lambda row: row.image_digest),
    Described("pi", None, lambda row: row.pi_version),
    Described("zone", "zones-differ", lambda row: row.tz),
)
# What a host has loaded of the operator's files and caps, each as a digest.
LOADED = (
    Described("triggers file", None, lambda row: row.fp_triggers, "none"),
    Described("cron schedules", "cron-differs", lambda row: row.fp_cron),
    Described("pause windows", "pause-windows-differ", lambda row: row.fp_pause, "no file"),
    Described("scoped limits", "scoped-limits-differ", lambda row: row.fp_limits, "no file"),
    Described("settings file", "settings-differ", lambda row: row.fp_settings, "no file"),
    Described("spending caps", "spending-caps-differ", lambda row: row.fp_spending),
)


def concerning(facts: FleetFacts, findings: Sequence[Finding]) -> Mapping[str, Sequence[Finding]]:
    """Sort findings by the hosts to look after; a difference concerns those that are unlike most."""
    compared = {one.check: one for one in (*TRAITS, *LOADED) if one.check}
    usual = usual_values(facts, tuple(compared.values()), findings)
    rows = {row.name: row for row in facts.rows}
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        trait = compared.get(finding.check)
        for name in finding.hosts:
            if trait is None or trait_of(rows.get(name), trait, usual).differs:
                found[name].append(finding)
    return found


def usual_values(
    facts: FleetFacts, traits: Sequence[Described], findings: Sequence[Finding]
) -> Mapping[str, str | None]:
    """Give what most hosts have, by trait in which they differ; None where nothing is usual."""
    checks = {finding.check for finding in findings}
    return {one.heading: _usual(facts.rows, one) for one in traits if one.check in checks}


def _usual(rows: Sequence[HostRow], trait: Described) -> str | None:
    values = (trait.value_of(row) for row in rows)
    counts = Counter(value for value in values if value or _counts_blank(trait)).most_common(2)
    is_alone = len(counts) < 2 or counts[0][1] > counts[1][1]
    return counts[0][0] if counts and is_alone else None


def _counts_blank(trait: Described) -> bool:
    return trait.absent != NOTHING


def trait_of(row: HostRow | None, trait: Described, usual: Mapping[str, str | None]) -> Trait:
    """Tell one trait of a host, and whether it is one that differs; a host that is gone is not compared."""
    value = trait.value_of(row) if row else ""
    is_compared = row is not None and row.presence is not Presence.GONE and trait.heading in usual
    if not value and not (is_compared and _counts_blank(trait)):
        return Trait(trait.absent if row else NOTHING)
    return Trait(short_value(value) or trait.absent, is_compared and usual[trait.heading] != value)
