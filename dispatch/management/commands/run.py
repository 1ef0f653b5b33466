"""`manage.py run`: put one job on a local folder into the queue."""

from __future__ import annotations

import io
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import by_hand
from dispatch.console.arguments import HIDDEN
from dispatch.console.asked import Asked
from dispatch.console.conditions import authored, judged_here, misused
from dispatch.console.destination import Destination, chosen, here, misnamed, unasked
from dispatch.console.explained import explained
from dispatch.console.follow import EXIT_CODES, Follower
from dispatch.console.lookup import why_it_waits
from dispatch.console.server import Server, reached
from dispatch.console.tasks import read_task
from dispatch.ids import local_id
from dispatch.jobs import JobData, encode, local_job
from dispatch.queue.new_jobs import LOCAL
from dispatch.queue.producer import Exists, Producer
from hosts import roster
from hosts.capabilities import needs_of
from pidispatch_site import clients
from pidispatch_site.clients import VALKEY_FAULTS
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError, OperationalError
from pidispatch_site.places import StateDirectory
from runs.outcome import Outcome
from runs.workspace.folder import CheckedFolder, check_folder, require_clean
from runs.workspace.git import Git
from runs.workspace.jobuser import Account

if TYPE_CHECKING:
    import redis

_INTERRUPTED = 130
# How long a server that lives may keep a person waiting for its first answer.
_VALKEY_SECONDS = 3


