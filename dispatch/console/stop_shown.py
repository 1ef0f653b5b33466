"""The answer of `stop` as lines for a person, and as data for programs and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dispatch.console.arguments import one_line
from dispatch.console.counts import number_of
from dispatch.console.instants import span, stamp
from dispatch.console.pause_shown import ended_by
from dispatch.console.stopped import SCAN, SHARED, SWITCH, VALKEY, Fate, Stopped, Why, hides_containers
from hosts.keys import FLEET
from hosts.stops import Confirmed, Standing
from runs import labels

_GAP = "  "
_CONFIRMED = "confirmed gone"
# Where a container's name would stand, when the list that had it was lost.
UNLISTED = "(container in no list)"
_SOURCES: Mapping[str, str] = {
    VALKEY: "Valkey did not answer the last question",
    SCAN: "Valkey holds so many keys that not all have been looked through",
    SWITCH: "the pause or drain does not hold any more: somebody ended it, or Valkey has lost data",
    SHARED: "workers share one host-id, so that one engine speaks for the other's containers",
}


def switched(found: Stopped) -> str:
    """Say what holds from now on, and how to end that."""
    if SWITCH in found.gaps:
        return f"{found.only or 'The whole fleet'} may take jobs: what held it back does so no more."
    if found.only is None:
        return f"The whole fleet is paused, until {ended_by(FLEET)}."
    return f"{found.only} takes no job, until `manage.py undrain {found.only}`."


def asked(found: Stopped) -> list[str]:
    """Say who was asked, and what a person should know of that."""
    said = [f"Asked to stop what runs: {', '.join(found.asked) or 'nobody, no host is known'}."]
    if not found.is_known:
        said.append(f"No worker named {found.only} was ever seen here: is the name right?")
    said += _missing("hosts", [gap for gap in found.gaps if not hides_containers(gap)], found)
    said += _missing("containers", [gap for gap in found.gaps if hides_containers(gap)], found)
    if found.over:
        count = number_of(found.over, "container is", "containers are")
        said.append(
            f"{count} left out: ended by deadline, and the host has been silent for more than an hour."
        )
    return said


def _missing(what: str, gaps: Sequence[str], found: Stopped) -> list[str]:
    told = [f"{_SOURCES.get(gap, f'{gap} could not be read')} ({found.gaps[gap]})" for gap in gaps]
    return [one_line(f"There may be more {what} than are named here: {'; '.join(told)}.")] if told else []


def retrying(token: str, *, may_be_asked: bool) -> str:
    """Say that Valkey has failed us (a token says how) and that this goes on trying."""
    state = "The request may stand or not" if may_be_asked else "Nothing is asked yet"
    return f"Valkey does not answer as it should ({token}). {state}; trying again."


def progress(found: Stopped) -> str:
    """Say in one line how many are gone, and whose are not."""
    gone = len(found.fates) - len(found.unconfirmed)
    hosts = dict.fromkeys(one.place for one in found.unconfirmed)
    waits = f"; waiting for {', '.join(hosts)}" if hosts else ""
    return one_line(f"{found.seconds:5.1f} s  {gone} of {len(found.fates)} confirmed gone{waits}")


def lines(found: Stopped) -> list[str]:
    """Say of each container whether it is confirmed as gone, then how many are."""
    return [*_table(rows(found)), total(found)]


def rows(found: Stopped) -> list[tuple[str, str, str, str]]:
    """Say of each container where it is, its name, its job, and whether it is confirmed as gone."""
    return [
        (
            one.place,
            one.container.name or UNLISTED,
            f"job {one.container.job_id or '?'}",
            _said(one),
        )
        for one in found.fates
    ]


def total(found: Stopped) -> str:
    """Say how many are confirmed as gone."""
    count, gone = len(found.fates), len(found.fates) - len(found.unconfirmed)
    if not count:
        return "No container was running." if found.is_proven else "No container was found."
    return f"{gone} of {number_of(count, 'container is', 'containers are')} confirmed gone."


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(one_line(row[column])) for row in rows) for column in range(3)] if rows else []
    return [
        _GAP.join([*(one_line(cell).ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]


def _said(one: Fate) -> str:
    if one.state is Confirmed.GONE:
        return _CONFIRMED if one.container.name else f"{_CONFIRMED}: its worker has ended the job"
    return f"unconfirmed: {_why(one)}"


def _why(one: Fate) -> str:
    match one.why:
        case Why.STOPPING:
            return f"{one.host} is stopping it, and its engine has not said that it is gone"
        case Why.HOST_SILENT:
            return f"{one.host} has been silent for {span(one.silent_ms or 0)}"
        case Why.HOST_UNKNOWN:
            return "nobody knows the worker of this host-id, so that it could not be asked"
        case _:
            beat = "" if one.silent_ms is None else f"; its last beat was {span(one.silent_ms)} ago"
            return f"{one.host} has not answered{beat}"


def remedy(found: Stopped) -> str:
    """Say what to do about what is not confirmed; blank when all is."""
    if found.is_proven:
        return ""
    said = ["Not everything is confirmed as stopped."]
    if not found.is_known:
        said.append(
            f"Nobody knows a worker named {found.only}; `manage.py fleet` names those that are known,"
            f" `manage.py undrain {found.only}` takes back this drain and request."
        )
    hosts = [*(one.place for one in found.unconfirmed), *found.unread_lists]
    if hosts:
        where = ", ".join(dict.fromkeys(hosts))
        look = f"`docker ps --filter label={labels.HOST}` on {where} shows what runs there"
        said.append(f"{look}; `docker rm --force NAME` ends it.")
        said.append("A worker that comes back stops its containers by itself" + _deadline(found))
    if found.unread_lists:
        said.append("A key of Valkey that is no list of containers may be deleted when nothing runs there.")
    said.append("Repeating this command asks and looks again.")
    return one_line(" ".join(said))


def _deadline(found: Stopped) -> str:
    ends = [ms for one in found.unconfirmed if (ms := one.container.deadline_ms) is not None]
    if not ends:
        return "."
    return f", and each ends itself at its deadline, the last at {stamp(max(ends))} by its host's clock."


def as_data(found: Stopped) -> dict[str, Any]:
    """Put it into the shape of `stop --json`: instants and ages in ms, null where nothing is known."""
    return {
        "request": found.request.request_id,
        "at": found.request.at_ms,
        "host": found.only,
        "asked": list(found.asked),
        "gaps": dict(found.gaps),
        "over": found.over,
        "known": found.is_known,
        "proven": found.is_proven,
        "containers": [
            {
                "host": one.host,
                "hostId": one.host_id,
                "job": one.container.job_id or None,
                "attempt": one.container.attempt,
                "container": one.container.name or None,
                "state": one.state.value,
                "why": one.why.value if one.why else None,
                "silent": one.silent_ms,
                "deadline": one.container.deadline_ms,
            }
            for one in found.fates
        ],
    }


def request_as_data(asked: Standing) -> dict[str, Any]:
    """Give a request that stands in the shape of the log of actions, named as a pause's fields are."""
    comes_with = "drain" if asked.came_with_drain else "pause"
    return {"by": asked.by, "reason": asked.reason, "since": asked.at_ms or None, "with": comes_with}


def requests_as_data(asked: Mapping[str, Standing]) -> list[dict[str, Any]]:
    """Give the requests that stand for hosts likewise, those that are alike together."""
    alike: dict[Standing, list[str]] = {}
    for host, one in asked.items():
        alike.setdefault(one, []).append(host)
    return [{"hosts": hosts, **request_as_data(one)} for one, hosts in alike.items()]
