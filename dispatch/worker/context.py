"""What one attempt knows: its job from the start, the rest rung by rung."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dispatch.effective import EffectiveJob, Spending, resolve, spending_of
from dispatch.instants import instant_of
from dispatch.jobs import JobData
from dispatch.leases.leases import Lease
from dispatch.operator_files.overlay import Overlay
from dispatch.operator_files.scoped_limits import ScopedLimit
from dispatch.queue.popper import Claimed
from dispatch.worker.host import Host
from runs.abort import Abort
from runs.protocols import ImageFacts
from runs.provider import Credentials
from runs.workspace.local import Prepared

# In the attempt log beside what records keep of an attempt: the commit that its folder stood on before it.
_SHA = "sha"


@dataclass(slots=True, kw_only=True)
class Context:
    """One attempt on its way up the ladder; used by its own thread only.

    `now` is Valkey's time of the claim, one reading for every rung, until the ledger says that it is stale;
    `began` is the monotonic instant of `claimed_at`. `scope` is canonical and `scope_hash` its
    digest, both derived from the job's data, never read off the queue. `limit` is what the operator says of
    the scope: read once, so that concurrency and money of one attempt cannot disagree. `lease` is its slot
    in the fleet, where that is limited. `rules` is the version of the operator's files when the climb began.
    """

    host: Host
    claimed: Claimed
    job: JobData
    abort: Abort
    scope: str | None
    scope_hash: str | None
    now: datetime
    claimed_at: datetime
    began: float
    rules: int = 0
    limit: ScopedLimit | None = None
    lease: Lease | None = None
    settled: tuple[EffectiveJob, Spending] | None = None
    image: ImageFacts | None = None
    credentials: Credentials = field(default_factory=lambda: Credentials(variables={}), repr=False)
    prepared: Prepared | None = None

    def as_of_now(self) -> datetime:
        """Give Valkey's time now, as far as the time since the claim tells it."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.began)

    @property
    def effective(self) -> EffectiveJob:
        """What the attempt runs with, from the settings rung on."""
        return self._settled()[0]

    @property
    def spending(self) -> Spending:
        """What the fleet may spend, as of this attempt's settings rung."""
        return self._settled()[1]

    @property
    def first_sha(self) -> str | None:
        """The commit that the folder stood on before the job's first attempt: what came since may be its own.

        None for no commit, and for what in the queue's log of attempts is none.
        """
        noted = [entry[_SHA] for entry in self.claimed.attempt_log if _SHA in entry]
        first = noted[0] if noted else self.prepared and self.prepared.sha
        return first if isinstance(first, str) else None

    def settle(self, overlay: Overlay) -> None:
        """Settle what the attempt runs with and may spend, once its overlay is read."""
        host = self.host
        self.settled = (resolve(self.job, host.defaults, overlay), spending_of(host.spending, overlay))

    def _settled(self) -> tuple[EffectiveJob, Spending]:
        if self.settled is None:
            raise RuntimeError("what an attempt runs with is known from the settings rung on")
        return self.settled


def began_on(prepared: Prepared | None) -> dict[str, str | None]:
    """Write for the attempt log which commit an attempt began on; nothing where it did not come so far."""
    return {} if prepared is None else {_SHA: prepared.sha}


def begin_context(host: Host, claimed: Claimed, job: JobData, abort: Abort) -> Context:
    """Start an attempt's knowledge with what its job says and what the host gives to it."""
    claimed_at = instant_of(claimed.now_ms)
    return Context(
        host=host,
        claimed=claimed,
        job=job,
        abort=abort,
        scope=job.scope,
        scope_hash=job.scope_hash,
        rules=host.rules.version,
        now=claimed_at,
        claimed_at=claimed_at,
        began=time.monotonic(),
    )
