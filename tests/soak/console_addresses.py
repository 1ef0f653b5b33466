"""Every address of the site that the soak asks for: each page, each filter, each part that is fetched again.

Choices are those that the product offers, so that a new one is asked for, too. `console_queries` finds routes
and parameters that none of these addresses has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote

from dispatch.ids import rq_id
from dispatch.pages.fleet_view import CHOICES
from dispatch.pages.insights_asked import By, Span
from dispatch.pages.settings_files import KINDS
from dispatch.queue.selecting import Standing
from hosts.names import SHARED_QUEUE, host_queue
from runs.rollup_figures import Order
from tests.harness.long_history import HOSTS, schedule_id
from tests.soak.console_filling import DRAINED, GONE, HERE, PAUSED, TORN

RUNS, QUEUE, SCHEDULES = "/admin/runs/run/", "/admin/queue/", "/admin/dispatch/schedule/"
_FLEET, _INSIGHTS, _LOG, _USERS = "/admin/fleet/", "/admin/insights/", "/admin/log/", "/admin/auth/user/"
_SETTINGS, _SWITCH, _GROUPS = "/admin/settings/", "/admin/switch/", "/admin/auth/group/"
_MISSING = "/admin/none/"


@dataclass(frozen=True, slots=True)
class Address:
    """What is asked for, and what its answer's status must be; `form` is sent, by a name and its values."""

    text: str
    status: int = 200
    form: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __str__(self) -> str:
        names = ", ".join(f"{name}={values[0]}" for name, values in self.form)
        return f"{self.text} with {names}" if names else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """What there is to ask for.

    `runs` are the newest run and the one that started it, `deep` a key far back in the list of runs. `jobs`:
    of each section one; `waiting`: all that wait; `turn`: where to go on in the shared queue. `operation` has
    cancelled `cancelled` jobs; `entry` is one of the log's, far back. `user` has acted, `group` is one of
    theirs.
    """

    runs: Sequence[str]
    deep: str
    jobs: Sequence[str]
    waiting: Sequence[str]
    turn: str
    operation: str
    cancelled: int
    entry: int
    user: int
    group: int


def every(there: There) -> list[Address]:
    """List them, each once."""
    parts = (
        _overview,
        *(_fleet, _switch, _queue, _runs, _schedules, _settings),
        *(_insights, _actions, _accounts, _programs, _ways),
    )
    return list(dict.fromkeys(address for part in parts for address in part(there)))


def forms(there: There) -> list[Address]:
    """List forms that only show what they would do, to however many jobs."""
    path = f"{QUEUE}cancel/"
    every_job = tuple(rq_id(job) for job in there.waiting[:1000])
    return [
        Address(path, form=(("which", ("all",)),)),
        Address(path, form=(("which", ("all",)), ("section", ("waiting",)), ("queue", (SHARED_QUEUE,)))),
        Address(path, form=(("which", ("chosen",)), ("job", every_job))),
    ]


def _asked(path: str, **given: Any) -> Address:
    return Address(f"{path}?{urlencode(given, doseq=True)}")


def _plain(before: str, *parts: str) -> Iterator[Address]:
    return (Address(f"{before}{part}") for part in parts)


def _overview(_: There) -> Iterator[Address]:
    yield from _plain("/admin/", "", "banner/", *(f"overview/{part}/" for part in ("now", "history", "care")))
    yield _asked("/admin/banner/", shown="0123456789abcdef")


def _fleet(_: There) -> Iterator[Address]:
    for path in (_FLEET, f"{_FLEET}live/"):
        yield Address(path)
        yield from (_asked(path, show=show) for show in CHOICES)
        yield _asked(path, q="build-1", show="alive")
    verbs = ("drain", "undrain", "reroute")
    for host in (HERE, DRAINED, PAUSED, GONE):
        yield from _plain(f"{_FLEET}host/{host}/", "", "live/", *(f"{verb}/" for verb in verbs))
    reroute = f"{_FLEET}host/{DRAINED}/reroute/"
    yield _asked(reroute, to=HERE)
    yield _asked(reroute, to=HERE, same_folders="on", reason="moving")


def _switch(_: There) -> Iterator[Address]:
    yield from _plain(_SWITCH, "", "state/", "pause/", "resume/", "resume-fleet/", "stop/")
    for verb in ("pause", "resume", "resume-fleet"):
        yield _asked(f"{_SWITCH}{verb}/", queue=host_queue(PAUSED))
        yield _asked(f"{_SWITCH}{verb}/", some="1", queue=[SHARED_QUEUE, *map(host_queue, HOSTS)])
    yield _asked(f"{_SWITCH}stop/", host=HERE)


