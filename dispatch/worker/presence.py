"""What this host tells the fleet of itself, asked anew at each beat (Q 7.1, contracts 8)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.overlay import Overlay
from dispatch.schedules.opinion import Opinion
from dispatch.worker.default_image import DefaultImage
from dispatch.worker.followed import OperatorFiles
from dispatch.worker.live import LiveAttempts
from dispatch.worker.slots import Slots
from hosts import capabilities
from hosts.facts import Fact
from hosts.zone import zone_name
from pidispatch_site.conf import Config
from pidispatch_site.version import VERSION


def facts(
    config: Config,
    *,
    image: DefaultImage,
    slots: Slots,
    live: LiveAttempts,
    files: OperatorFiles,
    opinion: Opinion | None,
    blind: Callable[[], str],
) -> Mapping[str, Fact]:
    """Name the facts of the registry's row; what may change while the worker lives is a callable."""
    return {
        "version": VERSION,
        "pid": os.getpid(),
        "image": image.reference,
        "imageDigest": lambda: image.digest,
        "piVersion": lambda: image.pi_version,
        "concurrency": lambda: slots.limit,
        # Not the slots in use: a pop that looks for a job holds one for a moment.
        "slotsUsed": lambda: len(live),
        "caps": lambda: _caps(config, files.overlay),
        "tz": zone_name(config.environment),
        "blind": blind,
        "fpPause": _digest_of(files.windows),
        "fpLimits": _digest_of(files.limits),
        "fpSettings": _digest_of(files.overlay),
        "fpSpending": spending_digest(config),
        "fpTriggers": _digest_of(files.triggers),
        "fpCron": opinion.fingerprint if opinion else "",
        "cronCount": opinion.count if opinion else "",
    }


def spending_digest(config: Config) -> str:
    """Digest the caps as the configuration has them, in 16 hex; the overlay has its own digest."""
    caps = (
        *(config.daily_cap, config.weekly_cap, config.monthly_cap, config.soft_hold_pct),
        *(config.daily_token_cap, config.cap_action),
    )
    return hashlib.sha256(json.dumps(caps).encode()).hexdigest()[:16]


def _caps(config: Config, overlay: LiveFile[Overlay] | None) -> str:
    of_overlay = overlay.current.secret_profiles if overlay else None
    secret = config.secret_profiles if of_overlay is None else of_overlay
    return capabilities.published(capabilities.tokens(secret, config.wait_profiles))


def _digest_of(file: LiveFile[Any] | None) -> Callable[[], str]:
    return lambda: file.digest if file else ""
