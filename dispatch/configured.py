"""What this host's configuration gives to its jobs, before the settings overlay and the job's own words."""

from __future__ import annotations

from dispatch.effective import JobDefaults, Spending
from dispatch.money.windows import Caps
from dispatch.waits.visit import WaitBounds
from pidispatch_site.conf import Config


def defaults(config: Config) -> JobDefaults:
    """Answer names, turns and tokens for a job that does not say."""
    return JobDefaults(
        provider=config.provider,
        model=config.model,
        image=config.job_image,
        max_turns=config.max_turns,
        max_tokens=config.max_tokens,
    )


def spending(config: Config) -> Spending:
    """Answer what all jobs together may spend."""
    return Spending(
        caps=Caps(day=config.daily_cap, week=config.weekly_cap, month=config.monthly_cap),
        hold_percent=config.soft_hold_pct,
        token_cap=config.daily_token_cap,
    )


def wait_bounds(config: Config) -> WaitBounds:
    """Answer how often and how long jobs may wait."""
    return WaitBounds(
        interval_ms=config.wait_interval_ms,
        max_ms=config.wait_max_ms,
        after_max_ms=config.wait_after_max_ms,
        max_checks=config.wait_max_checks,
        max_faults=config.wait_max_faults,
        slots=config.wait_check_slots,
        check_timeout_ms=config.wait_check_timeout_ms,
    )
