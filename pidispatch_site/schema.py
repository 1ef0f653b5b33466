"""The tables of this host's database, brought up to date by whoever comes first."""

from __future__ import annotations

import fcntl

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor

from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory, private_file


def is_current() -> bool:
    """Tell whether every migration has been applied; our `OperationalError` when there is no database."""
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    except DatabaseError as exc:
        raise OperationalError(f"The database of this host cannot be used: {str(exc).strip()}") from exc
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def migrate_if_needed(state: StateDirectory) -> bool:
    """Apply what is missing; tell whether anything was.

    Worker and web process may ask at once: one of them does it. Our `OperationalError` when there is no
    database.
    """
    if is_current():
        return False
    with private_file(state.made().path / "migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current():
            return False
        call_command("migrate", interactive=False, verbosity=0)
        return True
