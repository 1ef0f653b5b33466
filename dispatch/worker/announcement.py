"""The line that says what this worker is, at the end of its boot (Q 14)."""

from __future__ import annotations

from dispatch.worker.host import Host
from pidispatch_site import log, server_url
from pidispatch_site.conf import Config
from runs.protocols import Backend, EngineSilentError


def announce(config: Config, host: Host, backend: Backend, url: str) -> None:
    """Log `worker_started`: names, figures and places, never a credential."""
    log.event(
        "worker_started",
        queue=host.queues[0],
        worker=host.owner.host,
        imageDigest=_digest(backend, config.job_image),
        concurrency=config.concurrency,
        dailyCap=config.daily_cap,
        image=config.job_image,
        backend=config.backend.value,
        valkey=server_url.shown(url),
        logsDir=str(config.logs_dir),
        captureJobLogs=config.capture_job_logs,
        logRetentionDays=config.log_retention_days,
    )


def _digest(backend: Backend, reference: str) -> str | None:
    try:
        facts = backend.image(reference)
    except EngineSilentError:
        return None
    return facts.id if facts else None
