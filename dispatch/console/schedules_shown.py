"""What `manage.py triggers` shows: schedules, rules for forges, one-shots, and how each stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def show(
    environment: Mapping[str, str],
    *,
    write: Callable[[str], None],
    warn: Callable[[str], None],
    upcoming: int = 1,
    as_json: bool = False,
    columns: int = 100,
) -> int:
    """Show the list and answer the exit code: 0; 1 where Valkey did not answer; 2 where the file is wrong.

    `environment` is `settings.PIDISPATCH_ENVIRONMENT`: PI_TRIGGERS_FILE, VALKEY_URL, PI_STATE_DIR and
    PI_WORKER_NAME count, nothing else does. `write` takes a line for stdout, `warn` one for stderr (what could
    not be read, the server). `upcoming` is how many next occurrences of each schedule are shown (from 1);
    `as_json` writes one JSON object with the same data instead; `columns` is the width of the terminal.
    ConfigurationError for a variable that cannot be used.
    """
    raise NotImplementedError
