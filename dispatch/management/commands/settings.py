"""`manage.py settings`: what this host's jobs run with and where that comes from; edits of the file."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN, one_line
from dispatch.console.settings import ALONE, TAKEN_OVER, Setting, as_json, in_force, pairs, table
from dispatch.operator_files import overlay_file
from dispatch.operator_files.overlay import Overlay
from dispatch.operator_files.overlay_edit import nearest
from dispatch.operator_files.problems import OperatorFileError
from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.places import StateDirectory

_INVALID = (
    "While the file is like this, every job of this host is refused (settings-overlay-invalid)."
    " A key that is wrong goes by `manage.py settings --unset KEY`; what is no JSON has to be mended by hand,"
    " or the file deleted."
)


class Command(BaseCommand):
    help = (
        "Show the settings in force and where each comes from, or change those of the settings file: all"
        " --set and --unset of one command are applied together, or none."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="e.g. dailyCap=30"
        )
        parser.add_argument(
            "--unset",
            nargs="+",
            action="extend",
            default=[],
            metavar="KEY",
            help="take it out of the file: the environment counts again",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        config: Config = settings.PIDISPATCH
        named = [*pairs(options["set"]), *options["unset"]]
        with _explained():
            overlay = _edited(config, options) if named else overlay_file.read(config.settings_file)
        rows = in_force(overlay, _configured(config), config.environment)
        if options["json"]:
            self.stdout.write(json.dumps(as_json(rows, overlay, file=str(config.settings_file))))
        else:
            self.stdout.write(
                _changes(rows, named, config) if named else f"{table(rows)}\n{_file(overlay, config)}"
            )


def _edited(config: Config, options: dict[str, Any]) -> Overlay:
    if config.settings_file.parent == config.state_dir:
        StateDirectory(config.state_dir).made()
    return overlay_file.edit(config.settings_file, set=pairs(options["set"]), unset=options["unset"])


@contextmanager
def _explained() -> Iterator[None]:
    """Add to what is wrong with the file what that means and how it is mended."""
    try:
        yield
    except OperatorFileError as error:
        raise ConfigurationError(*error.problems, _INVALID) from error


def _configured(config: Config) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(Config)}


def _changes(rows: tuple[Setting, ...], named: list[str], config: Config) -> str:
    by_name = {row.name: row for row in rows}
    lines = [
        f"{name} is {by_name[name]} now ({by_name[name].source.words})."
        if name in by_name
        else f"{name!a} is no longer in the file."
        for name in dict.fromkeys(named)
    ]
    return "\n".join([*lines, TAKEN_OVER, *([ALONE] if config.worker_name_declared else [])])


def _file(overlay: Overlay, config: Config) -> str:
    """Say which file it is, what of it means nothing, and what comes before it."""
    there = "" if config.settings_file.exists() else " (there is no such file)"
    lines = [
        "",
        f"settings file: {one_line(str(config.settings_file))}{there}",
        "A job's own provider, model and turns come first.",
    ]
    for key in overlay.unknown:
        meant = nearest(key)
        lines.append(f"The file has {key}, which means nothing{f': did you mean {meant}?' if meant else '.'}")
    return "\n".join(lines)
