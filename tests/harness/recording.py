"""A recorder as a process of its own, for tests that kill it: `python -m tests.harness.recording …`.

Arguments: HOME SOCKET [POINT].

HOME gets the record files and a database of its own; the process drains once and ends, or kills itself with
SIGKILL when the recorder reaches POINT.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import redis

HOST_ID = "00ff00ff00ff00ff"


def configure(home: Path) -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command

    settings.configure(
        INSTALLED_APPS=["runs"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": home / "db.sqlite3",
                "OPTIONS": {
                    "transaction_mode": "IMMEDIATE",
                    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
                },
            }
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()
    call_command("migrate", verbosity=0)


def main(home: str, socket: str, point: str | None = None) -> None:
    configure(Path(home))
    from runs.files import RecordFiles
    from runs.recorder import Recorder

    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    files = RecordFiles(Path(home) / "logs")
    recorder = Recorder(redis.Redis(unix_socket_path=socket), HOST_ID, files, batch=8, reached=reached)
    print("ready", flush=True)
    recorder.drain_once(time.monotonic())


if __name__ == "__main__":
    main(*sys.argv[1:])
