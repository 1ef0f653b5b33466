"""Records of every shape, for the tests of whatever keeps or shows them."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from runs.oneshot import OneShot
from runs.outcome import Outcome, Reason
from runs.record import Attempt, Record
from runs.shape import COUNTERS, MAX_SAFE_INTEGER

counts = st.integers(min_value=0, max_value=MAX_SAFE_INTEGER)
numbers = counts | st.floats(min_value=0, max_value=1e12, allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
words = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=20)
instants = st.datetimes(
    min_value=datetime(1980, 1, 1),  # noqa: DTZ001 - the zone comes next
    max_value=datetime(2080, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
tokens = st.fixed_dictionaries(
    {key: st.none() | numbers for key in ("input", "output", "cost")} | {"total": numbers},
    optional={"metered": st.booleans()},
)
usages = st.fixed_dictionaries(
    {
        "v": counts,
        "piAi": st.none() | st.just("1.0.3"),
        "truncated": counts,
        "models": st.lists(
            st.fixed_dictionaries(
                {"provider": words, "model": words}, optional=dict.fromkeys(COUNTERS, numbers)
            ),
            min_size=1,
            max_size=9,
        ),
    }
)
sessions = st.fixed_dictionaries(
    {"resumed": st.booleans(), "reason": st.none() | words, "bytes": st.none() | counts}
)
one_shots = st.builds(
    OneShot, index=counts, number=counts, slot=st.text("0123456789abcdef", min_size=16, max_size=16)
)
outcomes = st.sampled_from(Outcome)
reasons = st.none() | st.sampled_from(Reason).map(str)
exit_codes = st.none() | st.integers(min_value=-1, max_value=255)


def attempts() -> st.SearchStrategy[Attempt]:
    return st.builds(
        Attempt,
        started_at=st.none() | instants,
        ended_at=st.none() | instants,
        outcome=outcomes,
        reason=reasons,
        exit_code=exit_codes,
        turns=st.none() | counts,
        tokens=st.none() | tokens,
        usage=st.none() | usages,
    )


def records(job_ids: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Record]:
    """Any record there can be."""
    plain = dict.fromkeys(
        (
            *("kind", "target", "flow", "provider", "model", "parent_job_id", "trigger_type"),
            *("scope_hash", "image_digest", "host"),
        ),
        st.none() | texts,
    )
    counted = dict.fromkeys(
        ("turns", "chain_depth", "chain_refused", "replica", "replicas", "trigger_index"), st.none() | counts
    )
    return st.builds(
        Record,
        **plain,
        **counted,
        **dict.fromkeys(("queued_at", "started_at", "ended_at"), st.none() | instants),
        job_id=job_ids,
        outcome=outcomes,
        reason=reasons,
        exit_code=exit_codes,
        tokens=st.none() | tokens,
        usage=st.none() | usages,
        budget_reserved=st.none() | st.booleans(),
        attempt=counts,
        final=st.booleans(),
        attempts=st.lists(attempts(), max_size=3).map(tuple),
        session=st.none() | sessions,
        once=st.none() | one_shots,
    )


FULL_USAGE = {
    "v": 1,
    "piAi": "1.0.3",
    "truncated": 0,
    "models": [
        {
            "provider": "anthropic",
            "model": "claude-sonnet-x",
            "calls": 7,
            "input": 18_200,
            "output": 2_300,
            "cacheRead": 91_000,
            "cacheWrite": 12_000,
            "cacheWrite1h": 0,
            "reasoning": 400,
            "total": 123_500,
            "cost": 0.4125,
            "unpriced": 0,
        },
        {
            "provider": "anthropic",
            "model": "claude-haiku-x",
            "calls": 2,
            "input": 900,
            "output": 120,
            "cacheRead": 0,
            "cacheWrite": 0,
            "cacheWrite1h": 0,
            "reasoning": 0,
            "total": 1_020,
            "cost": 0.0011,
            "unpriced": 0,
        },
    ],
}

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def a_record(number: int = 0, **fields: object) -> Record:
    """One plain completed run, the `number`-th of a day; `fields` change it."""
    ended = NOON + timedelta(seconds=10 * number)
    plain: dict[str, object] = {
        "job_id": f"local-{number:08x}",
        "kind": "local",
        "target": "local:site",
        "flow": "audit",
        "queued_at": ended - timedelta(minutes=4),
        "started_at": ended - timedelta(minutes=3),
        "ended_at": ended,
        "outcome": Outcome.COMPLETED,
        "exit_code": 0,
        "turns": 7,
        "tokens": {"input": 19_100, "output": 2_420, "total": 124_520, "cost": 0.4136},
        "usage": FULL_USAGE,
        "provider": "anthropic",
        "model": "claude-sonnet-x",
        "budget_reserved": True,
        "attempt": 0,
        "scope_hash": "5f2b1c0a9d3e4f67",
        "image_digest": "sha256:" + "ab" * 32,
        "host": "build-1",
    }
    return Record(**{**plain, **fields})