def _queue(there: There) -> Iterator[Address]:
    for path in (QUEUE, f"{QUEUE}lists/"):
        yield Address(path)
        yield _asked(path, live="1")
        yield from (_asked(path, queue=queue) for queue in (SHARED_QUEUE, host_queue(HERE)))
        for section in Standing:
            yield _asked(path, section=section)
            yield _asked(path, section=section, page="90")
            yield _asked(path, section=section, rows="1000")
            yield _asked(path, section=section, queue=host_queue(HERE), id="local-")
        yield from (_asked(path, id=beginning) for beginning in ("local-00000000000000", "held-", "nothing"))
        yield _asked(path, section="waiting", rows="1000", page="4", live="0")
    yield Address(f"{QUEUE}tabs/")
    yield _asked(f"{QUEUE}tabs/", queue=SHARED_QUEUE, section="waiting", id="local-", page="2", live="1")
    yield _asked(f"{QUEUE}tabs/", section="held", rows="1000", live="0")
    for job in there.jobs:
        yield from _plain(f"{QUEUE}job/{rq_id(job)}/", "", "now/")


def _runs(there: There) -> Iterator[Address]:
    yield Address(RUNS)
    yield from (_asked(RUNS, **given) for given in _questions())
    for side in ("older_than", "newer_than"):
        yield _asked(RUNS, **{side: there.deep})
        yield _asked(RUNS, outcome="failed", **{side: there.deep})
        yield _asked(RUNS, host="build-31", outcome="failed", kind="gitlab", **{side: there.deep})
        yield _asked(RUNS, flow="github-flow-2", model="gpt-5", since="390d", **{side: there.deep})
    for run in there.runs:
        yield Address(f"{RUNS}{quote(run)}/")
    yield Address(f"{RUNS}{quote(there.runs[0])}/log.txt")
    # Whole files have figures of their own; these are as short as a page.
    for kind in ("csv", "json"):
        few = {"since": "3h", "until": "2099-01-01", "older_than": "9999999999999~x", "newer_than": "1~x"}
        yield _asked(f"{RUNS}export.{kind}", **few)
        yield _asked(f"{RUNS}export.{kind}", **few, **_EACH)
        yield _asked(f"{RUNS}export.{kind}", q=schedule_id(3))


# A value of each facet.
_EACH = {
    "host": "build-01",
    "reason": "-",
    "flow": "local-flow-1",
    "model": "claude-sonnet-x",
    "kind": "local",
    "outcome": "completed",
}


def _questions() -> Iterator[dict[str, str]]:
    """The filters of the list of runs, which the API has, too."""
    choices = {
        "host": ("build-00", "build-49", "nobody"),
        "outcome": ("completed", "policy", "failed"),
        "reason": ("-", "stalled", "deadline"),
        "kind": ("local", "gitlab", "-"),
        "flow": ("local-flow-1", "gitlab-flow-59", "no-such-flow"),
        "model": ("claude-sonnet-x", "gemini-3"),
        "q": ("local-", "gh-1", "repeat:", f"repeat:{schedule_id(3)}:", "nothing"),
        "since": ("24h", "30d", "2026-01-01"),
        "until": ("200d", "2026-01-01 12:00"),
    }
    yield from ({name: value} for name, values in choices.items() for value in values)
    yield {"until": "200d", "kind": "gitlab", "outcome": "failed", "host": "build-31"}
    yield {"host": "build-09", "reason": "worker-lost", "kind": "gitlab", "flow": "gitlab-flow-41"}
    yield {"model": "gpt-5", "flow": "github-flow-2", "outcome": "policy", "since": "90d"}
    yield {"q": "gh-", "outcome": "failed", "host": "build-31", "since": "380d"}


def _schedules(_: There) -> Iterator[Address]:
    for path in (SCHEDULES, f"{SCHEDULES}live/"):
        yield Address(path)
        yield _asked(path, q="nightly-03")
    yield from _plain(
        SCHEDULES, "add/", *(f"entry/{place}{end}/" for place in (0, 199) for end in ("", "/remove"))
    )
    yield from _plain(
        SCHEDULES, f"run/{schedule_id(20)}/", *(f"restore/{one}/" for one in (TORN, schedule_id(20)))
    )


