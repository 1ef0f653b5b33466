"""Which key an author most likely meant who wrote one that means nothing."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping

# As others call it, in small letters.
_BY_OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("timezone", "time_zone", "zone"), "tz"),
    **dict.fromkeys(("cron", "schedule"), "pattern"),
    **dict.fromkeys(("repo", "path", "cwd"), "folder"),
    "prompt": "task",
}
_SWITCHES = frozenset({"enabled", "disabled"})
_NO_SWITCH = "there is no such switch; take the entry out, or pause its folder with a pause window."
_ALIKE = 0.75


def key_meant(key: str, known: Iterable[str]) -> str | None:
    """Name the one of the known keys that this one is a slip or another word for; None for none."""
    by_letters = {one.lower(): one for one in known}
    other = _BY_OTHER_NAMES.get(key.lower(), "")
    near = [other] if other in by_letters else difflib.get_close_matches(key.lower(), by_letters, 1, _ALIKE)
    return by_letters[near[0]] if near else None


def explained(key: str, known: Collection[str]) -> str:
    """Say why a key means nothing, and what may be meant."""
    if key.lower() in _SWITCHES:
        return _NO_SWITCH
    meant = key_meant(key, known)
    return f"did you mean {meant}?" if meant else "no trigger has such a key."
