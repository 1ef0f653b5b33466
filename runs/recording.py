"""Builds records from values: what is known of the job, what the container did, how it was judged.

Job data is read field by field and may be anything (a malformed payload is recorded too); what is not of the
right shape counts as absent. No builder raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs import shape
from runs.oneshot import OneShot, one_shot_of
from runs.outcome import Outcome, Reason, Verdict
from runs.record import MAX_EARLIER_ATTEMPTS, Attempt, DamagedRecordError, Record

# How each forge writes a pull request's number; an issue is `#` everywhere (Q 2.3).
_PULL_REQUEST_MARKS = {"github": "#", "gitlab": "!", "forgejo": "#", "azure": "!"}
_ATTEMPT_KEYS = ("startedAt", "endedAt", "outcome", "reason", "exitCode", "turns", "tokens", "usage")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What a record says about the job itself, equal for every attempt; made by `facts_of`."""

    job_id: str
    kind: str | None = None
    target: str | None = None
    flow: str | None = None
    provider: str | None = None
    model: str | None = None
    parent_job_id: str | None = None
    chain_depth: int | None = None
    replica: int | None = None
    replicas: int | None = None
    trigger_index: int | None = None
    trigger_type: str | None = None
    queued_at: datetime | None = None
    scope_hash: str | None = None
    once: OneShot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Which attempt it was and when, by the host's clock; `host` is the name of the worker that had it."""

    attempt: int
    host: str | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What the container did; everything absent when none ran.

    `tokens`, `usage` and `session` are the container's own words: they are rebuilt from known keys.
    """

    exit_code: int | None = None
    turns: int | None = None
    tokens: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    session: Mapping[str, Any] | None = None
    image_digest: str | None = None
    chain_refused: int | None = None


NOTHING_RAN = Ran()


def facts_of(
    job_id: str,
    data: object,
    *,
    kind: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    queued_at: datetime | None = None,
    scope_hash: str | None = None,
) -> JobFacts:
    """Read what a record may say of a job off its data (Q 2.2, the keys of the wire).

    `kind` is used when the data names none. `provider` and `model` are the effective ones, as far as they are
    known; else the job's own.
    """
    given = _object(data)
    matched = _object(_object(given.get("trigger")).get("matched"))
    named_kind = _text(given.get("kind")) or _text(kind)
    return JobFacts(
        job_id=shape.identity(job_id),
        kind=named_kind,
        target=_text(target_of(named_kind, given)),
        flow=_text(given.get("flow")),
        provider=_text(provider or given.get("provider")),
        model=_text(model or given.get("model")),
        parent_job_id=_text(given.get("parentJobId")),
        chain_depth=_count(given.get("chainDepth")),
        replica=_count(given.get("replica")),
        replicas=_count(given.get("replicas")),
        trigger_index=_count(matched.get("index")),
        trigger_type=_text(matched.get("type")),
        queued_at=_instant(queued_at),
        scope_hash=_text(scope_hash),
        once=one_shot_of(given),
    )


def target_of(kind: str | None, data: object) -> str | None:
    """Name what a job is about: `local:<folder's base name>`, or `<repo><mark><number>` of a forge."""
    given = _object(data)
    if kind == "local":
        return (
            "local:"
            + (shape.or_none(shape.identity, given.get("folder")) or "").rstrip("/").rpartition("/")[2]
        )
    target = _object(given.get("target"))
    repo, number = _text(given.get("repo")), _count(target.get("number"))
    if kind not in _PULL_REQUEST_MARKS or repo is None or number is None:
        return None
    mark = _PULL_REQUEST_MARKS[kind] if target.get("type") == "pull_request" else "#"
    return f"{repo}{mark}{number}"


def ended(
    job: JobFacts,
    timing: Timing,
    verdict: Verdict,
    *,
    final: bool,
    budget_reserved: bool | None,
    ran: Ran = NOTHING_RAN,
    earlier: Sequence[object] = (),
) -> Record:
    """Record an attempt that was judged: a container that ended, or our own fault before one ran.

    `earlier` is the job's attempt log, entries of `attempt_entry`.
    """
    return Record(
        job_id=job.job_id,
        kind=job.kind,
        target=job.target,
        flow=job.flow,
        queued_at=job.queued_at,
        started_at=_instant(timing.started_at),
        ended_at=_instant(timing.ended_at),
        outcome=verdict.outcome,
        reason=verdict.reason.value if verdict.reason else None,
        exit_code=shape.or_none(shape.whole, ran.exit_code),
        turns=_count(ran.turns),
        tokens=shape.or_none(shape.tokens, ran.tokens),
        usage=shape.or_none(shape.usage, ran.usage),
        provider=job.provider,
        model=job.model,
        budget_reserved=budget_reserved,
        attempt=timing.attempt,
        final=final,
        attempts=_earlier(earlier),
        parent_job_id=job.parent_job_id,
        chain_depth=job.chain_depth,
        chain_refused=_count(ran.chain_refused),
        replica=job.replica,
        replicas=job.replicas,
        trigger_index=job.trigger_index,
        trigger_type=job.trigger_type,
        session=shape.or_none(shape.session, ran.session),
        scope_hash=job.scope_hash,
        image_digest=_text(ran.image_digest),
        host=_text(timing.host),
        once=job.once,
    )


def refused(job: JobFacts, timing: Timing, reason: Reason, *, earlier: Sequence[object] = ()) -> Record:
    """Record a refusal: policy, nothing ran, nothing was paid (contracts 4)."""
    verdict = Verdict(outcome=Outcome.POLICY, reason=reason)
    return ended(job, timing, verdict, final=True, budget_reserved=False, earlier=earlier)


def cancelled(job: JobFacts, timing: Timing, *, earlier: Sequence[object]) -> Record:
    """Record that an operator cancelled a job between two attempts; `timing` is of the one not made."""
    return refused(job, timing, Reason.OPERATOR_CANCEL, earlier=earlier)


def abandoned(
    job: JobFacts,
    timing: Timing,
    reason: Reason,
    *,
    budget_reserved: bool | None,
    earlier: Sequence[object] = (),
) -> Record:
    """Record a job whose worker vanished, `stalled` or `worker-lost`; `timing.host` is who had it."""
    verdict = Verdict(outcome=Outcome.FAILED, reason=reason)
    return ended(job, timing, verdict, final=True, budget_reserved=budget_reserved, earlier=earlier)


def attempt_entry(record: Record) -> dict[str, Any]:
    """Take from a record what the job's attempt log keeps of it, and the records after it."""
    line = record.to_json()
    return {key: line[key] for key in _ATTEMPT_KEYS}


def _earlier(entries: Sequence[object]) -> tuple[Attempt, ...]:
    kept = []
    for entry in entries[-MAX_EARLIER_ATTEMPTS:]:
        try:
            kept.append(Attempt.from_json(entry))
        except DamagedRecordError:
            continue
    return tuple(kept)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return shape.or_none(shape.text, value)


def _count(value: object) -> int | None:
    return shape.or_none(shape.count, value)


def _instant(value: datetime | None) -> datetime | None:
    return None if value is None else shape.in_milliseconds(value)
