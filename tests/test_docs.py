"""What operators read is what the code does: every event, with its fields, and every reason of a record."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from dispatch.queue.waiters import WaitReason
from dispatch.worker.settle import _DEFERRAL_EVENTS, _REFUSAL_EVENTS
from runs.outbox import ChainReason
from runs.outcome import Reason

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "operations.md"

# How a job that ran, or could not, ends. Every other reason is a refusal and has an event of its own.
ENDS = {
    Reason.WORKER_ABORT,
    Reason.RUNNER_POLICY,
    Reason.DEADLINE,
    Reason.OPERATOR_CANCEL,
    Reason.OPERATOR_STOP,
    Reason.CONTAINER_NEVER_STARTED,
    Reason.CONTAINER_DETACHED,
    Reason.STALLED,
    Reason.WORKER_LOST,
}
# Words of the vocabulary that nothing in this version decides; whoever builds it takes the word out here.
LATER = {
    Reason.JOB_IMAGE_FORGE_UNSUPPORTED,
    Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED,
}
WAITS = set(WaitReason) - {WaitReason.RETRY}


@cache
def logged() -> dict[str, set[str]]:
    """Each event that is named where it is logged, with the fields that it may have."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in product_modules():
        for call in calls_of_event(path):
            for name in names_of(call.args[0]):
                found[name] |= fields_of(call)
    return found


def fields_of(call: ast.Call) -> set[str]:
    """The fields of an event, those included whose names are words of Python (`**{"from": …}`)."""
    spelled = {keyword.arg for keyword in call.keywords if keyword.arg}
    literals = [keyword.value for keyword in call.keywords if isinstance(keyword.value, ast.Dict)]
    return spelled | {key.value for one in literals for key in one.keys if isinstance(key, ast.Constant)}


def product_modules() -> list[Path]:
    apps = ("pidispatch_site", "hosts", "runs", "dispatch")
    return sorted(
        path for app in apps for path in (ROOT / app).rglob("*.py") if path.name != "log.py" or app != apps[0]
    )


def calls_of_event(path: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in {"event", "log.event"}
    ]


def names_of(argument: ast.expr) -> list[str]:
    options = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
    return [option.value for option in options if isinstance(option, ast.Constant)]


def derived() -> set[str]:
    """The events whose names follow from a reason (dispatch/worker/settle.py)."""
    refusals = set(Reason) - ENDS - LATER
    return {_REFUSAL_EVENTS.get(reason, f"refused_{reason.replace('-', '_')}") for reason in refusals} | {
        _DEFERRAL_EVENTS.get(reason, f"{reason.replace('-', '_')}_deferred") for reason in WAITS
    }


def chained() -> set[str]:
    """The events of dispatch/chaining.py whose names are why a request was refused."""
    return {reason.value for reason in ChainReason}


@cache
def documented(heading: str) -> dict[str, str]:
    """The rows of the table below a heading: first cell without its marks, and the second cell."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \|([^|]*)\|", section, re.MULTILINE)
    return {name: fields for names, fields in rows for name in re.findall(r"`([^`]+)`", names)}


def test_only_settlement_and_chaining_log_events_whose_names_are_made():
    made = {
        path.relative_to(ROOT).as_posix()
        for path in product_modules()
        for call in calls_of_event(path)
        if not names_of(call.args[0])
    }

    assert made == {"dispatch/worker/settle.py", "dispatch/chaining.py"}


def test_every_event_is_documented_and_nothing_else():
    assert set(documented("Log events")) == logged().keys() | derived() | chained()


@pytest.mark.parametrize("name", sorted(logged()))
def test_an_event_is_documented_with_its_fields(name):
    fields = set(re.findall(r"`([^`]+)`", documented("Log events").get(name, "")))

    assert fields == logged()[name]


def test_every_test_that_the_tests_page_names_is_there():
    named = re.findall(r"`([\w/.]+\.py)`", (ROOT / "tests" / "README.md").read_text())

    assert len(named) > 20
    assert [name for name in named if not any((ROOT / root / name).is_file() for root in ("", "tests"))] == []


def test_every_reason_is_explained_and_nothing_else():
    assert set(documented("Reasons")) == {reason.value for reason in set(Reason) - LATER}
