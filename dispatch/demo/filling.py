"""Writes the demo's past into the database of its first host, as a worker writes what ended."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from dispatch.demo import past
from dispatch.demo.stage import FOLDER_PREFIX
from pidispatch_site import schema
from pidispatch_site.errors import ConfigurationError, OperationalError
from pidispatch_site.places import StateDirectory, private_file
from runs import rows
from runs.files import RecordFiles
from runs.outcome import Outcome
from runs.record import Record

_AT_ONCE = 500
# Of so long the first host's output is there to be read.
_PRINTED = timedelta(days=14)
_TOOLS = ("read", "grep", "bash", "edit", "bash", "read")


def fill(now: datetime) -> int:
    """Invent what ended before `now` (aware) and write it down; answer how many runs there are.

    `ConfigurationError` where the database is not one of a demo: it would be filled with what never was.
    """
    config = settings.PIDISPATCH
    folder = config.state_dir.parent
    if not folder.name.startswith(FOLDER_PREFIX) or config.database_url:
        raise ConfigurationError(
            f"The state directory {config.state_dir} is not one of a demo; invented runs are written into"
            " nothing else. `manage.py demo --data` makes one"
        )
    schema.migrate_if_needed(StateDirectory(config.state_dir))
    found = past.records(now, past.scopes(str(folder)))
    for start in range(0, len(found), _AT_ONCE):
        if any(rows.write(found[start : start + _AT_ONCE])):
            raise OperationalError("The demo's runs could not be written into its database.")
    ours = [one for one in found if one.host == config.worker_name and one.outcome is Outcome.COMPLETED]
    files = RecordFiles(config.logs_dir)
    files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for record in ours:
        if record.ended_at and record.ended_at > now - _PRINTED:
            private_file(files.log_path(record.job_id)).write_text(_printed(record))
    return len(found)


def _printed(record: Record) -> str:
    lines = [f'{{"event":"started","jobId":"{record.job_id}"}}']
    for turn in range(1, (record.turns or 0) + 1):
        lines.append(f'{{"event":"turn","jobId":"{record.job_id}","turn":{turn}}}')
        lines.append(f'{{"event":"tool","jobId":"{record.job_id}","tool":"{_TOOLS[turn % len(_TOOLS)]}"}}')
    lines.append(f'{{"event":"exit","jobId":"{record.job_id}","code":0,"reason":"completed"}}')
    return "\n".join([*lines, ""])
