"""Checks of what starts by itself: the triggers file, and whether its schedules keep their word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from dispatch.console import triggers_file
from dispatch.console.counts import number_of
from dispatch.console.findings import Area, Finding, Mark
from dispatch.console.fleet_words import named
from dispatch.console.schedule_facts import Line, Overview, TableLook
from dispatch.console.triggers_file import VARIABLE, TriggersFile
from dispatch.doctor.configuration import Known, not_looked_at
from dispatch.schedules import placement
from dispatch.schedules.missed import MissedReason, Standing
from dispatch.triggers.entries import Disarmed, Triggers
from hosts.names import host_of_queue

T = TypeVar("T")

AREA = Area("triggers")
_USUAL = "triggers.json"
_SEE = "docs/triggers.md says what is allowed."
# Of what is told one by one.
_MOST_TOLD = 20


def file_of(known: Known) -> TriggersFile:
    """Read the file that the configuration names; nothing where its name cannot be used."""
    config = known.config
    name = config.worker_name if config.worker_name_declared else None
    path = None if VARIABLE in known.wrong else config.triggers_file
    return triggers_file.of(path, config.environment, name=name)


def look(
    known: Known, folder: Path | None, overview: Overview | None, file: TriggersFile
) -> Iterator[Finding]:
    """Judge the file, and how schedules stand (`overview`; None: Valkey was not asked).

    `folder` is the current one, None when it is gone.
    """
    if VARIABLE in known.wrong:
        yield not_looked_at(AREA, "loads", VARIABLE)
    elif file.path is None:
        yield _unset(file, folder)
    else:
        yield from _loaded(file)
    if overview is not None:
        yield from _standing(overview)
    elif file.cron:
        yield AREA.warning(
            "standing", "not looked at: whether schedules keep their word", "See valkey, above."
        )


def _unset(file: TriggersFile, folder: Path | None) -> Finding:
    path = folder / _USUAL if folder else None
    if path is None or not path.exists():
        return AREA.ok("loads", f"no file of triggers is configured ({VARIABLE})")
    armed = len(_armed(triggers_file.loaded(path, zone=file.zone, name=file.name)))
    shots = f", and {number_of(armed, 'one-shot is', 'one-shots are')} armed in it" if armed else ""
    return AREA.warning(
        "loads",
        f"{path} is not read: {VARIABLE} is not set{shots}",
        f"Set {VARIABLE}={path}, or move the file away.",
    )


def _loaded(file: TriggersFile) -> Iterator[Finding]:
    for text in file.problems:
        found, _, allowed = text.rpartition("; ")
        fix = f"{allowed[:1].upper()}{allowed[1:]}." if found else "Correct the file."
        yield AREA.failed("loads", f"{found or text} (no worker starts with it)", f"{fix} {_SEE}")
    if file.triggers is not None:
        yield from _content(file, file.triggers)


def _content(file: TriggersFile, triggers: Triggers) -> Iterator[Finding]:
    entries = triggers.entries
    rules = number_of(len(entries) - len(file.cron), "rule", "rules")
    count = number_of(len(file.cron), "schedule", "schedules")
    yield AREA.ok("loads", f"{file.path} loads: {count}, {rules} for forges")
    armed, spent = len(_armed(file)), sum(isinstance(one.on, Disarmed) for one in entries)
    if armed or spent:
        yield AREA.ok("one-shots", f"one-shots: {armed} armed, {spent} spent")
    told = sum(one.run.instructions is not None for one in entries)
    if told:
        yield AREA.ok("instructions", f"{number_of(told, 'rule has', 'rules have')} standing instructions")
    commands = sum(one.run.command is not None for one in entries)
    if commands:
        yield AREA.ok("commands", f"{number_of(commands, 'entry runs', 'entries run')} a command, not a flow")
    for one in entries:
        if one.run.replicas:
            yield AREA.warning(
                "replicas",
                f"rule {one.index} starts {one.run.replicas} jobs each time, and each is paid and counts",
                "Fine if that is meant; else take replicas out of it.",
            )
    yield from _unserved(file, triggers)


def _unserved(file: TriggersFile, triggers: Triggers) -> Iterator[Finding]:
    """Tell what this host cannot serve: in a fleet another may, a single host has to."""
    placed = placement.place(triggers, fleet_mode=True, host_zone=file.zone, name=str(file.path))
    if file.name and placed.unserved:
        ids = [one.id for one in placed.unserved]
        count = number_of(len(ids), "schedule is", "schedules are")
        yield AREA.ok("served", f"{count} for other hosts: {named(ids)}")
        return
    yield from _told(
        placed.unserved,
        lambda one: AREA.failed(
            "served",
            f"schedule {one.id} cannot be served by this host ({one.reason}): no worker starts with it",
            "Make the folder, or correct the entry.",
        ),
    )


def _standing(overview: Overview) -> Iterator[Finding]:
    """Tell every schedule that a person should look after, and tables that nobody acts on."""
    if overview.is_behind:
        yield AREA.warning(
            "taken-over",
            f"the worker here has loaded another version of {overview.file.path} than stands there",
            "Wait a moment; else its log says why (schedules_reload_invalid, cron_divergence_refused).",
        )
    alarms = [line for line in overview.lines if line.is_alarm]
    yield from _told([line for line in alarms if not _is_told(line, overview.file)], _alarm)
    for table in overview.tables:
        yield from _of_table(table)
    if overview.lines and not alarms:
        count = len(overview.lines)
        yield AREA.ok("standing", f"{number_of(count, 'schedule keeps its', 'schedules keep their')} word")


def _is_told(line: Line, file: TriggersFile) -> bool:
    """Tell whether it is said anyway: of the file of a single host, or of a table that nobody acts on."""
    if line.state == MissedReason.HOST_GONE and line.installed:
        return True
    reason = line.verdict.reason if line.verdict else None
    return file.name is None and MissedReason.UNSERVED in (line.state, reason)


def _alarm(line: Line) -> Finding:
    hosts = tuple(filter(None, (host_of_queue(one.queue) for one in line.installed)))
    tell = AREA.failed if line.mark is Mark.FAILED else AREA.warning
    check = Standing.MISSED.value if line.state == Standing.MISSED else line.state
    return tell(check, f"schedule {line.id}: {line.words}", line.remedy, hosts=hosts)


def _of_table(look: TableLook) -> Iterator[Finding]:
    queue, host = look.queue.queue, host_of_queue(look.queue.queue)
    hosts = (host,) if host else ()
    if look.unreadable:
        yield AREA.warning(
            "unreadable",
            f"the schedules of {queue} cannot be read ({look.unreadable})",
            "Find out who writes to this Valkey; with the key deleted, its worker puts them in anew.",
            hosts=hosts,
        )
    kept = sum(one.torn is None for one in look.installed.values())
    if not kept:
        return
    count = f"{number_of(kept, 'schedule stands', 'schedules stand')} in {queue}"
    if not look.queue.has_worker:
        absent = f"the worker {host} is not there" if host else "no worker is there"
        yield AREA.warning(
            "host-gone",
            f"{count}, and {absent} to start them",
            "Start its worker, or let another host have the folders and the same triggers file.",
            hosts=hosts,
        )
    elif look.host and not look.host.fp_triggers:
        yield AREA.warning(
            "no-triggers-file",
            f"{count}, and {look.host.name} has no triggers file: nobody starts them",
            f"Set {VARIABLE} there and restart its worker.",
            hosts=hosts,
        )


def _armed(file: TriggersFile) -> Sequence[object]:
    shots = file.triggers.one_shots if file.triggers else ()
    return [one for one in shots if not isinstance(one.on, Disarmed)]


def _told(found: Sequence[T], tell: Callable[[T], Finding]) -> Iterator[Finding]:
    """Tell the first of many, and how many more there are."""
    yield from map(tell, found[:_MOST_TOLD])
    if (more := len(found) - _MOST_TOLD) > 0:
        yield AREA.warning("more", f"{more} more are like that", "`manage.py triggers` lists all of them.")
