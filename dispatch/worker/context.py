"""What one attempt knows: its job from the start, the rest rung by rung."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from dispatch.effective import EffectiveJob, resolve
from dispatch.jobs import JobData
from dispatch.queue.popper import Claimed
from dispatch.worker.host import Host
from runs.abort import Abort
from runs.protocols import ImageFacts
from runs.provider import Credentials
from runs.workspace.local import Prepared
from runs.workspace.scope import canonical_scope, hash16


@dataclass(slots=True, kw_only=True)
class Context:
    """One attempt on its way up the ladder; used by its own thread only.

    `now` is Valkey's time of the claim, one reading for every rung. `scope_hash` is derived from the job's
    data, never read off the queue.
    """

    host: Host
    claimed: Claimed
    job: JobData
    abort: Abort
    effective: EffectiveJob
    scope_hash: str | None
    now: datetime
    image: ImageFacts | None = None
    credentials: Credentials = field(default_factory=lambda: Credentials(variables={}), repr=False)
    prepared: Prepared | None = None


def begin_context(host: Host, claimed: Claimed, job: JobData, abort: Abort) -> Context:
    """Start an attempt's knowledge with what its job says and what the host gives to it."""
    scope = canonical_scope(kind=job.kind.value, folder=job.folder, repository=job.repo)
    return Context(
        host=host,
        claimed=claimed,
        job=job,
        abort=abort,
        effective=resolve(job, host.defaults),
        scope_hash=hash16(scope) if scope else None,
        now=datetime.fromtimestamp(claimed.now_ms / 1000, UTC),
    )
