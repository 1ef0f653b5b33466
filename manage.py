#!/usr/bin/env python
from __future__ import annotations

import os
import sys
from contextlib import suppress

_STDIN, _STDOUT, _STDERR = 0, 1, 2
# Each write to it fails, as to a full disk.
_FULL = "/dev/full"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pidispatch_site.settings")
    is_closed = _occupy_closed_streams()
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it has had enough (`… | head`): nobody is there to be told, nor at the last flush.
        _give_up_stdout()
        code = 141
    except OSError as error:
        if not _is_stdout_broken():
            raise
        _give_up_stdout()
        why = "it is closed" if is_closed else error.strerror or type(error).__name__
        sys.stderr.write(f"Standard output cannot be written: {why}.\n")
        code = 1
    sys.exit(code)


def _run() -> str | int | None:
    """Run the command and answer what the process ends with."""
    from django.core.management import execute_from_command_line

    from pidispatch_site.errors import PidispatchError

    try:
        execute_from_command_line(sys.argv)
    except SystemExit as end:
        return end.code
    except PidispatchError as exc:
        # Also out of Django's own commands, such as `migrate` with a wrong DATABASE_URL: never a traceback.
        sys.stderr.write(f"{exc}\n")
        return exc.exit_code
    except KeyboardInterrupt:
        # As a shell counts it: 128 and the signal's number.
        return 130
    return 0


def _occupy_closed_streams() -> bool:
    """Open what the shell has closed (`>&-`), or a file of ours would get its number; whether that is stdout.

    Standard input stays none for Python, which reads nothing from it then.
    """
    closed = [number for number in (_STDIN, _STDOUT, _STDERR) if not _is_open(number)]
    for number in closed:
        is_full = number == _STDOUT and os.path.exists(_FULL)  # noqa: PTH110 - before anything is imported
        opened = os.open(_FULL if is_full else os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
    if _STDERR in closed:
        sys.stderr = open(_STDERR, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    if _STDOUT in closed:
        sys.stdout = open(_STDOUT, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    return _STDOUT in closed


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_stdout_broken() -> bool:
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _give_up_stdout() -> None:
    """Let the flush at the end of the process find somewhere to write to."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)
    with suppress(OSError):
        sys.stdout.flush()


if __name__ == "__main__":
    main()
