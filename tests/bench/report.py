"""One JSON object a line: ours and a peer's figure from the same run, their ratio, and the target."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What is compared and with which target; `key` is its name on the line and on the command line."""

    key: str
    what: str
    target: float
    at_most: bool


FIGURES = {
    figure.key: figure
    for figure in (
        Figure(
            key="containers",
            what="seconds for 100 containers, to those of a bare loop",
            target=1.15,
            at_most=True,
        ),
        Figure(
            key="throughput-simple",
            what="jobs a second, to those of RQ's SimpleWorker",
            target=1.0,
            at_most=False,
        ),
        Figure(
            key="throughput-pool",
            what="jobs a second, to those of a stock RQ pool of 4 workers",
            target=2.0,
            at_most=False,
        ),
        Figure(
            key="latency",
            what="ms from enqueue to start on an idle worker (p95), to those of RQ's SimpleWorker",
            target=2.0,
            at_most=True,
        ),
        Figure(
            key="memory",
            what="MiB resident of the worker at concurrency 16 under load",
            target=100,
            at_most=True,
        ),
        Figure(key="commands", what="commands a second that an idle worker sends", target=6, at_most=True),
        Figure(
            key="ladder",
            what="ms to decide about a job under 200 pause windows and 200 scoped limits (p95)",
            target=1,
            at_most=True,
        ),
        Figure(
            key="ladder-dense",
            what="ms to decide about a job where 200 windows leave no gap (p95)",
            target=1,
            at_most=True,
        ),
        Figure(
            key="ladder-reload",
            what="ms of the first decision after the windows were read again (p95)",
            target=1,
            at_most=True,
        ),
        Figure(
            key="ladder-peer",
            what="ms to decide about a job (median), to those of reading both files as JSON",
            target=1.0,
            at_most=True,
        ),
        Figure(key="fleet-rows", what="ms to read a registry of 500 hosts (median)", target=50, at_most=True),
        Figure(
            key="fleet-peer",
            what="ms to read 500 hosts (median), to those of their hashes read in a pipeline by hand",
            target=1.5,
            at_most=True,
        ),
        Figure(
            key="fleet-shown",
            what="ms of `fleet` for 500 hosts, from the first question to the last line (median)",
            target=50,
            at_most=True,
        ),
        Figure(key="fleet-trips", what="round trips of `fleet` for 500 hosts", target=3, at_most=True),
        Figure(
            key="fleet-pause",
            what="seconds of `pause` with 1,000 queues of hosts as its words",
            target=2,
            at_most=True,
        ),
        Figure(
            key="schedules-load", what="seconds to take over a file of 2,000 triggers", target=1, at_most=True
        ),
        Figure(
            key="schedules-load-peer",
            what="seconds to take over 2,000 triggers, to those of json.loads and croniter for each pattern",
            target=6.0,
            at_most=True,
        ),
        Figure(
            key="schedules-reconcile",
            what="seconds to install 2,000 schedules in an empty table",
            target=1,
            at_most=True,
        ),
        Figure(
            key="schedules-reconcile-peer",
            what="seconds to install 2,000 schedules, to those of croniter's next instants in one pipeline",
            target=1.5,
            at_most=True,
        ),
        Figure(
            key="schedules-tick",
            what="ms of a tick beside 2,000 schedules of which none is due (median)",
            target=5,
            at_most=True,
        ),
        Figure(
            key="schedules-tick-peer",
            what="ms of a tick (median), to those of asking for the time and what is due by hand",
            target=3.0,
            at_most=True,
        ),
        Figure(
            key="schedules-trips",
            what="round trips of a tick of which nothing is due",
            target=2,
            at_most=True,
        ),
    )
}


def report(key: str, *, ours: float, peer: float | None, note: str | None = None) -> None:
    """Print a line. The ratio is ours to the peer's; without a peer it is ours to the target."""
    figure = FIGURES[key]
    ratio = ours / (figure.target if peer is None else peer)
    value = ours if peer is None else ratio
    _print(
        figure,
        ours=round(ours, 4),
        peer=None if peer is None else round(peer, 4),
        ratio=round(ratio, 3),
        holds=value <= figure.target if figure.at_most else value >= figure.target,
        note=note,
    )


def unmeasured(key: str, note: str) -> None:
    """Print a line that says why there is no figure."""
    _print(FIGURES[key], ours=None, peer=None, ratio=None, holds=None, note=note)


def _print(
    figure: Figure,
    *,
    ours: float | None,
    peer: float | None,
    ratio: float | None,
    holds: bool | None,
    note: str | None,
) -> None:
    line = {
        "name": figure.key,
        "ours": ours,
        "peer": peer,
        "ratio": ratio,
        "target": figure.target,
        "holds": holds,
        "what": figure.what,
    }
    print(json.dumps(line if note is None else {**line, "note": note}), flush=True)
