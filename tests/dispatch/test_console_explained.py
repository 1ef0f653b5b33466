"""What a person reads after waiting for a job that was refused: names and what to do, never a value."""

from __future__ import annotations

import pytest

from dispatch.console.explained import explained
from dispatch.console.follow import Ending
from dispatch.console.remedies import next_step
from runs import wording
from runs.outcome import Outcome, Reason
from runs.record import Record

CAPS = {Reason.OVER_BUDGET, Reason.SOFT_HOLD, Reason.SCOPE_CAP, Reason.DAILY_TOKEN_CAP}


def refused(reason: Reason, **known: str) -> Ending:
    record = Record(job_id="local-1", outcome=Outcome.POLICY, reason=reason, attempt=0, **known)
    return Ending(outcome=Outcome.POLICY, reason=reason, record=record)


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        pytest.param(
            refused(Reason.PROVIDER_UNCONFIGURED, provider="openai"),
            ("'openai'", "OPENAI_API_KEY", ".env"),
            id="provider",
        ),
        pytest.param(
            refused(Reason.PROVIDER_UNCONFIGURED, provider="acme"),
            ("'acme'", "models.json"),
            id="own provider",
        ),
        pytest.param(
            refused(Reason.JOB_IMAGE_MISSING), ("'mine:2'", "`make image`", "PI_JOB_IMAGE"), id="image"
        ),
    ],
)
def test_what_can_be_mended_is_named_with_the_way_to_mend_it(ending, words):
    said = explained(ending, image="mine:2")

    assert said.startswith(wording.outcome_sentence("policy"))
    assert [word for word in words if word not in said] == []


@pytest.mark.parametrize("reason", [*Reason, None])
def test_of_another_host_and_of_every_other_reason_its_sentence_is_said_and_after_a_cap_what_to_do(reason):
    elsewhere = Ending(outcome=Outcome.FAILED, reason=reason, record=None)

    assert explained(elsewhere, image="mine:2") == " ".join(
        filter(None, (wording.outcome_sentence("failed"), wording.reason_sentence(reason), next_step(reason)))
    )
    assert bool(next_step(reason)) is (reason in CAPS)
    if reason is not None and reason not in (Reason.PROVIDER_UNCONFIGURED, Reason.JOB_IMAGE_MISSING):
        assert wording.reason_sentence(reason) in explained(refused(reason, provider="p"), image="mine:2")
