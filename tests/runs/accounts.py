"""Runs parts of a test as somebody else, where the test run is root's."""

from __future__ import annotations

import os
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from runs.workspace.jobuser import Account

ORDINARY = Account(23456, 23456)
OTHER = Account(23457, 23457)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users, which needs root")


def current() -> Account:
    return Account(os.geteuid(), os.getegid())


def ordinary() -> Account:
    """Who `as_ordinary_user` runs as."""
    return ORDINARY if os.geteuid() == 0 else current()


def as_ordinary_user(function: Callable[[], Any]) -> Any:
    """Call `function` as a user that is not root: in a child process when we are root, else as we are.

    What it returns or raises must be picklable.
    """
    if os.geteuid() != 0:
        return function()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:  # pragma: no cover - the child
        _answer(function, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        data = answers.read()
    os.waitpid(pid, 0)
    failed, value = pickle.loads(data)  # noqa: S301 - our own child
    if failed:
        raise value
    return value


def _answer(function: Callable[[], Any], writer: int) -> None:  # pragma: no cover - the child
    try:
        os.setgroups([])
        os.setresgid(ORDINARY.gid, ORDINARY.gid, ORDINARY.gid)
        os.setresuid(ORDINARY.uid, ORDINARY.uid, ORDINARY.uid)
        os.umask(0o022)
        answer = (False, function())
    except BaseException as fault:  # noqa: BLE001 - it travels to the parent
        traceback.print_exc()
        answer = (True, fault)
    try:
        data = pickle.dumps(answer)
    except Exception:  # noqa: BLE001 - whatever pickle says
        data = pickle.dumps((True, AssertionError(repr(answer[1]))))
    with os.fdopen(writer, "wb") as answers:
        answers.write(data)
    os._exit(0)
