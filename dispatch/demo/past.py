"""The demo's past: runs of the last weeks, invented, the same for the same instant and the same places.

Days are invented one by one, so that tomorrow's past has the same yesterday. No run names a path or a secret.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from dispatch.demo import flows
from dispatch.ids import OCCURRENCE, chained_id, occurrence_id
from runs.outcome import Outcome, Reason
from runs.record import Attempt, Record
from runs.workspace.scope import hash16

DAYS = 60
#: How many containers at once each host takes, which is also its share of the runs.
HOSTS: Mapping[str, int] = {"alder": 3, "birch": 2, "cedar": 2}
REPOSITORIES = ("web-shop", "billing", "search", "mobile-app", "infra", "docs", "data-pipeline")
AUDIT, UPDATE = "nightly-audit", "dependency-update"
#: The schedules, and at which hours (UTC) each came up; the last runs of one were lost with their workers.
SCHEDULES: Mapping[str, Sequence[int]] = {AUDIT: (2,), UPDATE: (0, 6, 12, 18)}
STALLS = 3

# Runs that somebody asked for, by weekday, and the weights of the hours of a day.
_ASKED = (84, 92, 88, 95, 76, 48, 42)
_HOURS = (*(2, 2, 2, 2, 2, 3, 6), *(9, 12, 13, 12, 8, 9, 12), *(12, 11, 9, 6, 4, 4), *(3, 3, 2, 2))
# So many days ago a provider had a bad day.
_BAD_DAY = 12
_IMAGE = "sha256:7d1c4f0ab93e58d26c7b9f14e05a8d37c2f6b1e490ad5837f62c0b9e1d48a573"
_POLICIES = (
    *(Reason.OVER_BUDGET, Reason.SOFT_HOLD, Reason.WAIT_EXPIRED, Reason.RUNNER_POLICY),
    *(Reason.DEADLINE, Reason.OPERATOR_CANCEL, Reason.SCOPE_CAP),
)
_POLICY_WEIGHTS = (6, 4, 2, 5, 3, 3, 1)
_FREE = frozenset({Reason.OVER_BUDGET, Reason.SOFT_HOLD, Reason.WAIT_EXPIRED, Reason.SCOPE_CAP})
_FAILURES = (None, Reason.STALLED, Reason.WORKER_LOST, Reason.CONTAINER_DETACHED)
_FAILURE_WEIGHTS = (8, 2, 1, 1)


def scopes(folder: str) -> Mapping[str, str]:
    """Give the scope hash of each repository below the demo's folder."""
    return {name: hash16(f"{folder}/{name}") for name in REPOSITORIES}


def records(now: datetime, scopes: Mapping[str, str]) -> list[Record]:
    """Invent what ended before `now` (aware), by its end; `scopes` gives each repository's scope hash."""
    today = now.astimezone(UTC).date()
    found = [
        record
        for back in range(DAYS, -1, -1)
        for record in _Day(today - timedelta(days=back), scopes, is_bad=back == _BAD_DAY).runs()
    ]
    over = sorted((one for one in found if _end(one) < now), key=lambda one: (_end(one), one.job_id))
    lost = {one.job_id for one in of_schedule(over, UPDATE)[-STALLS:]}
    return [_stalled(one) if one.job_id in lost else one for one in over]


def of_schedule(found: Iterable[Record], schedule: str) -> list[Record]:
    """Pick the runs of one schedule's instants."""
    return [record for record in found if record.job_id.startswith(f"{OCCURRENCE}{schedule}:")]


def starts(past: Iterable[Record], since: datetime, scope_hash: str | None = None) -> int:
    """Count the container starts since then that were paid, of one scope or of all."""
    return sum(
        1
        for record in past
        if record.budget_reserved
        and (record.started_at or since) >= since
        and scope_hash in (None, record.scope_hash)
    )


def tokens(past: Iterable[Record], since: datetime) -> int:
    """Count the tokens of what ended since then."""
    return sum((record.tokens or {}).get("total", 0) for record in past if _end(record) >= since)


