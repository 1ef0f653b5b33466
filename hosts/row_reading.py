"""Reading what peers wrote into the registry: nothing of it is believed unchecked (Q 7.1, contracts 8).

What is missing or blank is unknown, fields of later versions are ignored. What stands there and cannot be
right makes the whole row unreadable: a person is to see it, and nothing is to be decided by the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from hosts import capabilities
from hosts.content import LONGEST_VALUE
from hosts.names import in_alphabet
from hosts.rows import HostRow, KnownHost, UnreadableRow

_SHOWN_CHARACTERS = 80
_HOST_ID = re.compile(r"[0-9a-f]{16}")
_BOOT = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}")
_INSTANT_DIGITS = 15
_COUNT_DIGITS = 9


def read_row(
    member: bytes, values: Mapping[str, bytes], *, now_ms: int, draining: bool
) -> HostRow | UnreadableRow:
    """Read the row that the list of live hosts names `member`: its fields by their names in Valkey.

    `now_ms` is Valkey's; a beat from the future is 0 ms old.
    """
    name = member.decode("ascii", "replace")
    if not in_alphabet(name):
        return unreadable(member, "is no worker name")
    if values.get("name", member) not in (member, b""):
        return unreadable(member, "calls itself by another name")
    found: dict[str, Any] = {}
    for field, (attribute, expected, read) in _FIELDS.items():
        raw = values.get(field)
        if not raw:
            continue
        if len(raw) > LONGEST_VALUE:
            return unreadable(member, f"{field} is longer than {LONGEST_VALUE} bytes")
        try:
            found[attribute] = read(raw.decode())
        except ValueError:
            return unreadable(member, f"{field} is not {expected}")
    beat_at_ms = found.get("beat_at_ms")
    stale_ms = None if beat_at_ms is None else max(0, now_ms - beat_at_ms)
    return HostRow(name=name, stale_ms=stale_ms, draining=draining, **found)


def read_known(member: bytes, entry: bytes) -> KnownHost | UnreadableRow:
    """Read an entry of the list of known hosts: a host-id with JSON of its name and last beat (ms).

    Entries of older versions have no boots.
    """
    try:
        host_id = _matched(_HOST_ID)(member.decode())
        said = json.loads(entry.decode())
        name, beat_at_ms = said["name"], said["beat"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return unreadable(member, "is no known host")
    if not in_alphabet(name):
        return unreadable(member, "is known by what is no worker name")
    if type(beat_at_ms) is not int or not 0 <= beat_at_ms < 10**_INSTANT_DIGITS:
        return unreadable(member, "is known with what is no instant")
    other = said.get("otherBoot", "")
    is_boot = isinstance(other, str) and _BOOT.fullmatch(other)
    return KnownHost(host_id=host_id, name=name, beat_at_ms=beat_at_ms, other_boot=other if is_boot else "")


def unreadable(what: bytes, why: str) -> UnreadableRow:
    """Name something in the registry that cannot be read; `what` may be anything."""
    text = what.decode("utf-8", "replace")
    cut = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return UnreadableRow(shown=_printable(cut) or '""', why=why)


def _printable(text: str) -> str:
    """Keep a text from steering a terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _matched(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError
        return text

    return read


def _number(digits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        # int() takes signs, spaces and the digits of other scripts too.
        if len(text) > digits or not (text.isascii() and text.isdecimal()):
            raise ValueError
        return int(text)

    return read


# Hosts of one fleet mostly have the same; a page reads hundreds of rows each second.
_tokens = lru_cache(maxsize=256)(capabilities.parse)

# Each field's name in Valkey: the attribute of HostRow, what it must be, how it is read.
_FIELDS: Mapping[str, tuple[str, str, Callable[[str], object]]] = {
    "hostId": ("host_id", "16 hexadecimal digits", _matched(_HOST_ID)),
    "boot": ("boot", "the id of a boot", _matched(_BOOT)),
    **{
        field: (attribute, "an instant", _number(_INSTANT_DIGITS))
        for field, attribute in {
            "beatAt": "beat_at_ms",
            "startedAt": "started_at_ms",
            "clockAt": "clock_at_ms",
        }.items()
    },
    **{
        field: (attribute, "a count", _number(_COUNT_DIGITS))
        for field, attribute in {
            "pid": "pid",
            "concurrency": "concurrency",
            "slotsUsed": "slots_used",
            "cronCount": "cron_count",
        }.items()
    },
    **{
        field: (attribute, "text", _printable)
        for field, attribute in {
            "version": "version",
            "image": "image",
            "imageDigest": "image_digest",
            "piVersion": "pi_version",
            "tz": "tz",
            "blind": "blind",
            "fpCron": "fp_cron",
            "fpPause": "fp_pause",
            "fpLimits": "fp_limits",
            "fpSettings": "fp_settings",
            "fpSpending": "fp_spending",
            "fpTriggers": "fp_triggers",
        }.items()
    },
    "routes": ("routes", "text", lambda text: text == "true"),
    "caps": ("caps", "text", _tokens),
}
# What a reader asks Valkey for. Whether a host drains is asked of the switch, which is newer than the row.
FIELDS: tuple[str, ...] = ("name", *_FIELDS)
