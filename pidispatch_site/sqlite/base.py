"""Django's SQLite backend, which makes the private directory of a new database file by itself.

Without it the first command on a fresh machine would say "unable to open database file".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

from pidispatch_site.places import make_private


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's; the directory is made when a connection is opened, never by reading the settings."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open a connection; `OperationalError` of ours when the directory cannot be made."""
        path = Path(str(conn_params["database"]))
        if path.is_absolute() and not path.parent.exists():
            make_private(path.parent)
        return super().get_new_connection(conn_params)
