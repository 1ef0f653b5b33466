"""The line that says what this worker is, at the end of its boot (Q 14)."""

from __future__ import annotations

from pathlib import Path

from dispatch.worker.default_image import DefaultImage
from dispatch.worker.host import Host
from pidispatch_site import log, server_url
from pidispatch_site.conf import Config

_IMAGE_SECONDS = 5


def announce(
    config: Config, host: Host, image: DefaultImage, url: str, *, image_seconds: float = _IMAGE_SECONDS
) -> None:
    """Log `worker_started`: names, figures and places, never a credential.

    An engine that does not show the image within `image_seconds` leaves its digest out.
    """
    image.look(seconds=image_seconds)
    spending = host.rules.spending(host.spending)
    log.event(
        "worker_started",
        queue=host.queues[0],
        hostQueue=host.queues[1] if len(host.queues) > 1 else None,
        imageDigest=image.digest,
        concurrency=host.slots.limit,
        dailyCap=spending.caps.day,
        weeklyCap=spending.caps.week,
        monthlyCap=spending.caps.month,
        softHoldPct=spending.hold_percent,
        capAction=config.cap_action.value,
        scopedLimitsFile=_shown(config.scoped_limits_file),
        scopedLimits=len(host.rules.scoped_limits()) if config.scoped_limits_file else None,
        image=config.job_image,
        backend=config.backend.value,
        egress=config.egress,
        valkey=server_url.shown(url),
        logsDir=str(config.logs_dir),
        settingsFile=str(config.settings_file),
        captureJobLogs=config.capture_job_logs,
        logRetentionDays=config.log_retention_days,
    )


def _shown(path: Path | None) -> str | None:
    return None if path is None else str(path)
