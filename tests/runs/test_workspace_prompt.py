from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch_site.errors import ConfigurationError
from runs.workspace.prompt import TASK_BYTES_MAX, check_task, local_prompt, prompt_bytes

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


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("x", id="short"),
        pytest.param(" indented\r\n\ttext \n", id="blanks, tabs and both line ends"),
        pytest.param("é" * (TASK_BYTES_MAX // 2), id="exactly the bound in bytes"),
        pytest.param("\u202e\U0001f600", id="any other character"),
    ],
)
def test_a_task_is_taken_as_it_is(task: str) -> None:
    assert check_task(task) == task


@pytest.mark.parametrize(
    ("task", "said"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n\t", "empty", id="blank"),
        pytest.param("é" * (TASK_BYTES_MAX // 2) + "x", "65537 bytes; 65536", id="one byte too long"),
        pytest.param("x" * 1024 * 1024, "1048576 bytes", id="a megabyte"),
        pytest.param("a\0b", "U+0000 at position 1", id="NUL"),
        pytest.param("\x1b[31m", "U+001B at position 0", id="terminal escape"),
        pytest.param("a\x7f", "U+007F", id="delete"),
        pytest.param("\ud800", "not valid UTF-8", id="lone surrogate"),
    ],
)
def test_a_task_is_refused_with_the_reason(task: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match="task") as refused:
        check_task(task)

    assert said in str(refused.value)
    assert len(str(refused.value)) < 300
