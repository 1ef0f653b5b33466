"""Jobs of a forge without a forge: the repository `acme/<name>` is the test's own folder of that name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from dispatch.ids import Kind, TargetType, delivery_id
from dispatch.jobs import ForgeTrigger, JobData, Matched, Target
from runs.outcome import Refusal
from runs.workspace import local
from runs.workspace.git import Git
from runs.workspace.jobuser import Account
from tests.harness.null_runs import null_prepare

OWNER = "acme"
KINDS = frozenset({Kind.LOCAL, Kind.GITHUB})

# Job directories of this preparation are in a place of their own: the worker's own knows only its boots.
_BOOT = f"{'0' * 16}-{'0' * 8}"
Prepare = Callable[[str, JobData], local.Prepared | Refusal]


def repository(folder: str) -> str:
    """Name the repository that stands for a folder of the ground; it is the scope of its jobs too."""
    return f"{OWNER}/{folder}"


def forge_job(repo: str, delivery: str, *, once: tuple[int, int] | None = None) -> tuple[str, JobData]:
    """Make the job of an issue of this repository, and its id; `once`: index and number of a one-shot."""
    matched, number = Matched(index=0, type="issue"), 1
    if once is not None:
        index, number = once
        matched = Matched(index=index, type="issue", action="closed", once=True, number=number)
    trigger = ForgeTrigger(delivery_id=delivery, matched=matched)
    target = Target(type=TargetType.ISSUE, number=number, title="A title", body="A body")
    job = JobData(kind=Kind.GITHUB, repo=repo, flow="fix", target=target, trigger=trigger)
    return delivery_id(Kind.GITHUB, delivery), job


def null_preparing(ground: Path) -> Prepare:
    """Prepare nothing, as `null_prepare`, for both kinds."""
    return lambda job_id, job: _of_kind(job, null_prepare(job_id, _on_folder(job, ground)))


def preparing(ground: Path, *, jobs_dir: Path, account: Account) -> Prepare:
    """Prepare as the product does, in the folder that stands for the repository; `jobs_dir` is emptied."""
    shutil.rmtree(jobs_dir, ignore_errors=True)

    def prepare(_: str, job: JobData) -> local.Prepared | Refusal:
        given = _on_folder(job, ground)
        asked = local.LocalJob(folder=given.folder or "", task=given.task or "Do as you are told.")
        prepared = local.prepare(asked, jobs_dir=jobs_dir, boot=_BOOT, account=account, git=Git())
        return prepared if isinstance(prepared, Refusal) else _of_kind(job, prepared)

    return prepare


def _on_folder(job: JobData, ground: Path) -> JobData:
    if not job.kind.is_forge:
        return job
    return replace(job, folder=str(ground / (job.repo or "").removeprefix(f"{OWNER}/")))


def _of_kind(job: JobData, prepared: local.Prepared) -> local.Prepared:
    """Leave out the outbox of a forge's job: it may not chain."""
    return replace(prepared, outbox=cast("Path", None)) if job.kind.is_forge else prepared
