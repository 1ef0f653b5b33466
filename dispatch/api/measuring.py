"""Reading what /metrics tells: a look at Valkey, one at the rollups, and this host's caps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import DatabaseError
from redis.exceptions import ResponseError

from dispatch.console import budget, fleet
from dispatch.console.budget import Budget, CapsInForce
from dispatch.console.fleet_facts import FleetFacts
from dispatch.pages.sight import Sight, Unseen, sight
from dispatch.queue import put_offs
from pidispatch_site.conf import Config
from pidispatch_site.errors import PidispatchError
from runs import rollups
from runs.rollups import Lifetime

if TYPE_CHECKING:
    import redis


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What could be read; None is what could not.

    `put_offs` is how often jobs were put off, by reason. `sees_valkey`: everything that was asked of it was
    answered. `is_configured`: the caps of this host could be read.
    """

    sees_valkey: bool
    is_configured: bool
    fleet: FleetFacts | None = None
    budget: Budget | None = None
    put_offs: Mapping[str, int] = field(default_factory=dict)
    lifetime: Lifetime | None = None


def measure(config: Config, environment: Mapping[str, str]) -> Measured:
    """Read everything; what is away costs its own figures only. `config` may fail when it is touched."""
    caps = _caps(config)
    with sight(environment) as seen:
        facts = seen.read(fleet.read)
        spent = _budget(seen, caps)
        counted = seen.read(_put_offs)
        sees_valkey = not seen.fault
    return Measured(
        sees_valkey=sees_valkey,
        is_configured=caps is not None,
        fleet=None if isinstance(facts, Unseen) else facts,
        budget=spent,
        put_offs={} if isinstance(counted, Unseen) else counted,
        lifetime=_lifetime(),
    )


def _caps(config: Config) -> CapsInForce | None:
    try:
        return budget.caps_in_force(config)
    except PidispatchError:
        return None


def _budget(seen: Sight, caps: CapsInForce | None) -> Budget | None:
    if caps is None:
        return None
    found = seen.read(lambda client: budget.read(client, caps))
    return None if isinstance(found, Unseen) else found


def _put_offs(client: redis.Redis) -> Mapping[str, int]:
    try:
        return put_offs.read(client)
    except ResponseError:
        # Something else stands at that key; the figures of the fleet are seen all the same.
        return {}


def _lifetime() -> Lifetime | None:
    try:
        return rollups.lifetime()
    except (DatabaseError, PidispatchError):
        return None
