"""The database of one host: SQLite in the state directory, or what DATABASE_URL names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import environ
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from pidispatch_site.errors import ConfigurationError

EXPECTED = "postgres://USER:PASSWORD@HOST[:PORT]/NAME or sqlite:////absolute/path"
_SQLITE = "pidispatch_site.sqlite"
#: So long a request waits for a lock or for a server; a worker waits longer.
REQUEST_SECONDS = 2
_POSTGRESQL = "django.db.backends.postgresql"
# One writer at a time, from the start of its transaction: a lock taken midway cannot be waited for.
_SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


def problems(url: str | None) -> list[str]:
    """Find what is wrong with DATABASE_URL; its text is never repeated, it may hold a password."""
    try:
        settings(url, default=Path("/"))
    except ConfigurationError as exc:
        return list(exc.problems)
    return []


def settings(url: str | None, *, default: Path) -> dict[str, Any]:
    """Make Django's settings of the one database; `default` is the SQLite file for an unset URL."""
    if url is None:
        return _sqlite(default)
    # The library warns of an address that it does not know by printing it, password and all.
    scheme = url.partition("://")[0]
    if scheme not in ("sqlite", "postgres", "postgresql"):
        raise _wrong(f"expected {EXPECTED}")
    try:
        found = environ.Env.db_url_config(url)
    except (ValueError, KeyError, AttributeError, ImproperlyConfigured) as exc:
        raise _wrong(f"expected {EXPECTED}") from exc
    if scheme == "sqlite" and Path(str(found.get("NAME"))).is_absolute():
        return _sqlite(Path(found["NAME"]))
    if scheme == "sqlite" or not found.get("NAME"):
        raise _wrong(f"expected {EXPECTED}")
    try:
        import_module("psycopg")
    except ImportError as exc:
        raise _wrong("it names PostgreSQL, whose driver is missing: pip install 'psycopg[binary]'") from exc
    # A socket's directory as host is written with %2F, which the library leaves as it is.
    host = unquote(str(found.get("HOST", "")))
    return {**found, "HOST": host, "ENGINE": _POSTGRESQL, "CONN_HEALTH_CHECKS": True}


def said(error: DatabaseError) -> str:
    """Give the first line of what a database complains about; PostgreSQL repeats the statement below it."""
    return str(error).partition("\n")[0]


def unusable(found: tuple[str, ...]) -> dict[str, Any]:
    """Make settings of a database that nothing connects to: the first connection raises these problems.

    Django asks for a database while it reads the models, whatever the command is, and commands that stop work
    must run all the same.
    """
    return {"ENGINE": _SQLITE, "NAME": "unusable", "PROBLEMS": found}


def for_requests(found: dict[str, Any]) -> None:
    """Change a database's settings for a process with few threads that answers people: it gives up sooner.

    A writer that goes on for long costs a page what it would write, not the page; a file that cannot be
    written may still be read.
    """
    options = found.setdefault("OPTIONS", {})
    if found["ENGINE"] == _SQLITE:
        options["timeout"] = REQUEST_SECONDS
        found["READ_AS_IT_STANDS"] = True
        return
    options.setdefault("connect_timeout", REQUEST_SECONDS)
    options["options"] = f"{options.get('options', '')} -c lock_timeout={REQUEST_SECONDS}s".strip()


def _sqlite(path: Path) -> dict[str, Any]:
    return {"ENGINE": _SQLITE, "NAME": str(path), "OPTIONS": dict(_SQLITE_OPTIONS)}


def _wrong(text: str) -> ConfigurationError:
    return ConfigurationError(f"DATABASE_URL is set to a value that is not shown; {text}")
