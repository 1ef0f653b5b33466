"""The workspace of a job, as `runs` is asked for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from dispatch.ids import occurrence_of
from dispatch.instants import instant_or_none
from dispatch.jobs import CronTrigger, JobData
from runs.outcome import Refusal
from runs.workspace import event
from runs.workspace.event import Source
from runs.workspace.local import LocalJob, Prepared


def prepare_local(
    job_id: str,
    job: JobData,
    *,
    prepare: Callable[[LocalJob], Prepared | Refusal],
    previous_run: Callable[[str, int], datetime | None],
) -> Prepared | Refusal:
    """Prepare the workspace of a job on a folder of this host, by `runs.workspace.local.prepare`.

    `previous_run` answers when a schedule ran last before an instant (ms).
    """
    source = _source(job_id, job)
    return prepare(
        LocalJob(
            folder=job.folder or "",
            task=job.task,
            flow=job.flow,
            command=job.command,
            source=source,
            trigger=_trigger(job),
            occurrence=_occurrence(job_id, previous_run) if source is Source.CRON else None,
        )
    )


def _source(job_id: str, job: JobData) -> Source:
    if job.parent_job_id:
        return Source.CHAIN
    return Source.CRON if job.trigger and occurrence_of(job_id) else Source.MANUAL


def _trigger(job: JobData) -> event.CronTrigger | None:
    """Name the schedule whose entry the job came from, also where a person started it."""
    if not isinstance(job.trigger, CronTrigger):
        return None
    return event.CronTrigger(id=job.trigger.id, pattern=job.trigger.pattern)


def _occurrence(job_id: str, previous_run: Callable[[str, int], datetime | None]) -> event.Occurrence:
    schedule_id, instant_ms = occurrence_of(job_id) or ("", None)
    return event.Occurrence(
        scheduled_for=instant_or_none(instant_ms),
        previous_run_at=previous_run(schedule_id, instant_ms) if instant_ms is not None else None,
    )