class Command(BaseCommand):
    help = "Enqueue one agent job, on the git working tree FOLDER or a schedule's, and print its id."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folder", metavar="FOLDER", nargs="?", help="the working tree that the agent edits in place"
        )
        parser.add_argument(
            "--trigger", metavar="ID", help="start this schedule's job of PI_TRIGGERS_FILE now, instead"
        )
        task = parser.add_mutually_exclusive_group()
        task.add_argument("--task", metavar="TEXT", help="what is to be done")
        task.add_argument(
            "--task-file", metavar="FILE", help="read the task from a file, or from standard input with -"
        )
        entry = parser.add_mutually_exclusive_group()
        entry.add_argument("--flow", help="the skill .pi/skills/FLOW of the repository to use")
        entry.add_argument("--command", help="a slash command with its arguments, instead of a task")
        parser.add_argument("--provider", help="default: PI_PROVIDER")
        parser.add_argument("--model", help="default: PI_MODEL")
        parser.add_argument("--max-turns", type=int, metavar="N", help="default: PI_MAX_TURNS")
        parser.add_argument("--image", help="default: PI_JOB_IMAGE")
        parser.add_argument(
            "--after",
            metavar="ISO",
            action="append",
            default=[],
            help="start no sooner than this instant, written with its zone: 2026-09-01T09:00:00Z",
        )
        parser.add_argument(
            "--wait-for",
            metavar="PROFILE",
            action="append",
            default=[],
            help="start no sooner than this check of PI_WAIT_PROFILES allows; may be repeated",
        )
        parser.add_argument(
            "--needs",
            metavar="CAP",
            action="append",
            default=[],
            help="run where a live host has this secret (s:NAME) or wait profile (w:NAME); may be repeated",
        )
        parser.add_argument(
            "--force", action="store_true", help="also with uncommitted changes in the folder"
        )
        parser.add_argument(
            "--wait",
            action="store_true",
            help="follow to the end; exit 0 completed, 1 failed, 2 refused or stopped",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        config: Config = settings.PIDISPATCH
        by_trigger, now = options["trigger"] is not None, datetime.now(UTC)
        asked = (by_hand.asked if by_trigger else _on_folder)(config, options, now=now)
        for note in asked.notes:
            self._say(note)
        job, job_id = asked.job, asked.job_id
        state = StateDirectory(config.state_dir)
        url = clients.resolve(config.valkey_url, state, start=True, others_seconds=_VALKEY_SECONDS)
        with reached(url) as server:
            goes = asked.destination(server.client)
            self.stdout.write(_enqueue(server, goes, asked, say=self._say))
            # The id first, wherever the two streams go.
            self.stdout.flush()
            if goes.note:
                self._say(goes.note)
            if not options["wait"]:
                self._mention_what_holds_it(server, goes.queue)
            else:
                self._wait(server, job_id, config, image=job.image or config.job_image)

    def _wait(self, server: Server, job_id: str, config: Config, *, image: str) -> None:
        """Follow the job and exit as it ended; an interrupt ends the watching, never the job."""
        follower = Follower(
            server.client, job_id, logs_dir=config.logs_dir, here=config.worker_name, say=self._say
        )
        try:
            ending = follower.to_the_end()
        except KeyboardInterrupt:
            self._say(f"\nNo longer watching. Job {job_id} stays in the queue or goes on running.")
            sys.exit(_INTERRUPTED)
        if ending.outcome is not Outcome.COMPLETED:
            self._say(explained(ending, image=image))
        sys.exit(EXIT_CODES[ending.outcome])

    def _mention_what_holds_it(self, server: Server, queue: str) -> None:
        """Say what would surprise whoever goes away now; the job stands in the queue whatever comes of it."""
        try:
            why = why_it_waits(server.client, queue)
        except VALKEY_FAULTS as fault:
            why = f"Valkey does not say whether a worker is there ({type(fault).__name__})"
        if why:
            self._say(f"The job waits: {why}")

    def _say(self, text: str) -> None:
        # Not in the red of Django's stderr: it is news, no error.
        self.stderr.write(text, str)
        self.stderr.flush()


def _on_folder(config: Config, options: dict[str, Any], *, now: datetime) -> Asked:
    if options["folder"] is None:
        raise ConfigurationError("name the FOLDER that the agent works on, or a schedule by --trigger ID")
    account, git = Account(os.getuid(), os.getgid()), Git()
    folder = check_folder(options["folder"], account=account, git=git, base=Path.cwd())
    job = _asked_for(folder, options)
    needs = options["needs"]
    notes = judged_here(job.wait_for, config, is_routed=bool(needs), now=now)
    if not options["force"]:
        require_clean(folder, account=account, git=git)
    job_id = local_id(str(folder.path), flow=job.flow, command=job.command, task=job.task, now=now)
    return Asked(
        job=job,
        job_id=job_id,
        destination=lambda client: _destination(client, config, needs, job, job_id),
        notes=(*folder.notes, *notes),
    )


def _asked_for(folder: CheckedFolder, options: dict[str, Any]) -> JobData:
    """Make the job that the options describe; ConfigurationError with all that is wrong with any of them."""
    wrong = (*misused(options["after"], options["wait_for"]), *misnamed(options["needs"]))
    try:
        job = _job(folder, {**options, "after": [], "wait_for": []} if wrong else options)
    except ConfigurationError as error:
        raise ConfigurationError(*error.problems, *wrong) from error
    if wrong:
        raise ConfigurationError(*wrong)
    return job


def _job(folder: CheckedFolder, options: dict[str, Any]) -> JobData:
    task = options["task"]
    if options["task_file"] is not None:
        # A closed standard input is an empty one.
        task = read_task(options["task_file"], stdin=sys.stdin.buffer if sys.stdin else io.BytesIO())
    return local_job(
        str(folder.path),
        task=task,
        flow=options["flow"],
        command=options["command"],
        provider=options["provider"],
        model=options["model"],
        max_turns=options["max_turns"],
        image=options["image"],
        wait_for=authored(options["after"], options["wait_for"]),
    )


def _destination(
    client: redis.Redis, config: Config, needs: Sequence[str], job: JobData, job_id: str
) -> Destination:
    """Find the queue: this host's, unless something is asked for that a host has to have."""
    this = here(config)
    if not needs:
        # A queue of one's own is nobody else's: then nothing is asked of the registry.
        return Destination(queue=this.queue) if this.has_own_queue else unasked(roster.read(client), this)
    all_needs = needs_of(encode(job)["data"]).union(needs)
    goes = chosen(roster.read(client), this, all_needs, job_id)
    return replace(goes, needs=frozenset(needs))


def _enqueue(server: Server, goes: Destination, asked: Asked, *, say: Callable[[str], None]) -> str:
    """Enqueue it; the line to print, `OperationalError` when the id stands where it will not run again."""
    job = goes.job or asked.job
    found = Producer(server.client).enqueue(
        goes.queue, asked.job_id, job, keeping=LOCAL, scope_hash=job.scope_hash, needs=goes.needs
    )
    if not isinstance(found, Exists):
        return asked.job_id
    line = f"exists {asked.job_id} {found.state}"
    if found.state.is_waiting and found.queue == goes.queue:
        if asked.job.wait_for:
            say("It stands as it was first asked for; --after and --wait-for change nothing of it now.")
        return line
    raise OperationalError(
        f"{line}, on queue {found.queue}\n"
        "The same words on the same folder are one job for the rest of the minute: change them, or wait."
    )
