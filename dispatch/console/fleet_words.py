"""The words that are said of hosts, wherever they are said."""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.console.findings import Area
from dispatch.console.fleet_facts import QueueLook
from hosts.rows import HostRow

AREA = Area("fleet")
# A line stays one that a person reads, whatever the size of the fleet.
_MOST_NAMED = 6
_LONGEST_VALUE = 40
_DIGEST = "sha256:"
# The word for it in a row (ADR 13).
_CUT_OFF = "valkey"


def named(hosts: Sequence[str], *, most: int = _MOST_NAMED) -> str:
    """List names, of many the first and how many more there are."""
    listed = ", ".join(hosts[:most])
    return f"{listed} and {len(hosts) - most} more" if len(hosts) > most else listed


def skew_words(skew_ms: int) -> str:
    """Say how far and which way a clock is wrong, before a word for what it is compared with."""
    return f"{abs(skew_ms) / 1000:.1f} s {'ahead of' if skew_ms > 0 else 'behind'}"


def clipped(text: str) -> str:
    """Cut what a host says of itself to the length of an honest value."""
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def short_value(text: str) -> str:
    """Show what a host says of itself, of a digest what tells it from others."""
    return text.removeprefix(_DIGEST)[:12] if text.startswith(_DIGEST) else clipped(text)


def blind_to(row: HostRow) -> str:
    """Name what a host cannot see, by its own words; blank: nothing."""
    return ",".join(word for word in row.blind.split(",") if word != _CUT_OFF)


def was_cut_off(row: HostRow) -> bool:
    """Whether it says that it could not reach Valkey, which whoever reads that knows to be over."""
    return _CUT_OFF in row.blind.split(",")


def jobs_wait(queue: QueueLook) -> str:
    """Say how many jobs wait, are deferred and are held, as every table counts them; "no job waits"."""
    counts = (
        (queue.waiting or 0, "waits", "wait"),
        (queue.deferred or 0, "is deferred", "are deferred"),
        (queue.held or 0, "is held", "are held"),
    )
    told = [f"{count:,} {one if count == 1 else many}" for count, one, many in counts if count]
    if not told:
        return "no job waits"
    count, verb = told[0].split(" ", 1)
    *head, last = [f"{count} {'job' if count == '1' else 'jobs'} {verb}", *told[1:]]
    return f"{', '.join(head)} and {last}" if head else last
