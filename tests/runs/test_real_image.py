"""The real pi in the real image against a stub of its model, run by the product's own runner."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runs import labels
from runs.abort import Abort, AbortReason
from runs.engine import Engine
from runs.outcome import Outcome, Reason, Verdict
from runs.request import JobUser
from runs.runner import Runner
from runs.watcher import Watcher
from tests.harness.stub_model import StubModel
from tests.runs.jobs import until
from tests.runs.realjobs import USER, RealJob

pytestmark = [pytest.mark.docker, pytest.mark.real_image]

SENTINEL = "pi-dispatch-guardrails:v1"
QUICK = {"PI_RETRY_BASE_MS": "1"}

COMPLETED = Verdict(outcome=Outcome.COMPLETED)
INFRA = Verdict(outcome=Outcome.FAILED, retry=True)
RUNNER_POLICY = Verdict(outcome=Outcome.POLICY, reason=Reason.RUNNER_POLICY)


@pytest.fixture
def runner(docker_backend: Engine, host_id: str) -> Iterator[Runner]:
    watcher = Watcher(docker_backend, labels={labels.HOST: host_id})
    yield Runner(docker_backend, watcher)
    watcher.close()


@pytest.fixture
def job(stub_model: StubModel, job_image: str, host_id: str, tmp_path: Path) -> Callable[..., RealJob]:
    def make(**options: Any) -> RealJob:
        return RealJob(folder=tmp_path, image=job_image, host_id=host_id, stub=stub_model, **options)

    return make


def command(name: str, body: str) -> str:
    """Give the code of an extension that registers a command."""
    return f"pi.registerCommand({name!r}, {{ description: 'c', handler: async (args) => {{ {body} }} }});"


def in_the_background(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start it; the answer of what is returned is its own."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(work()))
    thread.start()

    def answer() -> Any:
        thread.join(timeout=60)
        return answers[0]

    return answer


def test_the_agent_writes_a_file_into_the_repository_as_the_jobs_user(job, runner):
    it = job()

    ended = it.run("writes-a-file", runner)

    made = it.workspace / "made-by-pi.txt"
    assert ended.verdict == COMPLETED
    assert made.read_text() == "made by pi\n"
    assert (made.stat().st_uid, made.stat().st_gid) == (USER.uid, USER.gid)
    assert (ended.line["code"], ended.line["reason"], ended.telemetry.turns) == (0, "completed", 2)
    assert ended.line["jobId"] == ended.result.container


def test_without_a_user_the_image_runs_as_its_own(job, runner):
    it = job(user=None)

    ended = it.run("writes-a-file", runner)

    assert ended.verdict == COMPLETED
    assert (it.workspace / "made-by-pi.txt").stat().st_uid == 1001


@pytest.mark.parametrize("cap", [1, 3])
def test_the_turn_budget_aborts_exactly_at_the_cap(job, runner, cap):
    it = job(max_turns=cap)

    ended = it.run("tools-for-ever", runner)

    assert ended.verdict == RUNNER_POLICY
    assert (ended.line["reason"], ended.telemetry.turns) == ("turn-budget", cap)
    assert len(it.requests()) == cap
    assert (it.workspace / "turns.txt").read_text().count("turn") == cap


def test_the_token_budget_aborts_before_the_next_request(job, runner):
    it = job(max_tokens=250)

    ended = it.run("tools-for-ever", runner)

    assert ended.verdict == RUNNER_POLICY
    assert ended.line["reason"] == "token-budget"
    assert ended.telemetry.tokens["total"] == 360
    assert len(it.requests()) == 3


@pytest.mark.parametrize(
    ("model", "verdict", "code", "reason", "requests"),
    [
        pytest.param("fails-once", COMPLETED, 0, "completed", 2, id="500 once is pi's own to repeat"),
        pytest.param("fails-always", INFRA, 1, "provider-error", 3, id="500 for ever is infra"),
        pytest.param(
            "refuses-the-key", RUNNER_POLICY, 2, "provider-auth-refused", 1, id="401 is not tried again"
        ),
        pytest.param("Hello", RUNNER_POLICY, 2, "model-unknown", 0, id="a model of another case is unknown"),
        pytest.param("cut-short", COMPLETED, 0, "truncated", 1, id="an answer cut short is an answer"),
    ],
)
def test_what_the_provider_does_decides(job, runner, model, verdict, code, reason, requests):
    it = job()

    ended = it.run(model, runner, environment=QUICK)

    assert ended.verdict == verdict
    assert (ended.line["code"], ended.line["reason"]) == (code, reason)
    assert len(it.requests()) == requests


def test_a_second_attempt_after_infra_can_succeed(job, runner):
    it = job()

    first, second = (it.run("fails-three-times", runner, environment=QUICK) for _ in range(2))

    assert (first.verdict, second.verdict) == (INFRA, COMPLETED)


def test_tokens_usage_and_context_are_what_the_provider_said(job, runner):
    ended = job().run("measured", runner)

    assert ended.telemetry.tokens == {
        "input": 400,
        "output": 50,
        "total": 1050,
        "cost": 0.0096,
        "metered": True,
    }
    assert ended.telemetry.context == {"tokens": 1050, "window": 100_000}
    assert ended.telemetry.session == {"resumed": False, "reason": "none"}
    assert ended.telemetry.usage is not None
    assert ended.telemetry.usage["models"] == [
        {
            "provider": "stub",
            "model": "measured",
            "calls": 1,
            "input": 400,
            "output": 50,
            "cacheRead": 600,
            "cacheWrite": 0,
            "cacheWrite1h": 0,
            "reasoning": 7,
            "total": 1050,
            "cost": 0.0096,
            "unpriced": 0,
        }
    ]


@pytest.mark.parametrize("model", ["sleeps-in-a-tool", "stalls"])
def test_a_stop_ends_it_within_the_grace_with_an_exit_line(job, runner, model):
    it, abort = job(), Abort()
    answer = in_the_background(lambda: it.run(model, runner, abort=abort))
    until(it.requests, seconds=60)

    abort.set(AbortReason.OPERATOR_STOP)
    ended = answer()

    assert ended.verdict == Verdict(outcome=Outcome.POLICY, reason=Reason.OPERATOR_STOP)
    assert (ended.result.exit_code, ended.line["reason"]) == (2, "terminated")


def test_it_ends_itself_at_its_deadline_when_nobody_else_does(job, runner):
    ended = job(deadline=timedelta(seconds=3)).run("stalls", runner)

    assert ended.verdict == Verdict(outcome=Outcome.POLICY, reason=Reason.DEADLINE)
    assert ended.result.exit_code == 2


def test_a_repository_cannot_shadow_the_guardrails(job, runner):
    it = job()
    for name in ("SYSTEM.md", "APPEND_SYSTEM.md"):
        it.write(f"workspace/.pi/{name}", "HOSTILE")
    it.write("workspace/.pi/skills/x/SKILL.md", "---\nname: x\ndescription: HOSTILE\n---\n")
    it.write("workspace/.pi/settings.json", json.dumps({"retry": {"maxRetries": 50}, "defaultTools": []}))
    it.write("workspace/AGENTS.md", "AGENTS")
    it.write("job/pi/APPEND_SYSTEM.md", "PERSONA")
    it.write("outbox/.keep", "")

    it.run("hello", runner)

    (request,) = it.requests()
    system = request["system"]
    assert "HOSTILE" not in system
    order = [
        system.index(part) for part in ("coding assistant", SENTINEL, "request-1.json", "PERSONA", "AGENTS")
    ]
    assert order == sorted(order)
    assert {"read", "bash", "edit", "write"} <= set(request["tools"])
    assert request["messages"][-1] == {"role": "user", "text": "Do the task.\n"}


def test_a_job_gets_no_tool_to_start_jobs_with(job, runner, docker_backend, tmp_path):
    tool = """pi.registerTool({ name: "NAME", label: "t", description: "t",
      parameters: { type: "object", properties: {} }, async execute() { return { content: [] }; } });"""
    it = job()
    it.extension("evil.js", tool.replace("NAME", "dispatch_run"))
    late = tool.replace("NAME", "dispatch_later")
    it.extension("late.js", f"pi.on('session_start', () => {{ {late} }});")
    it.extension("good.js", tool.replace("NAME", "useful"))

    ended = it.run("hello", runner)

    (request,) = it.requests()
    assert [tool for tool in request["tools"] if tool not in ("read", "bash", "edit", "write")] == ["useful"]
    assert b'"event":"extension_dropped"' in ended.result.tail
    assert b"admin-recursion-guard" in ended.result.tail


def test_a_command_job_runs_the_command_and_waits_for_the_run_that_it_starts(job, runner):
    it = job(command="ask for it")
    it.extension("ask.js", command("ask", "pi.sendUserMessage(args);"))

    ended = it.run("hello", runner)

    assert ended.verdict == COMPLETED
    assert [request["messages"][-1]["text"] for request in it.requests()] == ["for it"]


def test_a_command_that_nobody_registers_is_policy_and_asks_nothing(job, runner):
    it = job(command="nobody")

    ended = it.run("hello", runner)

    assert ended.verdict == RUNNER_POLICY
    assert (ended.line["reason"], it.requests()) == ("command-unregistered", [])


def test_the_job_can_write_neither_its_job_folder_nor_the_baked_files(job, runner):
    places = ("/job", "/opt/pi-global", "/opt/pi-dispatch", "/opt/pi-dispatch/HARD_RULES.md")
    attempts = [f"{{ echo x >> {place}; }} || touch {place}/x && echo {place} >> written" for place in places]
    script = "; ".join([*attempts, "touch tried"])
    it = job(command="try")
    it.extension("try.js", command("try", f'await pi.exec("bash", ["-c", {json.dumps(script)}]);'))

    ended = it.run("hello", runner)

    assert ended.verdict == COMPLETED
    assert (it.workspace / "tried").exists()
    assert not (it.workspace / "written").exists()


def test_without_a_writable_home_it_is_refused_before_it_costs_anything(job, runner):
    it = job()

    ended = it.run("hello", runner, environment={"HOME": "/nowhere"})

    assert ended.verdict == RUNNER_POLICY
    assert (ended.line["reason"], it.requests()) == ("home-unwritable", [])


def test_a_folder_that_the_jobs_user_may_not_enter_is_refused_with_the_reason(job, runner):
    it = job()
    it.workspace.chmod(0o700)
    it.user = JobUser(54322, 54322)
    it.owner = USER

    ended = it.run("hello", runner)

    assert ended.verdict == RUNNER_POLICY
    assert (ended.line["reason"], it.requests()) == ("mount-unreadable", [])
