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
from typing import Any
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


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run it; the address of a database in it. What it keeps need not survive anything."""
    programs = _programs()
    assert programs is not None
    home = Path(tempfile.mkdtemp(prefix="pd-pg-"))
    account = _account(home)
    data = home / "data"

    def run(program: str, *arguments: str) -> None:
        subprocess.run([programs / program, *arguments], check=True, cwd=home, capture_output=True, **account)

    run(
        "initdb",
        "--pgdata",
        str(data),
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
        "--no-sync",
        "--username",
        "pd",
    )
    options = f"-c listen_addresses= -c unix_socket_directories={home} -c fsync=off -c full_page_writes=off"
    log = str(home / "log")
    try:
        run("pg_ctl", "start", "--wait", "--pgdata", str(data), "--log", log, "--options", options)
        yield f"postgres://pd@{quote(str(home), safe='')}/postgres"
    finally:
        run("pg_ctl", "stop", "--pgdata", str(data), "--mode", "immediate")
        shutil.rmtree(home, ignore_errors=True)


def _account(home: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(_USER)
    os.chown(home, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
