"""What a table notes about a schedule: the last instant that it acted on, and why it was torn down.

Written as JSON. Whatever stands in Valkey is read; what is no such note is None.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from dispatch.ids import rq_id

# Holds the longest definition even where it is written in escapes.
_MAX_BYTES = 8 * 1024 * 1024
_LATEST_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """The last due instant (ms) that a table acted on, at `at_ms`.

    `job_id`: the last occurrence that it knows of, in most cases that of the instant. `waited` says that
    nothing came of the instant, because that one still waited. `skipped`: how many instants came to nothing
    since `job_id`, or, if it is the instant's own, before it.
    """

    instant_ms: int
    at_ms: int
    skipped: int
    job_id: str
    waited: bool = False

    def text(self) -> str:
        """Write it as it stands in Valkey."""
        note: dict[str, object] = {
            "instant": self.instant_ms,
            "at": self.at_ms,
            "skipped": self.skipped,
            "job": self.job_id,
        }
        return _compact({**note, "waited": True} if self.waited else note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Why a schedule is not in its table: so many stalls, noticed at `at_ms`.

    `fingerprint` is of the definition that was torn down, `definition` that one itself.
    """

    fingerprint: str
    stalls: int
    at_ms: int
    definition: str

    def text(self) -> str:
        """Write it as it stands in Valkey."""
        return _compact(
            {
                "definition": self.fingerprint,
                "stalls": self.stalls,
                "at": self.at_ms,
                "text": self.definition,
            }
        )


def fingerprint(definition: str) -> str:
    """Hash a definition's canonical text: 16 hex digits."""
    return hashlib.sha256(definition.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_acted(raw: bytes | None) -> Acted | None:
    """Read a note of `keys.fired`."""
    note = _object(raw)
    try:
        rq_id(_word(note["job"]))
        return Acted(
            instant_ms=_number(note["instant"]),
            at_ms=_number(note["at"]),
            skipped=_number(note["skipped"]),
            job_id=_word(note["job"]),
            waited=note.get("waited") is True,
        )
    except (KeyError, ValueError):
        return None


def read_torn(raw: bytes | None) -> Torn | None:
    """Read a note of `keys.torn`."""
    note = _object(raw)
    try:
        return Torn(
            fingerprint=_word(note["definition"]),
            stalls=_number(note["stalls"]),
            at_ms=_number(note["at"]),
            definition=_word(note["text"]),
        )
    except (KeyError, ValueError):
        return None


def whole_ms(value: bytes | float | None) -> int | None:
    """Read an instant as Valkey has it, a text or a score; None for none, and for what no calendar has."""
    try:
        number = float(value) if value is not None else -1
    except ValueError:
        return None
    return int(number) if 0 <= number <= _LATEST_MS else None


def _object(raw: bytes | None) -> dict[str, Any]:
    if not raw or len(raw) > _MAX_BYTES:
        return {}
    try:
        note = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value <= _LATEST_MS:
        raise ValueError
    return value


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - read as no note
    # JSON may hold halves of characters, which nothing takes: UnicodeEncodeError is a ValueError.
    value.encode()
    return value


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
