#!/usr/bin/env python
from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pidispatch_site.settings")
    from django.core.management import execute_from_command_line

    from pidispatch_site.errors import PidispatchError

    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except PidispatchError as exc:
        # Also out of Django's own commands, such as `migrate` with a wrong DATABASE_URL: never a traceback.
        sys.stderr.write(f"{exc}\n")
        sys.exit(exc.exit_code)
    except BrokenPipeError:
        # Whoever read it has had enough (`… | head`): nobody is there to be told, nor at the last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        # As a shell counts it: 128 and the signal's number.
        sys.exit(130)


if __name__ == "__main__":
    main()
