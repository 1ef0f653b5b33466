"""What a job runs with: its own words, else the host's configuration, field by field (Q 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

from dispatch.jobdata import JobData


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


def resolve(job: JobData, defaults: JobDefaults) -> EffectiveJob:
    """Fill what the job leaves open."""
    return EffectiveJob(
        provider=job.provider or defaults.provider,
        model=job.model or defaults.model,
        image=job.image or defaults.image,
        max_turns=job.max_turns or defaults.max_turns,
        max_tokens=defaults.max_tokens,
    )
