"""What schedules need of the machine on which a person types: their folders, as a worker there finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dispatch.operator_files.problems import Problem, shown
from dispatch.schedules.placement import misplaced
from dispatch.schedules.unserved import Misplaced, UnservedReason
from dispatch.triggers.entries import Trigger, Triggers, wire
from dispatch.triggers.parse import place_of
from hosts.zone import zone_name
from pidispatch_site import conf

_RELATIVE = (UnservedReason.FOLDER_RELATIVE, UnservedReason.SKILLS_DIR_RELATIVE)
_ABSENT = (UnservedReason.FOLDER_ABSENT, UnservedReason.SKILLS_DIR_ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The host itself: whether it is one of a fleet, and its zone (blank: nobody names it)."""

    in_fleet: bool
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """What a file needs that is not on this machine.

    `plain`: schedules whose folder is here and no git working tree, as a sentence by entry.
    """

    machine: Machine
    misplaced: tuple[Misplaced, ...]
    plain: Mapping[int, str]

    def problems(self, *, of: int | None = None) -> tuple[Problem, ...]:
        """List what a worker of a single host refuses the file for, of one entry or of all."""
        found = () if self.machine.in_fleet else self.misplaced
        return tuple(one.problem for one in found if of in (None, one.index))

    def notes(self, *, of: int | None = None) -> tuple[str, ...]:
        """Say all of it in sentences, of one entry or of all."""
        said = [(one.index, self._said(one)) for one in self.misplaced] + list(self.plain.items())
        return tuple(text for index, text in said if of in (None, index))

    def named(self, *, relative: bool) -> tuple[str, ...]:
        """Name the paths that are relative, or absent here, for a program."""
        reasons = _RELATIVE if relative else _ABSENT
        return tuple(_named(one) for one in self.misplaced if one.reason in reasons)

    def _said(self, one: Misplaced) -> str:
        if self.machine.in_fleet and one.reason in _RELATIVE:
            return f"{_named(one)}, which is no absolute path: no host serves it."
        if self.machine.in_fleet and one.reason in _ABSENT:
            return f"{_named(one)}: no such folder on this host: another host serves it."
        return f"{one.problem.place} {one.problem.text}."


def machine(environment: Mapping[str, str]) -> Machine:
    """Read which one it is; ConfigurationError for a variable that cannot be used."""
    return Machine(in_fleet=conf.one("PI_WORKER_NAME", environment) is not None, zone=zone_name(environment))


def look(triggers: Triggers, this: Machine) -> Places:
    """Look for them, as they are now."""
    found = misplaced(triggers, host_zone=this.zone)
    away = {one.index for one in found}
    here = (one for one in triggers.cron if one.index not in away)
    return Places(machine=this, misplaced=found, plain=dict(_plain(here)))


def _plain(schedules: Iterator[Trigger]) -> Iterator[tuple[int, str]]:
    for one in schedules:
        folder = one.run.folder or ""
        if not _has_git(folder):
            place = place_of(one.index, wire(one))
            said = "which is no git working tree: its jobs are refused on this host."
            yield one.index, f"{place}: run.folder is {shown(folder)}, {said}"


def _has_git(folder: str) -> bool:
    try:
        return (Path(folder) / ".git").exists()
    except OSError:
        # It may not be looked into from here.
        return False


def _named(one: Misplaced) -> str:
    return f"{one.place} is {'not set' if one.found is None else shown(one.found)}"
