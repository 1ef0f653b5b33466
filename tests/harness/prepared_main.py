"""A Python that has imported what every command needs of others, and becomes, forked, a command.

Run by `tests.harness.prepared`, with the number of its end of a socket. It ends when the other end is closed.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

# Never a module of ours, and none that asks for Django's settings, or for the environment, as it is imported:
# those are part of what each process does. RQ asks for one variable; where that is given, there is an exec.
_OF_OTHERS = (
    "croniter",
    "cronsim",
    "csp.apps",
    "django.contrib.admin.apps",
    "django.contrib.auth.apps",
    "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation",
    "django.contrib.auth.tokens",
    "django.contrib.contenttypes.apps",
    "django.contrib.messages.apps",
    "django.contrib.sessions.apps",
    "django.contrib.sites.shortcuts",
    "django.contrib.staticfiles.apps",
    "django.core.management",
    "django.core.wsgi",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.utils.translation.reloader",
    "django.views.decorators.http",
    "django_htmx",
    "docker",
    "environ",
    "redis.asyncio",
    "rq",
)
_LARGEST = 1 << 17
_REPORTS = 3


def main(number: int) -> None:
    # Where this file is; nothing there is meant by the name of an import.
    del sys.path[0]
    for name in _OF_OTHERS:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    # Ctrl-C is for the commands: whoever waits for them is told how they ended.
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    request, descriptors = _next_request(socket.socket(fileno=number))
    _take_place(request, descriptors)
    signal.signal(signal.SIGINT, interrupted or signal.SIG_DFL)
    os.write(_REPORTS, json.dumps({"pid": os.getpid()}).encode())
    os.close(_REPORTS)
    _run(request["words"])


def _next_request(requests: socket.socket) -> tuple[dict[str, Any], Sequence[int]]:
    """Fork for each request, and tell how each child ended; returns in the children alone.

    A child that is over stays a zombie until whoever started it has heard of that, as a child of his own
    would: its number is nobody else's until then.
    """
    alive: dict[int, tuple[int, int]] = {}
    over: dict[int, int] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready == requests.fileno():
                message, descriptors, *_ = socket.recv_fds(requests, _LARGEST, 4)
                if not message:
                    sys.exit()
                if (pid := os.fork()) == 0:
                    requests.detach()
                    return json.loads(message), descriptors
                for descriptor in descriptors[:3]:
                    os.close(descriptor)
                handle = os.pidfd_open(pid)
                alive[handle] = pid, descriptors[3]
                poll.register(handle, select.POLLIN)
            elif ready in alive:
                pid, reports = alive.pop(ready)
                poll.unregister(ready)
                os.close(ready)
                # Nobody may be there any more.
                with suppress(BrokenPipeError):
                    os.write(reports, json.dumps({"status": _status(pid)}).encode())
                over[reports] = pid
                poll.register(reports, 0)
            else:
                poll.unregister(ready)
                os.close(ready)
                os.waitpid(over.pop(ready), 0)


def _status(pid: int) -> int:
    """How it ended, as `waitpid` tells it."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status


def _take_place(request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Be given all that a process inherits, and nothing else."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(_REPORTS + 1, os.sysconf("SC_OPEN_MAX"))
    if request["has_session"]:
        os.setsid()
    os.umask(request["umask"])
    os.chdir(request["folder"])
    # Python itself sets it as it starts without any locale, and so it did here.
    locale = os.environ.get("LC_CTYPE")
    os.environ.clear()
    os.environ.update(request["environment"] | ({"LC_CTYPE": locale} if locale else {}))
    time.tzset()
    sys.stdin = sys.__stdin__ = _stream(0, "r", sys.stdin)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w", sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w", sys.stderr)  # type: ignore[misc]


def _stream(number: int, mode: str, like: TextIO) -> TextIO:
    raw = io.FileIO(number, mode, closefd=False)
    binary = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    raw.name = like.name
    text = io.TextIOWrapper(
        binary,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=number == 2 or raw.isatty(),
    )
    text.mode = mode
    return text


def _run(words: Sequence[str]) -> None:
    """Do what `python` does with these words: `-m module …` or `script …`."""
    sys.orig_argv = [sys.executable, *words]
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__annotations__": {}})
    sys.modules["__main__"] = main
    if words[0] == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv = list(words[1:])
        runpy._run_module_as_main(words[1])
    else:
        sys.path.insert(0, str(Path(words[0]).resolve().parent))
        sys.argv = list(words)
        loader = SourceFileLoader("__main__", words[0])
        main.__dict__.update({"__file__": words[0], "__cached__": None, "__loader__": loader})
        exec(loader.source_to_code(loader.get_data(words[0]), words[0]), main.__dict__)  # noqa: S102


if __name__ == "__main__":
    main(int(sys.argv[1]))
