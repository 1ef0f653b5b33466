"""`manage.py triggers`: what starts by itself, and edits of the file that says so."""

from __future__ import annotations

import json
import os
import shutil
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console import schedules_shown
from dispatch.console.arguments import HIDDEN
from dispatch.console.server import switch_server
from dispatch.console.trigger_changes import Asked, Kind, difference
from dispatch.console.trigger_check import check
from dispatch.console.trigger_edit import carry_out
from dispatch.console.trigger_places import machine
from dispatch.console.trigger_rearm import NOT_FORGOTTEN, forget_spent, is_armed
from dispatch.console.trigger_restore import restore
from dispatch.operator_files import strict_json
from dispatch.operator_files.content import opened, read_from
from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from pidispatch_site import conf, log
from pidispatch_site.errors import ConfigurationError, OperationalError, PidispatchError

_VARIABLE = "PI_TRIGGERS_FILE"
_STDIN = "-"
_MOST_STARTS = 100
_NO_FILE = (
    f"{_VARIABLE} is not set, so this host has no triggers. Set it to the path of a file, in the environment"
    " or the .env file that the worker and this command read; --add --create makes the file."
)


class Command(BaseCommand):
    help = "Show what starts by itself, when and where next, and what was missed; check or change the file."
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        does = parser.add_mutually_exclusive_group()
        does.add_argument(
            "--check", metavar="FILE", help="judge a file (- for standard input), change nothing"
        )
        does.add_argument("--add", metavar="ENTRY", help="add an entry: JSON, @FILE, or - for standard input")
        does.add_argument(
            "--edit",
            nargs=2,
            metavar=("PLACE", "ENTRY"),
            help="put an entry in the place of one: its index, or the id of its schedule",
        )
        does.add_argument("--remove", metavar="PLACE", help="take an entry out")
        does.add_argument("--restore", metavar="ID", help="let a schedule go on that kept losing its worker")
        parser.add_argument(
            "--create", action="store_true", help="with --add: make the file if there is none"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="show what an edit would do, write nothing"
        )
        parser.add_argument(
            "--next", type=_count, default=1, metavar="N", help="how many next starts of each are listed"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        environment = settings.PIDISPATCH_ENVIRONMENT
        # Standard output is the answer's.
        log.configure(log.EventLog(sys.stderr, plain=True))
        if options["check"] is not None:
            name, content = _content(options["check"])
            own = conf.one(_VARIABLE, environment) if options["check"] != _STDIN else None
            checked = check(content, name=name, this=machine(environment), own=own)
            self._answer(checked.as_json(), str(checked), options)
        elif options["restore"] is not None:
            self._restore(environment, options)
        elif asked := _asked(options):
            self._change(asked, environment, options)
        else:
            sys.exit(
                schedules_shown.show(
                    environment,
                    write=self.stdout.write,
                    warn=self.stderr.write,
                    upcoming=options["next"],
                    as_json=options["json"],
                    columns=shutil.get_terminal_size().columns,
                )
            )

    def _change(self, asked: Asked, environment: Mapping[str, str], options: dict[str, Any]) -> None:
        path: Path | None = conf.one(_VARIABLE, environment)
        if path is None:
            raise ConfigurationError(_NO_FILE)
        is_written, this = not options["dry_run"], machine(environment)
        edited = carry_out(asked, path, this, is_written=is_written, create=options["create"])
        before, after = edited.written.before, edited.written.after
        said = [asked.said(is_written=is_written, in_fleet=this.in_fleet), *edited.notes]
        if before is None:
            # It may be a slip in the path, or another folder than the worker starts in.
            said.append(f"There was no such file{'; it was made' if is_written else ''}: {path}")
        if asked.is_other:
            said[:0] = [difference(before, after, name=str(path)), ""]
        as_json = asked.as_json(file=str(path), is_written=is_written, notes=edited.notes)
        self._answer(as_json, "\n".join(said), options)
        if is_written:
            self._forget(asked, environment)

    def _forget(self, asked: Asked, environment: Mapping[str, str]) -> None:
        if not is_armed(asked):
            return
        try:
            with switch_server(environment) as server:
                if told := forget_spent(server.client, asked):
                    self.stderr.write(told)
        except PidispatchError as error:
            self.stderr.write(f"{error}\n{NOT_FORGOTTEN}")

    def _restore(self, environment: Mapping[str, str], options: dict[str, Any]) -> None:
        with switch_server(environment) as server:
            found = restore(server, options["restore"])
        if found.queues or options["json"]:
            self._answer(found.as_json(), found.said(on=f" on {server.shown}"), options)
        if found.unread:
            self.stderr.write(f"Not everything could be read ({'; '.join(found.unread)}); repeat it then.")
        if not found.queues:
            raise OperationalError(found.said(on=f" on {server.shown}"))

    def _answer(self, as_json: dict[str, Any], text: str, options: dict[str, Any]) -> None:
        encoding = getattr(self.stdout, "encoding", None) or "utf-8"
        # An entry or a path may have any letters, and what is told of here has happened already.
        printable = text.encode(encoding, "backslashreplace").decode(encoding)
        self.stdout.write(json.dumps(as_json) if options["json"] else printable)


def _asked(options: dict[str, Any]) -> Asked | None:
    if options["create"] and options["add"] is None:
        raise ConfigurationError("--create goes with --add")
    if options["add"] is not None:
        return Asked(Kind.ADDED, None, _entry(options["add"]))
    if options["edit"] is not None:
        place, text = options["edit"]
        return Asked(Kind.CHANGED, place, _entry(text))
    if options["remove"] is not None:
        return Asked(Kind.REMOVED, options["remove"], None)
    if options["dry_run"]:
        raise ConfigurationError("--dry-run goes with --add, --edit or --remove")
    return None


def _entry(text: str) -> dict[str, Any]:
    """Read an entry as it was typed, or from where the text says; ConfigurationError for what is none."""
    is_elsewhere = text == _STDIN or text.startswith("@")
    name, content = _content(text.removeprefix("@")) if is_elsewhere else ("ENTRY", os.fsencode(text))
    entry = strict_json.load(content, name=name)
    if not isinstance(entry, dict):
        raise ConfigurationError(f'{name} is no entry; allowed is an object: {{"on": …, "run": …}}')
    return entry


def _content(where: str) -> tuple[str, bytes]:
    """Read a file, or standard input for a hyphen, and name it; OperatorFileError where that fails."""
    if where == _STDIN:
        # A closed standard input is an empty one.
        return "standard input", sys.stdin.buffer.read(strict_json.MAX_BYTES + 1) if sys.stdin else b""
    try:
        with opened(Path(where)) as (descriptor, _):
            return where, read_from(descriptor)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise OperatorFileError(where, [Problem("", f"cannot be read: {reason}")]) from error


def _count(text: str) -> int:
    """Read `--next`; argparse turns the error into usage and exit code 2."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_STARTS))
    if not (is_number and 1 <= int(text) <= _MOST_STARTS):
        raise ArgumentTypeError(
            f"{shown(text)} is no number of starts; expected a whole number from 1 to {_MOST_STARTS}"
        )
    return int(text)
