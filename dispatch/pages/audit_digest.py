"""What an operator wrote into a file, as the log of actions keeps it: without folders, tasks or names (D17).

What may be such a text stands there as a digest: that it was changed can be seen, and whether it is the one
that somebody has at hand; what it was is in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from dispatch.jobrules import wire_name
from dispatch.operator_files.pause_windows import EVERY_SCOPE
from dispatch.triggers.entries import TYPES, Run

_DIGITS = 16
_REST, _SCOPE = "rest", "scope"
# Whose values are names and figures of ours, nothing of a repository or a machine.
_PLAIN: Mapping[str, Collection[str]] = {
    "on": ("type", "id", "pattern", "tz", "action", "number", "once", "reviewState"),
    "run": (
        *("kind", "flow", "provider", "model", "maxTurns", "github", "image", "replicas", "resume"),
        "secretsProfile",
    ),
}
_KNOWN: Mapping[str, Collection[str]] = {
    "on": {"type", "disarmed", *(wire_name(field.name) for kind in TYPES.values() for field in fields(kind))},
    "run": {wire_name(field.name) for field in fields(Run)},
}


def digest(value: Any) -> str:
    """Write a JSON value as `sha256:` and the first 16 digits of its digest."""
    text = json.dumps(value, sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def of_trigger(entry: Any) -> Any:
    """Keep the plain keys of an entry of the triggers file, and of the others a digest; None stays None."""
    if entry is None:
        return None
    if not isinstance(entry, dict):
        return digest(entry)
    told = {part: _part(entry[part], plain, _KNOWN[part]) for part, plain in _PLAIN.items() if part in entry}
    return _with_rest(told, {key: value for key, value in entry.items() if key not in _PLAIN})


def of_row(row: Any, known: Collection[str]) -> Any:
    """Keep a row of pause windows or scoped limits, whose keys are `known`; its scope as a digest."""
    if row is None:
        return None
    if not isinstance(row, dict):
        return digest(row)
    told = {
        key: digest(value) if key == _SCOPE and value != EVERY_SCOPE else value
        for key, value in row.items()
        if key in known
    }
    return _with_rest(told, {key: value for key, value in row.items() if key not in known})


def of_keys(values: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Keep values under keys that are `known`, the others under a digest of their key."""
    return {key if key in known else digest(key): value for key, value in values.items()}


def _part(part: Any, plain: Collection[str], known: Collection[str]) -> Any:
    if not isinstance(part, dict):
        return digest(part)
    told = {key: value if key in plain else digest(value) for key, value in part.items() if key in known}
    return _with_rest(told, {key: value for key, value in part.items() if key not in known})


def _with_rest(told: dict[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Add what stands under keys that mean nothing: such a key may be anything itself."""
    return {**told, _REST: digest(rest)} if rest else told
