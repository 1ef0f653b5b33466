"""What an attempt runs with and may spend: its own words, the overlay, the configuration (Q 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

from dispatch.jobdata import JobData
from dispatch.money.windows import Caps
from dispatch.operator_files.overlay import EMPTY, Overlay


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefaults:
    """What the host gives to a job that does not say: names, turns and tokens."""

    provider: str
    model: str
    image: str
    max_turns: int
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveJob:
    """What this attempt runs with; settled at its start, so that a change of configuration counts at once."""

    provider: str
    model: str
    image: str
    max_turns: int
    max_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What the fleet may spend: starts in each window, the share of them that is not held back, tokens a day.

    None is no bound, for `hold_percent` nothing held back.
    """

    caps: Caps
    hold_percent: int | None = None
    token_cap: int | None = None


def resolve(job: JobData, defaults: JobDefaults, overlay: Overlay = EMPTY) -> EffectiveJob:
    """Fill what the job leaves open."""
    return EffectiveJob(
        provider=job.provider or overlay.provider or defaults.provider,
        model=job.model or overlay.model or defaults.model,
        image=job.image or defaults.image,
        max_turns=job.max_turns or overlay.max_turns or defaults.max_turns,
        max_tokens=overlay.max_tokens or defaults.max_tokens,
    )


def spending_of(configured: Spending, overlay: Overlay) -> Spending:
    """Put the overlay's bounds over the configured ones; what it does not name stays."""
    caps = configured.caps
    return Spending(
        caps=Caps(
            day=overlay.daily_cap or caps.day,
            week=overlay.weekly_cap or caps.week,
            month=overlay.monthly_cap or caps.month,
        ),
        hold_percent=overlay.soft_hold_pct or configured.hold_percent,
        token_cap=overlay.daily_token_cap or configured.token_cap,
    )
