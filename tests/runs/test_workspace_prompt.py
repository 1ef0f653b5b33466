from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.workspace.prompt import local_prompt, prompt_bytes

POINTER = "The context of this job (what started it, on which folder and commit) is in /job/event.json."


def test_a_command_job_says_the_command_and_nothing_else() -> None:
    assert local_prompt(command="release 1.2 --dry") == "/release 1.2 --dry"


def test_a_flow_comes_first_then_the_pointer_then_the_task() -> None:
    prompt = local_prompt(task="Fix it.\n  Keep this.\n", flow="bug-fix")

    assert prompt == f'Use the skill "bug-fix" for this job.\n{POINTER}\n\nFix it.\n  Keep this.\n'


@pytest.mark.parametrize("flow", [None, "", "  "])
def test_without_a_flow_the_pointer_is_the_first_line(flow: str | None) -> None:
    assert local_prompt(task="Fix it.", flow=flow) == f"{POINTER}\n\nFix it."


@given(st.text())
def test_the_task_is_the_end_of_the_prompt_whatever_it_says(task: str) -> None:
    assert local_prompt(task=task, flow="x").endswith(f"\n\n{task}")
    assert local_prompt(task=task).endswith(f"\n\n{task}")


def test_text_becomes_utf_8_and_what_is_no_text_a_question_mark() -> None:
    assert prompt_bytes("é\ud800!\r\n") == b"\xc3\xa9?!\r\n"
