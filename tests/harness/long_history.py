"""`python -m tests.harness.long_history COUNT`: so many recorded runs of a year, as workers write them.

The database is the one of the environment. Of ten runs eight completed; hosts, flows and scopes as a busy
fleet has them. One in twenty is of a schedule; of each thousand the last started as jobs of one that ran
before. The last one ended now.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

HOSTS = tuple(f"build-{number:02}" for number in range(50))
#: So many schedules have runs.
SCHEDULES = 140
#: The runs of each thousand that one run of it started, after it.
CHILDREN = 25
_YEAR = timedelta(days=380)
_AT_ONCE = 2000


def schedule_id(number: int) -> str:
    """Name a schedule that has runs."""
    return f"nightly-{number:03}"


def main(count: int) -> None:
    """Make the tables and fill them."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "pidispatch_site.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from runs import rows

    call_command("migrate", verbosity=0)
    now, chance, batch = datetime.now(UTC).replace(microsecond=0), random.Random(5), []
    for record in _records(count, now, chance):
        batch.append(record)
        if len(batch) == _AT_ONCE:
            rows.restore(batch)
            batch = []
    rows.restore(batch)


def _records(count: int, now: datetime, chance: random.Random) -> Iterator[Any]:
    from runs.outcome import Outcome
    from runs.record import Record

    parent = ""
    policies = ("over-budget", "runner-policy", "deadline", "operator-cancel", "soft-hold")
    failures = ("stalled", "worker-lost", "container-detached", None, "container-never-started")
    for number in range(count):
        ended = now - _YEAR * ((count - 1 - number) / count)
        started = ended - timedelta(seconds=min(chance.lognormvariate(5.5, 1.0), 80_000))
        outcome = chance.choices((Outcome.COMPLETED, Outcome.POLICY, Outcome.FAILED), (80, 8, 12))[0]
        reason = {Outcome.COMPLETED: (None,), Outcome.POLICY: policies, Outcome.FAILED: failures}[outcome]
        kind = chance.choices(("local", "github", "gitlab"), (70, 25, 5))[0]
        total = chance.randrange(1000, 400_000)
        tokens = {"input": total * 8 // 10, "output": total // 5, "total": total, "cost": total / 250_000}
        model = chance.choices(("claude-sonnet-x", "claude-haiku-x", "gpt-5", "gemini-3"), (60, 25, 10, 5))[0]
        used = {"provider": "provider", "model": model, "calls": 7, **tokens}
        job_id = _job_id(number, kind, ended, chance)
        is_child = number % 1000 >= 1000 - CHILDREN
        parent = parent if is_child else job_id
        yield Record(
            job_id=job_id,
            parent_job_id=parent if is_child else None,
            chain_depth=1 if is_child else None,
            kind=kind,
            target="local:site",
            flow=f"{kind}-flow-{int(chance.paretovariate(1)) % 60}",
            queued_at=started - timedelta(seconds=min(chance.lognormvariate(3, 1.5), 80_000)),
            started_at=started,
            ended_at=ended,
            outcome=outcome,
            reason=chance.choice(reason),
            exit_code=0 if outcome is Outcome.COMPLETED else 1,
            turns=chance.randrange(40),
            tokens=tokens,
            usage={"v": 1, "piAi": None, "truncated": 0, "models": [used]},
            provider="provider",
            model=model,
            budget_reserved=True,
            attempt=0,
            scope_hash=f"{int(chance.paretovariate(0.7)) % 300:016x}",
            host=chance.choice(HOSTS),
            trigger_type=chance.choice((None, "issue", "pull_request")),
            trigger_index=chance.randrange(5),
        )


def _job_id(number: int, kind: str, ended: datetime, chance: random.Random) -> str:
    """Name a job by hand, of a forge, or of a schedule."""
    from dispatch.ids import occurrence_id

    if kind == "local" and number % 14 == 0:
        return occurrence_id(schedule_id(number // 14 % SCHEDULES), instant=ended)
    return f"{'local' if kind == 'local' else 'gh'}-{chance.getrandbits(32):08x}{number:08x}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
