"""What a worker with a triggers file does about its schedules: keeps them, and acts on those that are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dispatch.schedules.keeper import Keeper
from dispatch.schedules.opinion import Opinion
from dispatch.schedules.ticker import Ticker
from dispatch.worker.host import Host
from hosts import switches
from hosts.registry import Registry
from hosts.zone import zone_name
from pidispatch_site.conf import Config

if TYPE_CHECKING:
    from dispatch.operator_files.live import LiveFile
    from dispatch.triggers.entries import Triggers
    from dispatch.worker.edges import Edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """The parts, each used by one thread: `follow` never waits for Valkey, `tick` never for a file system."""

    file: LiveFile[Triggers]
    keeper: Keeper
    ticker: Ticker

    def follow(self) -> None:
        """Look at the file."""
        self.file.poll()

    def tick(self) -> None:
        """Act on what is due. Raises VALKEY_FAULTS."""
        self.ticker.tick()


def opinion(config: Config, file: LiveFile[Triggers] | None) -> Opinion | None:
    """Make what this host tells of its schedules; None without a file."""
    return Opinion(file, zone=zone_name(config.environment)) if file else None


def schedules(
    config: Config,
    host: Host,
    registry: Registry,
    edges: Edges,
    *,
    file: LiveFile[Triggers] | None,
    opinion: Opinion | None,
) -> Schedules | None:
    """Make the parts; None without a file, when this host keeps no schedule and starts none."""
    if file is None or opinion is None:
        return None
    client, timings = host.client, host.timings
    keeper = Keeper(
        client=client,
        registry=registry,
        file=file,
        opinion=opinion,
        owner=host.owner,
        # Its own where it has one: jobs of its folders are for nobody else.
        queue=host.queues[-1],
        zone=zone_name(config.environment),
        fleet_mode=config.worker_name_declared,
        clock_ms=lambda: edges.schedule_clock(client),
        retry=timings.schedules_retry,
        review=timings.schedules_review,
    )
    ticker = Ticker(
        client,
        host.queues,
        clock_ms=lambda: edges.schedule_clock(client),
        may_fire=lambda _: takes_jobs(host),
        delays=edges.delays,
    )
    return Schedules(file=file, keeper=keeper, ticker=ticker)


def takes_jobs(host: Host) -> bool:
    """Whether this host takes jobs at all: what it does not take, another that has the schedule may start.

    Raises VALKEY_FAULTS.
    """
    return host.may_take() and not switches.drains(host.client, [host.owner.host])
