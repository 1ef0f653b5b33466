"""/metrics: figures of what is there, the rest where something is away, and labels that nobody can flood."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import override_settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from dispatch.api import families
from dispatch.api.families import Figures
from dispatch.api.measuring import Measured
from dispatch.console.fleet_facts import FleetFacts
from dispatch.queue import keys
from hosts import switches
from hosts.rows import Unreachable
from pidispatch_site.errors import ConfigurationError
from runs import rollups, rows
from runs.outcome import Outcome
from runs.rollup_totals import together
from runs.rollups import Lifetime
from tests.dispatch.consolekit import NOBODY
from tests.dispatch.fleetkit import appear, fleet, queue, row
from tests.dispatch.queuekit import Host
from tests.harness.records import a_record

PREFIX = "pidispatch_"


def samples(text):
    """Every sample by its name and the values of its labels."""
    return {
        (sample.name.removeprefix(PREFIX), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def scraped(here, browser):
    def scrape(**changes):
        with override_settings(PIDISPATCH_ENVIRONMENT={**here, **changes}):
            response = browser.get("/metrics")
        assert response.status_code == 200
        assert response["Content-Type"].startswith("text/plain; version=0.0.4")
        return samples(response.content.decode())

    return scrape


def test_figures_of_the_fleet_and_of_what_ran(scraped, valkey, settings):
    appear(valkey, "alpha", age_ms=5000, skew_ms=2000, slotsUsed=3)
    host = Host(valkey)
    host.enqueue("a", "b", "c")
    host.put_off(host.claim())
    host.start()
    switches.pause(valkey, ["pi-jobs@alpha"], by="anna", reason="")
    rows.write(
        [
            a_record(1, outcome=Outcome.COMPLETED),
            a_record(2, outcome=Outcome.FAILED, reason="stalled"),
            a_record(3, outcome=Outcome.FAILED, reason="stalled"),
        ]
    )

    found = scraped()

    assert {
        ("valkey_up",): 1,
        ("database_up",): 1,
        ("configuration_up",): 1,
        ("queue_jobs", "pi-jobs", "waiting"): 1,
        ("queue_jobs", "pi-jobs", "active"): 1,
        ("queue_jobs", "pi-jobs", "deferred"): 1,
        ("queue_paused", "pi-jobs"): 0,
        ("queue_paused", "pi-jobs@alpha"): 1,
        ("hosts", "alive"): 1,
        ("host_slots", "alpha"): 4,
        ("host_slots_used", "alpha"): 3,
        ("host_clock_skew_seconds", "alpha"): 2,
        ("deferrals_total", "scope-busy"): 1,
        ("jobs_total", "completed", ""): 1,
        ("jobs_total", "failed", "stalled"): 2,
        ("budget_used", "day"): 0,
        ("budget_cap", "day"): settings.PIDISPATCH.daily_cap,
    }.items() <= found.items()
    assert 5 <= found["host_beat_age_seconds", "alpha"] < 60
    assert found["job_duration_seconds_bucket", "+Inf"] == found["job_duration_seconds_count",] == 3
    assert ("build_info", "0.1.0") in found


def test_without_valkey_the_rest_is_told(scraped):
    rows.write([a_record(1)])

    found = scraped(VALKEY_URL=NOBODY)

    assert (found["valkey_up",], found["database_up",]) == (0, 1)
    assert sum(value for (name, *_), value in found.items() if name == "jobs_total") == 1
    assert not any(name.startswith(("queue", "host", "budget", "deferral")) for name, *_ in found)


def test_without_rollups_or_a_configuration_the_rest_is_told(scraped, monkeypatch, settings):
    def fails():
        raise OperationalError("no such table")

    monkeypatch.setattr(rollups, "lifetime", fails)
    settings.PIDISPATCH = _Broken()

    found = scraped()

    assert (found["valkey_up",], found["database_up",], found["configuration_up",]) == (1, 0, 0)
    assert ("queue_jobs", "pi-jobs", "waiting") in found


class _Broken:
    def __getattr__(self, name):
        raise ConfigurationError("PI_DAILY_CAP is 'x'")


def test_what_stands_in_the_place_of_the_count_costs_only_that(scraped, valkey):
    valkey.set(keys.PUT_OFFS, "x")

    assert scraped()["valkey_up",] == 1


def shown(**known):
    registry = CollectorRegistry()
    registry.register(Figures(Measured(sees_valkey=True, is_configured=True, **known)))
    return samples(generate_latest(registry).decode())


def test_hosts_and_queues_are_so_many_at_most_and_the_living_come_first():
    count = families.MOST + 10
    hosts = [row(f"h{number:03d}", age_ms=None if number < 20 else 1) for number in range(count)]

    found = shown(fleet=fleet(*hosts))

    assert len([name for name, *_ in found if name == "host_slots"]) == families.MOST
    assert ("host_slots", f"h{count - 1}") in found
    assert (found["hosts_left_out",], found["queues_left_out",]) == (10, 11)
    assert (found["hosts", "alive"], found["hosts", "gone"]) == (count - 20, 20)


def test_reasons_are_tokens_and_so_many_at_most():
    jobs = {("failed", f"r-{number}"): 2 for number in range(300)}
    jobs |= {("failed", '"} evil 1\n'): 5, ("completed", None): 7}
    nothing = together(())

    found = shown(lifetime=Lifetime(jobs, nothing))
    counted = {name: value for name, value in found.items() if name[0] == "jobs_total"}

    assert len(counted) <= 101
    assert sum(counted.values()) == 612
    assert counted["jobs_total", "completed", ""] == 7
    assert counted["jobs_total", "failed", "other"] == 5


def test_what_is_unknown_has_no_sample():
    one = queue("pi-jobs", age_ms=None, waiting=None, held=2)
    found = shown(fleet=fleet(row("a", slots_used=None, age_ms=None), one))

    assert found["queue_jobs", "pi-jobs", "held"] == 2
    assert ("queue_jobs", "pi-jobs", "waiting") not in found
    assert ("host_slots_used", "a") not in found
    assert ("host_beat_age_seconds", "a") not in found


def test_a_registry_that_cannot_be_read_costs_the_hosts_only():
    found = shown(fleet=FleetFacts(now_ms=1, roster=Unreachable("refused")))

    assert not any(name.startswith("host") for name, *_ in found)
    assert found["paused",] == 0
