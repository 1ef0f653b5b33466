"""Questions that may never be answered (a dead engine, a network file system), asked for so long only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


def within(seconds: float, ask: Callable[[], T]) -> T:
    """Answer what `ask` answers or raise what it raises; TimeoutError when it takes longer.

    It goes on in a thread of its own then, which holds nobody up.
    """
    asked: Future[T] = Future()

    def run() -> None:
        try:
            asked.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised again below
            asked.set_exception(error)
        finally:
            # What it has asked the database on is its own.
            connections.close_all()

    threading.Thread(target=run, name="doctor", daemon=True).start()
    return asked.result(timeout=seconds)
