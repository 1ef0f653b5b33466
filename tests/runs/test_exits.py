from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.abort import AbortReason
from runs.exitline import NOTHING, ExitLine
from runs.exits import RUNNER_WORDS, classify, ran_out_of_memory
from runs.outcome import Outcome, Reason, Verdict
from runs.result import RunResult

COMPLETED = Verdict(outcome=Outcome.COMPLETED)
POLICY = Verdict(outcome=Outcome.POLICY, reason=Reason.RUNNER_POLICY)
WORKER_ABORT = Verdict(outcome=Outcome.POLICY, reason=Reason.WORKER_ABORT)
CANCELLED = Verdict(outcome=Outcome.POLICY, reason=Reason.OPERATOR_CANCEL)
STOPPED = Verdict(outcome=Outcome.POLICY, reason=Reason.OPERATOR_STOP)
INFRA = Verdict(outcome=Outcome.FAILED, retry=True)
DETACHED = Verdict(outcome=Outcome.FAILED, reason=Reason.CONTAINER_DETACHED, retry=True)
NEVER_STARTED = Verdict(
    outcome=Outcome.FAILED, reason=Reason.CONTAINER_NEVER_STARTED, retry=True, refund=True
)

CODES = {0: COMPLETED, 1: INFRA, 2: POLICY, 3: INFRA, 125: INFRA, 126: INFRA, 127: INFRA}
CODES |= {134: INFRA, 137: INFRA, 139: INFRA, 143: INFRA, 255: INFRA, None: DETACHED}
ABORTS = {
    None: None,
    AbortReason.TIMEOUT: WORKER_ABORT,
    AbortReason.SHUTDOWN: WORKER_ABORT,
    AbortReason.SWITCH: WORKER_ABORT,
    AbortReason.OPERATOR_CANCEL: CANCELLED,
    AbortReason.OPERATOR_STOP: STOPPED,
    "something-new": WORKER_ABORT,
}


def result(**fields) -> RunResult:
    return RunResult(container="pi-job-x", **fields)


@pytest.mark.parametrize("oom_killed", [False, True], ids=["", "oom"])
@pytest.mark.parametrize(("abort", "stopped"), ABORTS.items(), ids=str)
@pytest.mark.parametrize(("code", "by_code"), CODES.items(), ids=str)
def test_our_abort_flag_comes_first_then_the_code_and_memory_changes_neither(
    code, by_code, abort, stopped, oom_killed
):
    verdict = classify(result(exit_code=code, abort_reason=abort, oom_killed=oom_killed), NOTHING)

    assert verdict == (stopped or by_code)


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        pytest.param({"never_started": True}, NEVER_STARTED, id="the engine said no"),
        pytest.param({"not_attempted": True}, NEVER_STARTED, id="not asked for"),
        pytest.param({"never_started": True, "exit_code": 127}, NEVER_STARTED, id="a code left over"),
        pytest.param({"detached": True}, DETACHED, id="lost"),
        pytest.param({"detached": True, "exit_code": 0}, DETACHED, id="lost with a code"),
        pytest.param(
            {"not_attempted": True, "abort_reason": "shutdown"},
            replace(WORKER_ABORT, refund=True),
            id="shutdown before create",
        ),
        pytest.param(
            {"never_started": True, "abort_reason": "operator-cancel"},
            replace(CANCELLED, refund=True),
            id="cancelled, and the engine had said no",
        ),
        pytest.param(
            {"detached": True, "abort_reason": "operator-stop"}, STOPPED, id="stopped, and then removed"
        ),
    ],
)
def test_what_never_ran_is_paid_back_and_what_may_have_run_is_not(fields, verdict):
    assert classify(result(**fields), NOTHING) == verdict


@pytest.mark.parametrize(
    ("fields", "asked", "verdict"),
    [
        pytest.param({"exit_code": 1}, "operator-cancel", CANCELLED, id="failed a moment before"),
        pytest.param({"exit_code": 137}, "operator-stop", STOPPED, id="killed a moment before"),
        pytest.param({"detached": True}, "operator-cancel", CANCELLED, id="removed a moment before"),
        pytest.param(
            {"never_started": True}, "operator-stop", replace(STOPPED, refund=True), id="never started"
        ),
        pytest.param({"exit_code": 0}, "operator-cancel", COMPLETED, id="done a moment before"),
        pytest.param({"exit_code": 2}, "operator-stop", POLICY, id="refused a moment before"),
        pytest.param({"exit_code": 1}, "shutdown", INFRA, id="a shutdown leaves it to be tried again"),
        pytest.param({"exit_code": 1}, None, INFRA, id="nobody asked"),
    ],
)
def test_what_an_operator_asked_to_stop_is_not_tried_again_whatever_ended_it(fields, asked, verdict):
    assert classify(result(**fields), NOTHING, asked=asked) == verdict


@pytest.mark.parametrize(
    ("code", "said", "verdict"),
    [
        pytest.param(2, "deadline", Verdict(outcome=Outcome.POLICY, reason=Reason.DEADLINE), id="label"),
        pytest.param(2, "turn-budget", POLICY, id="no label of ours"),
        pytest.param(2, "container-never-started", POLICY, id="a label it may not choose"),
        pytest.param(1, "deadline", INFRA, id="a forged label on 1"),
        pytest.param(0, "deadline", COMPLETED, id="a forged label on 0"),
    ],
)
def test_the_exit_line_chooses_a_label_within_code_2_only(code, said, verdict):
    assert classify(result(exit_code=code), ExitLine(reason=said)) == verdict


@given(
    code=st.none() | st.integers(0, 255),
    abort=st.none() | st.sampled_from([*AbortReason]),
    flags=st.fixed_dictionaries(
        {name: st.booleans() for name in ("oom_killed", "not_attempted", "never_started", "detached")}
    ),
    said=st.builds(
        ExitLine, turns=st.none() | st.integers(), reason=st.none() | st.sampled_from([*Reason, "other"])
    ),
)
def test_nothing_that_a_job_prints_changes_retry_refund_or_outcome(code, abort, flags, said):
    one = result(exit_code=code, abort_reason=abort, **flags)

    silent, loud = classify(one, NOTHING), classify(one, said)

    assert (silent.outcome, silent.retry, silent.refund) == (loud.outcome, loud.retry, loud.refund)
    assert loud.retry == (loud.outcome is Outcome.FAILED)
    assert loud.refund == (flags["not_attempted"] or flags["never_started"])
    assert abort is None or not loud.retry


@pytest.mark.parametrize(
    ("code", "oom_killed", "told"),
    [
        pytest.param(137, True, True, id="the job"),
        pytest.param(0, True, False, id="only a child"),
        pytest.param(137, False, False, id="killed otherwise"),
        pytest.param(None, True, False, id="unknown"),
    ],
)
def test_out_of_memory_is_told_only_when_the_job_itself_was_killed(code, oom_killed, told):
    assert ran_out_of_memory(result(exit_code=code, oom_killed=oom_killed)) is told


def test_each_word_that_is_told_is_one_that_the_runner_says():
    """A word that it no longer says would be a door for anybody's."""
    source = Path(__file__).parents[2] / "image" / "runner" / "src"
    text = "\n".join(path.read_text() for path in source.glob("*.mjs"))

    missing = {word for word in RUNNER_WORDS if f'"{word}"' not in text and f"'{word}'" not in text}

    assert missing == set()
