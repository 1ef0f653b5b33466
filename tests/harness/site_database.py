"""The database of a test's host, SQLite or PostgreSQL: it can be locked, made read-only, taken away."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from tests.harness.postgres_server import PostgresServer

# What `python -m tests.postgres` says, and with `--browser` besides: where a server is.
_ASKED_FOR = "TESTS_DATABASE_URL"
_ASKED_FOR_HOSTS = "TESTS_HOSTS_DATABASE_URL"


class SiteDatabase(Protocol):
    """What can be wrong with it, within a block; `variables` are those of the host."""

    variables: Mapping[str, str]

    def running(self) -> AbstractContextManager[object]:
        """Have it there."""

    def locked(self) -> AbstractContextManager[None]:
        """Let nobody else write."""

    def read_only(self) -> AbstractContextManager[None]:
        """Refuse all that would write."""

    def away(self) -> AbstractContextManager[None]:
        """Have nothing there, and afterwards all of it again."""


def of_this_run(state: Path) -> SiteDatabase:
    """Give the kind that `python -m tests.postgres` asks for, or the file in the state directory."""
    return Postgres() if _ASKED_FOR in os.environ else SqliteFile(state)


def variables() -> dict[str, str]:
    """Give the variables of a host with an empty database of its own; none where that is its file."""
    if _ASKED_FOR_HOSTS not in os.environ:
        return {}
    url = os.environ[_ASKED_FOR_HOSTS]
    name = f"host_{uuid.uuid4().hex}"
    with closing(_connected(url)) as operator:
        operator.execute(f"CREATE DATABASE {name}")
    return {"DATABASE_URL": f"{url.rpartition('/')[0]}/{name}"}


def ask(environment: Mapping[str, str], *statements: str) -> list[tuple[Any, ...]]:
    """Answer all rows that these find in the database of the host with this environment."""
    if url := environment.get("DATABASE_URL"):
        connection: Any = _connected(url)
    else:
        connection = sqlite3.connect(Path(environment["PI_STATE_DIR"]) / "db.sqlite3")
    with closing(connection):
        return [row for one in statements for row in connection.execute(one).fetchall()]


def _connected(url: str) -> Any:
    import psycopg

    return psycopg.connect(url, autocommit=True)


class SqliteFile:
    """The file that a host has unless told otherwise."""

    variables: Mapping[str, str] = {}

    def __init__(self, state: Path) -> None:
        self._state = state
        self._file = state / "db.sqlite3"

    def running(self) -> AbstractContextManager[object]:
        return nullcontext()

    @contextmanager
    def locked(self) -> Iterator[None]:
        with closing(sqlite3.connect(self._file, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """By the modes of its files: for a process that root's rights were taken from."""
        modes = [(path, path.stat().st_mode) for path in (*self._state.glob("db.sqlite3*"), self._state)]
        for path, mode in modes:
            path.chmod(mode & 0o555)
        try:
            yield
        finally:
            for path, mode in reversed(modes):
                path.chmod(mode)

    @contextmanager
    def away(self) -> Iterator[None]:
        """By another file in its place, without tables."""
        aside = self._state / "aside"
        self._file.rename(aside)
        try:
            yield
        finally:
            self._file.unlink(missing_ok=True)
            aside.rename(self._file)


class Postgres:
    """A server of its own."""

    def __init__(self) -> None:
        self._server = PostgresServer()
        self.variables: Mapping[str, str] = {"DATABASE_URL": self._server.url}

    def running(self) -> AbstractContextManager[object]:
        return self._server

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self._server.connect() as writer:
            found = writer.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            tables = ", ".join(name for (name,) in found)
            with writer.transaction():
                # Others may read.
                writer.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")
                yield

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """As a standby is, or a server that its operator keeps from growing."""
        with self._server.connect() as operator:
            operator.execute("SET default_transaction_read_only = off")
            operator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            operator.execute("SELECT pg_reload_conf()")
            try:
                yield
            finally:
                operator.execute("ALTER SYSTEM RESET default_transaction_read_only")
                operator.execute("SELECT pg_reload_conf()")

    @contextmanager
    def away(self) -> Iterator[None]:
        """By a server that has ended, while it was asked or not."""
        self._server.stop()
        try:
            yield
        finally:
            self._server.start()
