"""`manage.py doctor`: what is wrong with the fleet, this host and its configuration, each with a fix."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.console.arguments import HIDDEN
from dispatch.console.findings import Mark
from dispatch.console.findings_shown import as_data, lines, marks_for
from dispatch.doctor.examination import examine
from pidispatch_site.lazy_settings import current_folder


class Command(BaseCommand):
    help = (
        "Check the fleet and this host: one line a check, a fix under what is not ok. Changes nothing; exits"
        " 1 when a check fails, a warning is no failure. Works with a configuration that is broken."
    )
    requires_system_checks = ()
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine(settings.PIDISPATCH_ENVIRONMENT, folder=current_folder())
        counts = Counter(one.mark for one in findings)
        if options["json"]:
            checks = [as_data(one) for one in findings]
            self.stdout.write(json.dumps({"ok": not counts[Mark.FAILED], "checks": checks}))
        else:
            encoding = getattr(self.stdout, "encoding", None) or "ascii"
            for line in lines(findings, marks_for(encoding)):
                # A path may have any letters; a terminal that cannot print them must not hide the line.
                self.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding))
        told = ", ".join(f"{counts[mark]} {mark}" for mark in Mark)
        # Said on stderr: stdout is for programs.
        self.stderr.write(f"{len(findings)} checks: {told}.", str)
        sys.exit(1 if counts[Mark.FAILED] else 0)
