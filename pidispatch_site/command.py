"""What our commands share: an error is a sentence on stderr and an exit code, never a traceback."""

from __future__ import annotations

import sys
from typing import Literal

from django.core.management.base import BaseCommand

from pidispatch_site.errors import PidispatchError


class OperatorCommand(BaseCommand):
    """A command that ends with the exit code of the error it raises (1: again may work, 2: it cannot).

    System checks are not run: they would turn a wrong configuration into exit code 1. Called from code, the
    error itself comes out.
    """

    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as typed in a shell."""
        try:
            super().run_from_argv(argv)
        except PidispatchError as exc:
            self.stderr.write(str(exc))
            sys.exit(exc.exit_code)
