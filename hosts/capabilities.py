"""Capabilities: the names of what a host has declared, which jobs ask for (Q 7.3).

A token is `s:NAME` for a secret profile or `w:NAME` for a wait profile. Names only: no path, no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

RULE = "s:NAME (a secret profile) or w:NAME (a wait profile), NAME of A-Z a-z 0-9 . _ -"
# What a job with secrets and no profile of its own is resolved by.
DEFAULT_PROFILE = "default"
_SECRET, _WAIT = "s:", "w:"
_TOKEN = re.compile(r"[sw]:[A-Za-z0-9._-]+")


def is_token(text: object) -> bool:
    """Tell whether it is a capability as we write them."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None


def tokens(secret_profiles: Iterable[str] | None, wait_profiles: Iterable[str] | None) -> tuple[str, ...]:
    """List what a host has that declares these profiles, sorted, without names that cannot be published."""
    found = {_SECRET + name for name in secret_profiles or ()} | {
        _WAIT + name for name in wait_profiles or ()
    }
    return tuple(sorted(filter(is_token, found)))


def published(capabilities: Iterable[str]) -> str:
    """Write them as the one text of a row of the registry."""
    return ",".join(sorted(capabilities))


def parse(text: object) -> frozenset[str]:
    """Read what a peer published; whatever is no token is dropped, blanks are not forgiven."""
    return frozenset(filter(is_token, text.split(","))) if isinstance(text, str) else frozenset()


def needs_of(data: object) -> frozenset[str]:
    """Tell what a job asks for, by its data as it stands on the wire (Q 2.2); never raises.

    A job with secrets and without a profile needs the one that they are then resolved by.
    """
    if not isinstance(data, Mapping):
        return frozenset()
    profile = data.get("secretsProfile")
    if profile is None and data.get("secrets"):
        profile = DEFAULT_PROFILE
    named = [_SECRET + profile] if isinstance(profile, str) else []
    named += [_WAIT + name for name in _profiles(data.get("waitFor"))]
    return frozenset(filter(is_token, named))


def _profiles(wait_for: object) -> list[str]:
    if not isinstance(wait_for, Sequence):
        return []
    names = (condition.get("profile") for condition in wait_for if isinstance(condition, Mapping))
    return [name for name in names if isinstance(name, str)]
