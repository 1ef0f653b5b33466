"""The figures of /metrics as Prometheus knows them; labels are hosts, queues and reasons, so many at most.

Everything is read from what others keep: nothing is counted in this process, whose restart shows nowhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dispatch.api.measuring import Measured
from dispatch.console.budget import Budget
from dispatch.console.fleet_facts import FleetFacts, HostLook
from hosts.rows import Presence, Unreachable
from pidispatch_site.version import VERSION
from runs.rollup_figures import BOUNDS_SECONDS
from runs.rollups import Lifetime

#: Hosts and queues that have samples of their own; the others are counted as left out.
MOST = 200
_MOST_REASONS = 100
_REASON = re.compile(r"[a-z0-9-]{1,40}")
_OTHER = "other"
_STATES = ("waiting", "active", "deferred", "held")


class Figures(Collector):
    """The figures of one scrape."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured

    def collect(self) -> Iterator[Metric]:
        """Give every family that something is known of."""
        seen = self._measured
        yield InfoMetricFamily("pidispatch_build", "The web process that answers.", {"version": VERSION})
        yield _gauge("valkey_up", "1 while Valkey answers what is asked of it.", int(seen.sees_valkey))
        yield _gauge(
            "database_up", "1 while the rollups of runs can be read.", int(seen.lifetime is not None)
        )
        yield _gauge("configuration_up", "1 while this host's caps can be read.", int(seen.is_configured))
        if seen.fleet is not None:
            yield from _queues(seen.fleet)
            yield from _hosts(seen.fleet)
        if seen.budget is not None:
            yield from _budget(seen.budget)
        if seen.sees_valkey:
            put_offs = CounterMetricFamily(
                "pidispatch_deferrals", "How often jobs were put off, by reason.", labels=["reason"]
            )
            for reason, count in seen.put_offs.items():
                put_offs.add_metric([reason], count)
            yield put_offs
        if seen.lifetime is not None:
            yield from _jobs(seen.lifetime)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"pidispatch_{name}", text, value)


def _labelled(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"pidispatch_{name}", text, labels=labels)


def _queues(facts: FleetFacts) -> Iterator[Metric]:
    jobs = _labelled("queue_jobs", "Jobs of a queue by where they stand.", "queue", "state")
    paused = _labelled("queue_paused", "1 while a queue, or the whole fleet, is paused.", "queue")
    served = _labelled("queue_has_worker", "1 while a worker that takes from it lives.", "queue")
    shown = list(facts.queues.values())[:MOST]
    for queue in shown:
        for state in _STATES:
            count = getattr(queue, state)
            if count is not None:
                jobs.add_metric([queue.name, state], count)
        paused.add_metric([queue.name], int(bool(queue.pause or facts.pause)))
        served.add_metric([queue.name], int(facts.is_taken_from(queue)))
    yield from (jobs, paused, served)
    yield _gauge("paused", "1 while the whole fleet is paused.", int(facts.pause is not None))
    yield _gauge("queues_left_out", "Queues without samples of their own.", len(facts.queues) - len(shown))


def _hosts(facts: FleetFacts) -> Iterator[Metric]:
    if isinstance(facts.roster, Unreachable):
        return
    everybody = sorted(facts.hosts, key=lambda host: (host.presence is Presence.GONE, host.name))
    yield from _host_figures(everybody[:MOST])
    presences = Counter(host.presence for host in everybody)
    counts = _labelled("hosts", "Hosts by whether they live.", "presence")
    for presence in Presence:
        counts.add_metric([presence.value], presences[presence])
    yield counts
    yield _gauge("hosts_left_out", "Hosts without samples of their own.", max(0, len(everybody) - MOST))


def _host_figures(hosts: Sequence[HostLook]) -> Iterator[Metric]:
    beat = _labelled("host_beat_age_seconds", "How long ago a host last beat.", "host")
    skew = _labelled("host_clock_skew_seconds", "How far its clock is ahead of Valkey's.", "host")
    slots = _labelled("host_slots", "Jobs that it runs at once at most.", "host")
    used = _labelled("host_slots_used", "Jobs that it runs or has in hand.", "host")
    draining = _labelled("host_draining", "1 while it is drained.", "host")
    for host in hosts:
        row = host.row
        _add(beat, host, host.stale_ms, 1000)
        _add(skew, host, row.skew_ms if row else None, 1000)
        _add(slots, host, row.concurrency if row else None)
        _add(used, host, row.slots_used if row else None)
        _add(draining, host, int(host.draining))
    yield from (beat, skew, slots, used, draining)


def _add(family: GaugeMetricFamily, host: HostLook, value: int | None, scale: int = 1) -> None:
    if value is not None:
        family.add_metric([host.name], value / scale)


def _budget(budget: Budget) -> Iterator[Metric]:
    used = _labelled("budget_used", "Container starts counted in a window that has a cap.", "window")
    cap = _labelled("budget_cap", "Container starts that a window allows.", "window")
    held = _labelled("budget_hold_above", "Starts above this many are held back.", "window")
    for use in budget.use.windows:
        for family, value in ((used, use.used), (cap, use.cap), (held, use.hold_above)):
            if value is not None:
                family.add_metric([use.window.value], value)
    yield from (used, cap, held)
    tokens = budget.use.tokens
    if tokens.used is not None:
        yield _gauge("budget_tokens_used", "Tokens counted in the day.", tokens.used)
    if tokens.cap is not None:
        yield _gauge("budget_tokens_cap", "Tokens that a day allows.", tokens.cap)


def _jobs(lifetime: Lifetime) -> Iterator[Metric]:
    jobs = CounterMetricFamily(
        "pidispatch_jobs", "Jobs that ended, by outcome and reason.", labels=["outcome", "reason"]
    )
    for (outcome, reason), count in sorted(_bounded(lifetime).items()):
        jobs.add_metric([outcome, reason], count)
    yield jobs
    totals = lifetime.totals
    tokens = CounterMetricFamily("pidispatch_tokens", "Tokens that jobs used.", labels=["kind"])
    tokens.add_metric(["input"], totals.tokens_input)
    tokens.add_metric(["output"], totals.tokens_output)
    yield tokens
    yield CounterMetricFamily("pidispatch_cost_dollars", "What jobs cost.", totals.cost)
    yield _histogram("job_duration_seconds", "How long last attempts ran.", totals.took, totals.took_seconds)
    yield _histogram(
        "job_waiting_seconds", "How long jobs waited for their start.", totals.waited, totals.waited_seconds
    )


def _bounded(lifetime: Lifetime) -> Counter[tuple[str, str]]:
    """Count by tokens only, and by so many: what a peer wrote as a reason becomes no label."""
    counts: Counter[tuple[str, str]] = Counter()
    for (outcome, reason), count in sorted(lifetime.jobs.items(), key=lambda one: -one[1]):
        names = (_token(outcome), _token(reason) if reason else "")
        is_known = names in counts or len(counts) < _MOST_REASONS
        counts[names if is_known else (_OTHER, _OTHER)] += count
    return counts


def _token(text: str) -> str:
    return text if _REASON.fullmatch(text) else _OTHER


def _histogram(name: str, text: str, counts: Sequence[int], total_seconds: float) -> Metric:
    family = HistogramMetricFamily(f"pidispatch_{name}", text)
    bounds = [*(f"{float(bound)}" for bound in BOUNDS_SECONDS), "+Inf"]
    family.add_metric([], list(zip(bounds, accumulate(counts), strict=True)), sum_value=total_seconds)
    return family
