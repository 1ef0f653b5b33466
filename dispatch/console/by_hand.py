"""Which job `run --trigger` starts, and where: a schedule's own job, on a host that serves the schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dispatch.console import triggers_file
from dispatch.console.asked import Asked
from dispatch.console.destination import Destination, Here, here, unasked
from dispatch.console.triggers_file import VARIABLE, TriggersFile
from dispatch.ids import manual_id
from dispatch.jobs import JobData
from dispatch.operator_files.problems import shown
from dispatch.schedules import definition, keys
from dispatch.schedules.definition import BrokenDefinitionError, Schedule, of_trigger
from dispatch.schedules.fingerprint import canonical
from dispatch.schedules.placement import place
from dispatch.schedules.unserved import UnservedReason
from dispatch.triggers.entries import CronOn, Trigger, Triggers, wire
from hosts import roster
from hosts.names import host_queue, in_alphabet
from hosts.rows import HostRow, Roster
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError, OperationalError

if TYPE_CHECKING:
    import redis

# What a person still reads; more are counted.
_MOST_TOLD = 20
#: The options of `run` that say what a job is, by their names in argparse: the entry says all of it.
_SAID_BY_THE_ENTRY: Mapping[str, str] = {
    "folder": "FOLDER",
    "task": "--task",
    "task_file": "--task-file",
    "flow": "--flow",
    "command": "--command",
    "provider": "--provider",
    "model": "--model",
    "max_turns": "--max-turns",
    "image": "--image",
    "after": "--after",
    "wait_for": "--wait-for",
    "needs": "--needs",
    "force": "--force",
}


def asked(config: Config, options: Mapping[str, Any], *, now: datetime) -> Asked:
    """Take the own job of the schedule that `--trigger` names, without a look at uncommitted changes.

    As at its instants. ConfigurationError for what cannot be asked for.
    """
    _require_alone(options)
    file, this = triggers_file.read(config.environment), here(config)
    entry = _chosen(file, options["trigger"])
    schedule, absent = _placed(file, entry, this)
    return Asked(
        job=_job_of(file, schedule),
        job_id=manual_id(schedule.id, instant=now),
        destination=lambda client: _destination(client, this, schedule, absent),
    )


def _require_alone(options: Mapping[str, Any]) -> None:
    """Raise a ConfigurationError that names what cannot stand beside --trigger."""
    unset = (None, False)
    given = [
        name
        for option, name in _SAID_BY_THE_ENTRY.items()
        if options[option] != [] and not any(options[option] is one for one in unset)
    ]
    if given:
        raise ConfigurationError(
            f"{', '.join(given)} cannot be given with --trigger: the entry of the triggers file says all of"
            " it. Change the entry, or run the folder without --trigger."
        )


def _chosen(file: TriggersFile, given: str) -> Trigger:
    """Find the schedule of this id; ConfigurationError that names those there are."""
    if file.path is None:
        raise ConfigurationError(
            f"{VARIABLE} is not set, so there is no schedule to start; name the file that the worker has."
        )
    if file.triggers is None:
        raise ConfigurationError(*file.problems)
    found = file.cron.get(given)
    if found is None:
        ids = list(file.cron)
        more = f" and {len(ids) - _MOST_TOLD} more" if ids[_MOST_TOLD:] else ""
        told = f"schedules are {', '.join(ids[:_MOST_TOLD])}{more}" if ids else "the file has no schedule"
        raise ConfigurationError(f"{_not_found(file, given)}; {told}.")
    return found


def _job_of(file: TriggersFile, schedule: Schedule) -> JobData:
    try:
        return schedule.job()
    except BrokenDefinitionError as error:
        raise ConfigurationError(f"{file.path}: the schedule {schedule.id} {error}") from error


def _not_found(file: TriggersFile, given: str) -> str:
    entries = file.triggers.entries if file.triggers else ()
    at = next((one for one in entries if str(one.index) == given), None)
    if at is None:
        return f"{file.path} has no schedule {shown(given)}"
    if isinstance(at.on, CronOn):
        return f"--trigger {given} is the place of a schedule; give its id, {at.on.id}"
    kind = wire(at)["on"]["type"]
    return f"--trigger {given} is the place of an entry of type {kind}, and only a schedule starts by hand"


def _placed(file: TriggersFile, entry: Trigger, this: Here) -> tuple[Schedule, UnservedReason | None]:
    """Make the schedule, and tell why this host does not serve it: of a single host that is an error."""
    # Started by hand, it needs no zone to go by.
    placed = place(
        Triggers((entry,)), fleet_mode=this.has_own_queue, host_zone=file.zone or "UTC", name=str(file.path)
    )
    if placed.unserved:
        return of_trigger(entry, host_zone=file.zone), placed.unserved[0].reason
    return placed.served[0], None


def _destination(
    client: redis.Redis, this: Here, schedule: Schedule, absent: UnservedReason | None
) -> Destination:
    if absent is None and this.has_own_queue:
        return Destination(queue=this.queue)
    found = roster.read(client)
    if absent is None:
        return unasked(found, this)
    if not isinstance(found, Roster):
        why = f"the registry of hosts cannot be read ({found.reason})"
        raise OperationalError(f"This host cannot run it ({absent}), and {why}; try again.")
    return _elsewhere(client, found.live, schedule, absent)


def _elsewhere(client: redis.Redis, live: Sequence[HostRow], schedule: Schedule, absent: str) -> Destination:
    rows = {host_queue(row.name): row for row in live if row.routes and in_alphabet(row.name)}
    keep = list(_keeping(client, list(rows), schedule.id))
    same = {queue: kept for queue, kept in keep if kept and _work_of(kept) == _work_of(schedule)}
    if not same:
        differ = ", ".join(sorted(rows[queue].name for queue, _ in keep)[:_MOST_TOLD])
        told = f"; {differ} keeps a schedule of that id that says something else" if keep else ""
        raise OperationalError(
            f"No live host serves the schedule {schedule.id} as this host's file has it{told}, and this host"
            f" cannot ({absent}); nothing was enqueued. `manage.py triggers` shows who serves what."
        )
    # Who takes jobs now goes first; of several always the same one.
    queue = min(same, key=lambda one: (rows[one].draining, rows[one].name))
    row = rows[queue]
    note = f"The job goes to {queue}: host {row.name} serves the schedule, this host does not ({absent})"
    drained = f"; it takes nothing until `manage.py undrain {row.name}`" if row.draining else ""
    return Destination(queue=queue, note=f"{note}{drained}.", job=same[queue].job())


def _work_of(schedule: Schedule) -> str:
    """Write what it starts; without the folder, of which each host keeps its own real path."""
    return canonical({**schedule.run, "folder": None})


def _keeping(
    client: redis.Redis, queues: Sequence[str], schedule_id: str
) -> Iterator[tuple[str, Schedule | None]]:
    """List the queues that have a schedule of this id installed, with what it is (None: unreadable)."""
    with client.pipeline(transaction=False) as pipeline:
        for queue in queues:
            pipeline.hget(keys.definitions(queue), schedule_id)
        found = pipeline.execute(raise_on_error=False)
    for queue, text in zip(queues, found, strict=True):
        if isinstance(text, bytes):
            yield queue, definition.read(text)
