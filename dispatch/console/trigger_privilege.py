"""The keys by which a trigger reaches beyond its folder: whoever may not change them keeps them (E 10.6).

What such an entry runs is kept, too: a secret that is handed to another folder, task or flow is given away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

#: Keys of `run`.
PRIVILEGED = (
    *("image", "secrets", "secretsProfile", "replicas", "resume", "skillsDir", "instructions", "packages"),
    "excludeTools",
)
#: What may be changed of an entry that has one of them: when it starts.
OPEN = "on"


def privileged_of(entry: Any) -> Mapping[str, Any]:
    """Pick those that an entry has, as authored; an entry of any shape has some or none."""
    run = _run_of(entry)
    return {key: run[key] for key in PRIVILEGED if key in run}


def touched(before: Any, after: Any) -> tuple[str, ...]:
    """Name what differs between two versions of an entry (None: there is none) and is privileged.

    Of one that has a privileged key that is all but `on`, else the privileged keys. True and 1 differ.
    """
    was, will = _run_of(before), _run_of(after)
    if not privileged_of(before):
        return tuple(f"run.{key}" for key in PRIVILEGED if _text(was, key) != _text(will, key))
    runs = sorted({*was, *will})
    rest = sorted({*before, *(after if isinstance(after, dict) else ())} - {OPEN, "run"})
    return (
        *(f"run.{key}" for key in runs if _text(was, key) != _text(will, key)),
        *(key for key in rest if _text(before, key) != _text(after, key)),
    )


def refusal(keys: tuple[str, ...], *, of_privileged: bool) -> str:
    """Say that somebody may not change these; `of_privileged`: the entry has a privileged key as it is."""
    listed = ", ".join(keys)
    if of_privileged:
        return (
            f"You may not change {listed}: this trigger reaches beyond its folder. Of it you may only change"
            " when it starts (on). Leave the rest as it is, or ask somebody who may change privileged keys."
        )
    return (
        f"You may not change {listed}: a trigger reaches beyond its folder by that. Leave it as it is, or ask"
        " somebody who may change privileged keys."
    )


def _run_of(entry: Any) -> Mapping[str, Any]:
    run = entry.get("run") if isinstance(entry, dict) else None
    return run if isinstance(run, dict) else {}


def _text(part: Any, key: str) -> str | None:
    return json.dumps(part[key], sort_keys=True) if isinstance(part, dict) and key in part else None
