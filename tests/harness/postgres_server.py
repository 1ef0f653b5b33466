"""A PostgreSQL server of our own, from the system's packages: private, on a socket, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

_INSTALLED = Path("/usr/lib/postgresql")
#: Root may not run the server; the packages bring this user.
_USER = "postgres"


def missing() -> str | None:
    """Say what is not installed."""
    return None if _programs() else "PostgreSQL"


def _programs() -> Path | None:
    found = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class PostgresServer:
    """One server, running within the block; `url` is the address of a database in it.

    What it keeps survives `stop` and no crash of the machine.
    """

    def __init__(self) -> None:
        programs = _programs()
        assert programs is not None
        self._programs = programs
        self._home = Path(tempfile.mkdtemp(prefix="pd-pg-"))
        self._account = _account(self._home)
        # Whoever is told where the socket is may use it; the data are the server's own.
        self._home.chmod(0o711)
        self._data = str(self._home / "data")
        self.url = f"postgres://pd@{quote(str(self._home), safe='')}/postgres"

    def __enter__(self) -> Self:
        how = ("--auth", "trust", "--encoding", "UTF8", "--no-sync", "--username", "pd")
        self._run("initdb", "--pgdata", self._data, *how)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self._home, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        kept = "-c fsync=off -c full_page_writes=off"
        options = f"-c listen_addresses= -c unix_socket_directories={self._home} {kept}"
        log = str(self._home / "log")
        self._run("pg_ctl", "start", "--wait", "--pgdata", self._data, "--log", log, "--options", options)

    def stop(self) -> None:
        """End it at once, and with it whatever goes on."""
        self._run("pg_ctl", "stop", "--pgdata", self._data, "--mode", "immediate")

    def connect(self) -> Any:
        """Give a connection (psycopg) of which each statement counts at once."""
        import psycopg

        return psycopg.connect(host=str(self._home), user="pd", dbname="postgres", autocommit=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, *arguments]
        subprocess.run(command, check=True, cwd=self._home, capture_output=True, **self._account)


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run one; the address of a database in it."""
    with PostgresServer() as server:
        yield server.url


def _account(home: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(_USER)
    os.chown(home, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