class _Day:
    """The runs of one UTC day."""

    def __init__(self, day: date, scopes: Mapping[str, str], *, is_bad: bool) -> None:
        self._begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        self._is_bad = is_bad
        self._scopes = scopes
        self._chance = random.Random(day.toordinal())  # noqa: S311 - to invent, not to keep secret

    def runs(self) -> Iterator[Record]:
        """Invent them: those of schedules, and those that somebody asked for."""
        for index, (schedule, hours) in enumerate(SCHEDULES.items()):
            for hour in hours:
                yield from self._of_schedule(index, schedule, self._begin + timedelta(hours=hour))
        for _ in range(_ASKED[self._begin.weekday()] + self._chance.randrange(8)):
            minutes = self._chance.choices(range(24), _HOURS)[0] * 60 + self._chance.uniform(0, 60)
            flow = self._pick({name: flow.weight for name, flow in flows.FLOWS.items()})
            job_id = f"local-{self._chance.getrandbits(64):016x}"
            yield self._run(job_id, flow, self._begin + timedelta(minutes=minutes))

    def _of_schedule(self, index: int, schedule: str, instant: datetime) -> Iterator[Record]:
        job_id = occurrence_id(schedule, instant=instant)
        asked = {"trigger_index": index, "trigger_type": "cron"}
        if schedule == UPDATE:
            yield self._run(job_id, "update", instant, repository="billing", **asked)
            return
        parent = self._run(job_id, "audit", instant, repository="web-shop", **asked)
        yield parent
        if parent.outcome is not Outcome.COMPLETED or parent.ended_at is None:
            return
        for flow in ("fix-tests", "docs-sync")[: self._chance.randrange(1, 3)]:
            child = chained_id(parent.job_id, flow=flow, task=None)
            links = {"parent_job_id": parent.job_id, "chain_depth": 1}
            yield self._run(child, flow, parent.ended_at, repository="web-shop", **links)

    def _run(
        self, job_id: str, flow_name: str, asked: datetime, *, repository: str | None = None, **more: Any
    ) -> Record:
        flow, chance = flows.FLOWS[flow_name], self._chance
        name = repository or self._pick(dict(zip(REPOSITORIES, (9, 6, 5, 4, 2, 3, 3), strict=True)))
        host = self._pick(HOSTS)
        outcome, reason = self._fate()
        model = self._pick(flow.models)
        started = _milliseconds(asked + timedelta(seconds=min(chance.lognormvariate(2.6, 1.4), 5400)))
        took = timedelta(minutes=min(flow.minutes * chance.lognormvariate(0, 0.4), 29))
        has_run = reason not in _FREE
        share = 1.0 if outcome is Outcome.COMPLETED else chance.uniform(0.1, 0.8)
        usage = flows.usage(chance, flow, model, share)
        earlier = has_run and chance.random() < 0.03
        attempts = (_lost(started),) if earlier else ()
        if earlier:
            started += timedelta(seconds=75)
        return Record(
            job_id=job_id,
            kind="local",
            target=f"local:{name}",
            flow=flow_name,
            queued_at=_milliseconds(asked),
            started_at=started if has_run else None,
            ended_at=_milliseconds(started + took) if has_run else started,
            outcome=outcome,
            reason=reason.value if reason else None,
            exit_code=_exit_code(outcome, reason) if has_run else None,
            turns=max(2, round(took.total_seconds() / 40)) if has_run else None,
            tokens=flows.total(usage) if has_run else None,
            usage=usage if has_run else None,
            provider=flows.MODELS[model].provider,
            model=model,
            budget_reserved=has_run,
            attempt=len(attempts),
            attempts=attempts,
            scope_hash=self._scopes[name],
            image_digest=_IMAGE if has_run else None,
            host=host,
            **more,
        )

    def _fate(self) -> tuple[Outcome, Reason | None]:
        failing = 45 if self._is_bad else 6
        outcome = self._pick({Outcome.COMPLETED: 88, Outcome.POLICY: 6, Outcome.FAILED: failing})
        if outcome is Outcome.POLICY:
            return outcome, self._chance.choices(_POLICIES, _POLICY_WEIGHTS)[0]
        if outcome is Outcome.FAILED:
            return outcome, self._chance.choices(_FAILURES, _FAILURE_WEIGHTS)[0]
        return outcome, None

    def _pick(self, weights: Mapping[Any, int]) -> Any:
        return self._chance.choices(list(weights), list(weights.values()))[0]


def _lost(started: datetime) -> Attempt:
    """Give the attempt before, which a container's engine lost."""
    return Attempt(
        started_at=started,
        ended_at=started + timedelta(seconds=60),
        outcome=Outcome.FAILED,
        reason=Reason.CONTAINER_DETACHED.value,
    )


def _stalled(record: Record) -> Record:
    """Have the run end with its worker."""
    return replace(
        record,
        outcome=Outcome.FAILED,
        reason=Reason.STALLED.value,
        exit_code=None,
        turns=None,
        tokens=None,
        usage=None,
    )


def _exit_code(outcome: Outcome, reason: Reason | None) -> int | None:
    if outcome is Outcome.COMPLETED:
        return 0
    if outcome is Outcome.POLICY:
        return 2
    return None if reason else 1


def _milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _end(record: Record) -> datetime:
    return record.ended_at or datetime.min.replace(tzinfo=UTC)
