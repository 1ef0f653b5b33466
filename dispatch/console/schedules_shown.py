"""What `manage.py triggers` shows: schedules, rules for forges, one-shots, and how each stands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from dispatch.console import fleet, schedules, triggers_file
from dispatch.console.findings_shown import marks_for
from dispatch.console.schedule_facts import Overview
from dispatch.console.schedule_runs import Runs, last_runs
from dispatch.console.schedules_data import as_data
from dispatch.console.schedules_lines import lines
from dispatch.console.schedules_notes import notes
from dispatch.console.server import switch_server
from dispatch.console.triggers_file import TriggersFile
from pidispatch_site.errors import ConfigurationError, OperationalError, PidispatchError

_NARROWEST, _WIDEST = 60, 140


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

    `environment` is `settings.PIDISPATCH_ENVIRONMENT`: of it PI_TRIGGERS_FILE, VALKEY_URL, PI_STATE_DIR and
    PI_WORKER_NAME count. `write` takes a line for stdout, `warn` one for stderr (what could not be read, the
    server). `upcoming` is how many next occurrences of each schedule are shown (from 1); `as_json` writes one
    JSON object with the same data instead; `columns` is the width of the terminal. ConfigurationError for a
    variable that cannot be used.
    """
    file = triggers_file.read(environment)
    overview, missing = looked(environment, file, last_runs, upcoming=upcoming, warn=warn)
    if as_json:
        write(json.dumps(as_data(overview)))
    else:
        encoding = getattr(sys.stdout, "encoding", None) or "ascii"
        width = min(max(columns, _NARROWEST), _WIDEST)
        for line in lines(overview, marks=marks_for(encoding), columns=width):
            # A task or a path may have any letters; a terminal that cannot print them must not hide the rest.
            write(line.encode(encoding, "backslashreplace").decode(encoding))
    for note in notes(overview):
        warn(note)
    return _told(file, missing, warn)


def looked(
    environment: Mapping[str, str],
    file: TriggersFile,
    runs: Runs,
    *,
    upcoming: int = 1,
    warn: Callable[[str], None],
) -> tuple[Overview, PidispatchError | None]:
    """Look at everything; where Valkey cannot be asked, at the file alone, and say why that is."""
    try:
        with switch_server(environment) as server:
            found = schedules.read(server.client, fleet.read(server.client), file, runs, upcoming=upcoming)
        warn(f"Valkey: {server.shown}")
    except (ConfigurationError, OperationalError) as error:
        return schedules.of_file(file, runs, now=datetime.now(UTC), upcoming=upcoming), error
    return found, None


def _told(file: TriggersFile, missing: PidispatchError | None, warn: Callable[[str], None]) -> int:
    for problem in (*file.problems, *file.unservable):
        warn(problem)
    if file.trouble:
        warn(f"This file {file.trouble}: what workers have loaded before goes on, and none starts with it.")
    if missing:
        warn(f"{missing}\nShown is what the file says; how it stands is in Valkey.")
    return 2 if file.trouble else 1 if missing else 0
