"""Django's SQLite backend, with four things that can only be done when a connection is really wanted.

It makes the private directory of a new database file, without which the first command on a fresh machine says
"unable to open database file"; it says what is wrong with a database that is not usable; it repeats an
opening that met another process's; and it reads, where the settings say so, what nobody can write.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db.backends.sqlite3 import base

from pidispatch_site.errors import ConfigurationError
from pidispatch_site.places import make_private, private_file

_PAUSE_S = 0.02


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, for what `databases` makes settings of."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open a connection; `ConfigurationError` or `OperationalError` of ours when there can be none."""
        found = self.settings_dict.get("PROBLEMS")
        if found:
            raise ConfigurationError(*found)
        path = Path(str(conn_params["database"]))
        if path.is_absolute() and not path.parent.exists():
            make_private(path.parent)
        if path.is_absolute():
            # SQLite gives the files beside it the same mode.
            with suppress(OSError):
                private_file(path)
        return self._opened(conn_params)

    def _opened(self, conn_params: dict[str, Any]) -> Any:
        """Open, for as long as SQLite's own timeout would wait.

        Of two that turn a new file to WAL at once, the second is answered SQLITE_BUSY without any waiting, to
        avoid a deadlock.
        """
        deadline = time.monotonic() + float(conn_params.get("timeout", 0))
        while True:
            try:
                return super().get_new_connection(conn_params)
            except sqlite3.OperationalError as exc:
                if self._may_read_as_it_stands(exc, conn_params):
                    there = quote(str(conn_params["database"]))
                    return super().get_new_connection(
                        {**conn_params, "database": f"file:{there}?immutable=1"}
                    )
                if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_S)

    def _may_read_as_it_stands(self, exc: sqlite3.OperationalError, conn_params: dict[str, Any]) -> bool:
        """Tell whether SQLite failed to make its side files in a folder that cannot be written.

        Without a log beside it the file is whole, and nobody writes it.
        """
        return (
            exc.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY
            and bool(self.settings_dict.get("READ_AS_IT_STANDS"))
            and not Path(f"{conn_params['database']}-wal").exists()
        )
