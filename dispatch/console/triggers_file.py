"""The triggers file of this host, as whoever looks from outside the worker finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules.definition import Schedule, of_trigger
from dispatch.schedules.placement import at_its_place, place
from dispatch.triggers import parse
from dispatch.triggers.entries import CronOn, Trigger, Triggers
from hosts import names
from hosts.zone import zone_name
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError

VARIABLE = "PI_TRIGGERS_FILE"


# No slots: what is derived from the entries is kept.
@dataclass(frozen=True, kw_only=True)
class TriggersFile:
    """What PI_TRIGGERS_FILE names (None: nothing), as it is now, and what of this host matters to it.

    `triggers` is None where it does not load, and `problems` says why. `digest` is what hosts publish of the
    same `content`. `zone` is this host's, `name` its declared one, if any: it has a queue of its own then.
    """

    path: Path | None = None
    triggers: Triggers | None = None
    digest: str = ""
    content: bytes = field(default=b"", repr=False)
    problems: tuple[str, ...] = ()
    zone: str = field(default="UTC")
    name: str | None = None

    @cached_property
    def queue(self) -> str:
        """The queue on which this host keeps its schedules."""
        return names.host_queue(self.name) if self.name else names.SHARED_QUEUE

    @cached_property
    def unservable(self) -> tuple[str, ...]:
        """Say why no worker starts with a file that loads: a single host has to serve all of it."""
        try:
            if self.triggers is not None:
                place(self.triggers, fleet_mode=bool(self.name), host_zone=self.zone, name=str(self.path))
        except OperatorFileError as error:
            return tuple(error.problems)
        return ()

    @property
    def trouble(self) -> str:
        """Say, after "it", what is wrong with it; blank: nothing."""
        if self.problems:
            return "does not load"
        return "is taken by no worker" if self.unservable else ""

    @cached_property
    def cron(self) -> Mapping[str, Trigger]:
        """The schedules by id, in the file's order."""
        entries = self.triggers.cron if self.triggers else ()
        return {one.on.id: one for one in entries if isinstance(one.on, CronOn)}

    @cached_property
    def schedules(self) -> Mapping[str, Schedule]:
        """The same as queues keep them; `zone` of those without one of their own is this host's."""
        schedules = {name: of_trigger(one, host_zone=self.zone) for name, one in self.cron.items()}
        return {name: at_its_place(one) for name, one in schedules.items()}


def read(environment: Mapping[str, str]) -> TriggersFile:
    """Read the file that the environment names; ConfigurationError for a variable that cannot be used."""
    if environment.get(VARIABLE) == "":
        # It could mean no file or a forgotten one; no worker starts with it either.
        raise ConfigurationError(
            f"{VARIABLE} is set to an empty value; expected a path, or the line taken out"
        )
    name: str | None = conf.one("PI_WORKER_NAME", environment)
    return of(conf.one(VARIABLE, environment), environment, name=name if names.in_alphabet(name) else None)


def of(path: Path | None, environment: Mapping[str, str], *, name: str | None) -> TriggersFile:
    """Read the file at this path (None: there is none) as that of the host with this declared name."""
    zone = zone_name(environment)
    return TriggersFile(zone=zone, name=name) if path is None else loaded(path, zone=zone, name=name)


def loaded(path: Path, *, zone: str, name: str | None) -> TriggersFile:
    """Read this file; what is wrong with it is told in `problems`."""
    read: list[bytes] = []

    def parsed(content: bytes) -> Triggers:
        read.append(content)
        return parse.parse(content, name=str(path))

    file = LiveFile(path, parsed, label="triggers", count=len)
    try:
        triggers = file.load()
    except OperatorFileError as error:
        return TriggersFile(path=path, problems=tuple(error.problems), zone=zone, name=name)
    return TriggersFile(
        path=path, triggers=triggers, digest=file.digest, content=read[-1], zone=zone, name=name
    )