def _settings(_: There) -> Iterator[Address]:
    yield from _plain(_SETTINGS, "", "live/", "overlay/", *(f"taken/{kind}/" for kind in KINDS))
    for rows, last in (("windows", 99), ("limits", 199)):
        yield from _plain(_SETTINGS, f"{rows}/", f"{rows}/add/")
        yield from _plain(
            f"{_SETTINGS}{rows}/", *(f"{place}{end}/" for place in (0, last) for end in ("", "/remove"))
        )
        yield _asked(f"{_SETTINGS}{rows}/", q="octo/repository-1")


def _insights(_: There) -> Iterator[Address]:
    yield Address(_INSIGHTS)
    yield from (_asked(_INSIGHTS, span=span) for span in Span)
    for by in By:
        yield _asked(_INSIGHTS, span=Span.YEAR, by=by)
    for order in Order:
        yield _asked(_INSIGHTS, span=Span.YEAR, by=By.FLOW, order=order)
        yield _asked(_INSIGHTS, span=Span.QUARTER, by=By.SCOPE, order=order)
    for since, until in (("2026-06-01", "2026-07-15"), ("2025-12-01", "2026-11-29"), ("", "2026-03-03")):
        yield _asked(_INSIGHTS, **{"from": since, "to": until, "by": By.HOST})
    yield _asked(_INSIGHTS, **{"from": "2026-11-01"})


def _actions(there: There) -> Iterator[Address]:
    yield Address(_LOG)
    yield from (_asked(_LOG, older_than=entry) for entry in (there.entry, 60, 1))
    for part in ("", "progress/"):
        path = f"/admin/operations/{there.operation}/{part}"
        yield Address(path)
        yield from (_asked(path, **{"from": first}) for first in (200, max(there.cancelled - 100, 0)))


def _accounts(there: There) -> Iterator[Address]:
    yield from _plain(_USERS, "", "add/")
    yield from (
        _asked(_USERS, **{f"is_{what}__exact": flag}) for what in ("staff", "active") for flag in "01"
    )
    yield _asked(_USERS, is_superuser__exact="0")
    yield _asked(_USERS, groups__id__exact=there.group)
    yield from (
        _asked(_USERS, **given) for given in ({"q": "person-1"}, {"o": "-1.3"}, {"p": "2"}, {"all": ""})
    )
    yield from _plain(f"{_USERS}{there.user}/", "change/", "history/", "delete/", "password/")
    yield from _plain(_GROUPS, "", *(f"{there.group}/{part}/" for part in ("change", "history")))
    yield from (_asked(_GROUPS, **given) for given in ({"q": "view"}, {"p": "1"}))
    yield from (
        _asked(f"{path}/history/", p="1") for path in (f"{_USERS}{there.user}", f"{_GROUPS}{there.group}")
    )
    yield from _plain(
        "/admin/", "auth/", "runs/", "dispatch/", "password_change/", "password_change/done/", "jsi18n/"
    )


def _programs(there: There) -> Iterator[Address]:
    yield from _plain("/", "api/status", "api/fleet", "api/queue", "api/runs", "metrics", "healthz")
    yield from (_asked("/api/runs", **given) for given in _questions())
    yield _asked("/api/runs", limit="200")
    yield _asked("/api/runs", limit="200", next=there.deep, outcome="failed")
    yield _asked("/api/queue", queue=SHARED_QUEUE, limit="1000")
    yield _asked("/api/queue", queue=SHARED_QUEUE, limit="1000", next=there.turn)
    yield _asked("/api/queue", limit="50")
    yield _asked("/api/queue", queue=[*map(host_queue, HOSTS)], limit="50")


def _ways(there: There) -> Iterator[Address]:
    """What leads elsewhere, refuses, or is not there."""
    yield from (Address(path, 302) for path in ("/", "/admin/login/", f"{QUEUE}cancel/", f"{QUEUE}rerun/"))
    yield from (Address(path, 302) for path in (f"{_USERS}{there.user}/", f"{_GROUPS}{there.group}/"))
    # What groups may is for superusers to change.
    yield from (Address(f"{_GROUPS}{path}", 403) for path in ("add/", f"{there.group}/delete/"))
    yield Address("/admin/logout/", 405)
    yield Address("/login/none", 410)
    yield from (Address(path, 404) for path in (_MISSING, "/admin/r/1/1/", "/api/none"))
    chooser = {"app_label": "auth", "model_name": "user", "field_name": "groups", "term": "view", "page": "1"}
    yield _asked("/admin/autocomplete/", **chooser)
