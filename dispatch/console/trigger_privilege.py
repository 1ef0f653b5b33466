"""The keys by which a trigger reaches beyond its folder: whoever may not change them keeps them (E 10.6)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

#: Keys of `run`.
PRIVILEGED = (
    *("image", "secrets", "secretsProfile", "replicas", "resume", "skillsDir", "instructions", "packages"),
    "excludeTools",
)


def privileged_of(entry: Any) -> Mapping[str, Any]:
    """Pick those that an entry has, as authored; an entry of any shape has some or none."""
    run = entry.get("run") if isinstance(entry, dict) else None
    return {key: run[key] for key in PRIVILEGED if key in run} if isinstance(run, dict) else {}


def touched(before: Any, after: Any) -> tuple[str, ...]:
    """Name those that differ between two versions of an entry (None: there is none); true and 1 differ."""
    was, will = privileged_of(before), privileged_of(after)
    return tuple(key for key in PRIVILEGED if _text(was, key) != _text(will, key))


def refusal(keys: tuple[str, ...]) -> str:
    """Say that somebody may not change these."""
    listed = ", ".join(f"run.{key}" for key in keys)
    return (
        f"You may not change {listed}: a trigger reaches beyond its folder by that. Leave it as it is, or ask"
        " somebody who may change privileged keys."
    )


def _text(keys: Mapping[str, Any], key: str) -> str | None:
    return json.dumps(keys[key], sort_keys=True) if key in keys else None
