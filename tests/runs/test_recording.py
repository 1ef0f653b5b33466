from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.outcome import Outcome, Reason, Verdict
from runs.record import Record
from runs.recording import Ran, Timing, abandoned, attempt_entry, ended, facts_of, refused, target_of

CASES = json.loads((Path(__file__).parents[1] / "vectors/run-history.json").read_text())["cases"]
START, END = datetime(2026, 1, 5, 10, tzinfo=UTC), datetime(2026, 1, 5, 10, 5, tzinfo=UTC)
TIMING = Timing(attempt=0, host="build-1", started_at=START, ended_at=END)
CANARY = "canary-/srv/secret"
# Contracts 7: fields that the reference does not have.
ADDED = {"queuedAt", "scopeHash", "imageDigest", "final", "attempts", "host"}


def vectors(op: str) -> list[object]:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["in"]["op"] == op]


@pytest.mark.parametrize("case", vectors("target"))
def test_the_target_is_named_as_the_reference_names_it(case):
    assert target_of(case["in"]["kind"], case["in"]["data"]) == case["out"]["target"]


@pytest.mark.parametrize(
    ("kind", "mark"), [("github", "#"), ("gitlab", "!"), ("forgejo", "#"), ("azure", "!")]
)
def test_a_pull_request_is_marked_as_its_forge_does(kind, mark):
    data = {"repo": "a/b", "target": {"type": "pull_request", "number": 5}}

    assert target_of(kind, data) == f"a/b{mark}5"


@pytest.mark.parametrize("case", vectors("record"))
def test_a_record_says_what_the_reference_says(case):
    given_case = case["in"]
    job, found = given_case["job"], given_case.get("result") or given_case.get("error") or {}
    moment = {
        key: datetime.fromisoformat(given_case[key]) for key in ("startedAt", "endedAt") if key in given_case
    }
    verdict = Verdict(
        outcome=Outcome(found["outcome"]) if "result" in given_case else Outcome.FAILED,
        reason=_Word(found["reason"]) if found.get("reason") else None,
    )

    kept = ended(
        facts_of(job["id"], job.get("data"), kind=job["name"]),
        Timing(
            attempt=job.get("attemptsMade", 0),
            host=None,
            started_at=moment.get("startedAt"),
            ended_at=moment.get("endedAt"),
        ),
        verdict,
        final=True,
        budget_reserved=found.get("budgetReserved"),
        ran=Ran(exit_code=found.get("exitCode"), chain_refused=found.get("chainRefused")),
    )

    assert {key: value for key, value in kept.to_json().items() if key not in ADDED} == case["out"]


class _Word(str):
    """A reason of a part that is not built yet stands in for a member of `Reason`."""

    @property
    def value(self) -> str:
        return str(self)


def test_nothing_of_a_jobs_texts_reaches_its_record():
    data = {
        "kind": "local",
        "folder": "/srv/canary-/site",
        "flow": "audit",
        "task": CANARY,
        "secrets": {"KEY": CANARY},
        "skillsDir": CANARY,
        "instructions": CANARY,
        "target": {"number": 1, "title": CANARY, "body": CANARY},
        "trigger": {"matched": {"index": 3, "type": "label", "label": CANARY}, "comment": {"body": CANARY}},
        "canary": CANARY,
    }
    ran = Ran(
        tokens={"total": 1, "note": CANARY},
        usage={"v": 1, "note": CANARY, "models": [{"provider": "p", "model": "m", "note": CANARY}]},
        session={"resumed": True, "reason": "absent", "file": CANARY},
    )
    log = [{"outcome": "failed", "message": CANARY}]

    kept = ended(
        facts_of("local-1", data),
        TIMING,
        Verdict(outcome=Outcome.COMPLETED),
        final=True,
        budget_reserved=True,
        ran=ran,
        earlier=log,
    )

    assert b"canary" not in kept.to_bytes()
    assert (kept.target, kept.flow, kept.trigger_index, kept.trigger_type) == (
        "local:site",
        "audit",
        3,
        "label",
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "folder", "target", "trigger", "matched", "number", "index", "models", "total"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(data=json_values, reported=json_values, log=st.lists(json_values, max_size=3))
def test_whatever_a_job_and_its_container_say_a_storable_record_comes_out(data, reported, log):
    kept = ended(
        facts_of("local-1", data),
        TIMING,
        Verdict(outcome=Outcome.FAILED),
        final=False,
        budget_reserved=None,
        ran=Ran(tokens=reported, usage=reported, session=reported, turns=reported, exit_code=reported),
        earlier=log,
    )

    assert Record.from_bytes(kept.to_bytes()) == kept


def test_a_refusal_is_policy_and_was_never_paid():
    kept = refused(facts_of("x", {"kind": "local"}), TIMING, Reason.JOB_IMAGE_MISSING)

    assert (kept.outcome, kept.reason, kept.budget_reserved, kept.final, kept.exit_code) == (
        Outcome.POLICY,
        "job-image-missing",
        False,
        True,
        None,
    )


def test_a_malformed_job_is_recorded_with_its_id_alone():
    kept = refused(facts_of("x", b"\x80garbage"), TIMING, Reason.JOB_MALFORMED)

    assert (kept.job_id, kept.kind, kept.target, kept.reason) == ("x", None, None, "job-malformed")


def test_a_job_whose_worker_vanished_names_the_host_that_had_it():
    kept = abandoned(facts_of("x", {"kind": "local"}), TIMING, Reason.STALLED, budget_reserved=True)

    assert (kept.outcome, kept.reason, kept.host, kept.final) == (Outcome.FAILED, "stalled", "build-1", True)


def test_an_attempt_that_is_tried_again_is_kept_by_the_next_record():
    job = facts_of("x", {"kind": "local"})
    tokens = {"input": 1, "output": 2, "total": 3, "cost": 0.5}
    first = ended(
        job,
        TIMING,
        Verdict(outcome=Outcome.FAILED, retry=True),
        final=False,
        budget_reserved=True,
        ran=Ran(exit_code=1, turns=4, tokens=tokens),
    )

    log = json.loads(json.dumps([attempt_entry(first)]))
    second = ended(
        job, TIMING, Verdict(outcome=Outcome.COMPLETED), final=True, budget_reserved=True, earlier=log
    )

    (kept,) = second.attempts
    assert (kept.started_at, kept.ended_at, kept.outcome) == (START, END, Outcome.FAILED)
    assert (kept.exit_code, kept.turns, kept.tokens) == (1, 4, tokens)


def test_the_effective_model_wins_over_the_jobs_own():
    data = {"provider": "a", "model": "b"}

    assert facts_of("x", data).model == "b"
    assert facts_of("x", data, provider="p", model="m").model == "m"


def test_a_long_folder_keeps_its_own_name():
    assert target_of("local", {"folder": "/" + "d" * 900 + "/site"}) == "local:site"
