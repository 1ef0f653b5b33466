"""Removes what is older than the operator keeps: records, raw logs, rows."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import DatabaseError, connections

from pidispatch_site import log
from pidispatch_site.conf import Config
from runs import retention
from runs.files import RecordFiles


def remove_old(config: Config, files: RecordFiles) -> None:
    """Remove what is older than is kept. What cannot be removed is no reason to take no work."""
    now = datetime.now(UTC)
    try:
        files.sweep()
        retention.reap_logs(files.folder, days=config.log_retention_days, now=now)
        retention.prune_rows(days=config.run_retention_days, now=now)
    except OSError as error:
        log.event("log_reaper_skipped", error=type(error).__name__)
    except DatabaseError as error:
        log.event("row_retention_skipped", error=type(error).__name__)
    finally:
        connections.close_all()
