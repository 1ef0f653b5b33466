"""The event log: one JSON object a line on stdout, `host` stamped last (Q 14).

An event is a constant name and fields that are ids, enums, counts and the operator's own references;
never a path, title, task text, secret or free error text.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, TextIO


class EventLog:
    """Writes events to one stream; safe to call from any thread.

    `plain` prints `name key=value …` for a person at a terminal instead of JSON.
    """

    def __init__(self, stream: TextIO | None = None, *, host: str = "", plain: bool = False) -> None:
        self._stream = stream
        self._host = host
        self._plain = plain
        self._lock = threading.Lock()

    def event(self, name: str, **fields: Any) -> None:
        """Write one event; a field that is None is left out, `host` always comes last and always wins."""
        line = {"event": name, **{key: value for key, value in fields.items() if value is not None}}
        line.pop("host", None)
        if self._host:
            line["host"] = self._host
        stream = self._stream or sys.stdout
        with self._lock:
            try:
                stream.write(self._render(line) + "\n")
                stream.flush()
            except (OSError, ValueError):
                # A closed pipe or a full disk behind stdout must never end a job.
                return

    def _render(self, line: dict[str, Any]) -> str:
        if not self._plain:
            return json.dumps(line, default=str, separators=(",", ":"))
        rest = " ".join(f"{key}={_printable(value)}" for key, value in line.items() if key != "event")
        return f"{line['event']} {rest}".rstrip()


def _printable(value: object) -> str:
    """Write a value so that it stays on its line and steers no terminal."""
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


_current = EventLog()


def configure(log: EventLog) -> None:
    """Make `log` the one that `event` writes to; called once by an entrance."""
    global _current
    _current = log


def event(name: str, **fields: Any) -> None:
    """Write one event to the process's log."""
    _current.event(name, **fields)
