"""The workspace of a job, as `runs` is asked for it."""

from __future__ import annotations

from collections.abc import Callable

from dispatch.jobs import JobData
from runs.outcome import Refusal
from runs.workspace.event import Source
from runs.workspace.local import LocalJob, Prepared


def prepare_local(job: JobData, *, prepare: Callable[[LocalJob], Prepared | Refusal]) -> Prepared | Refusal:
    """Prepare the workspace of a job on a folder of this host, by `runs.workspace.local.prepare`."""
    return prepare(
        LocalJob(
            folder=job.folder or "",
            task=job.task,
            flow=job.flow,
            command=job.command,
            source=Source.CHAIN if job.parent_job_id else Source.MANUAL,
        )
    )
