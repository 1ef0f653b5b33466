"""What a boot does about the leases that earlier boots of its worker have left behind (Q 7.5)."""

from __future__ import annotations

from redis.exceptions import RedisError

from dispatch.leases.leases import Leases
from dispatch.operator_files.scoped_limits import ScopedLimits
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS
from runs.reaper import Reaped
from runs.workspace.scope import hash16


def sweep_scopes(leases: Leases, reaped: Reaped, limits: ScopedLimits) -> None:
    """Free the scope slots of this worker's earlier boots, but for scopes that a container may still work in.

    Not at all when the engine did not say what runs: another host could take what is freed beside a container
    of ours. May be repeated, also while this boot has jobs. Raises VALKEY_FAULTS; what a server refuses is
    told, and no reason not to boot.
    """
    if not reaped.enumerated:
        log.event("scope_claims_sweep_skipped", reason="reaper-skipped")
        return
    try:
        count = leases.sweep_own(_slots_of(limits, spare=reaped.busy_scopes))
    except VALKEY_FAULTS:
        raise
    except RedisError as error:
        log.event("scope_claims_sweep_skipped", reason=type(error).__name__)
        return
    if count:
        log.event("scope_claims_swept", count=count)


def _slots_of(limits: ScopedLimits, *, spare: frozenset[str]) -> list[tuple[str, int]]:
    """Name by hash each repository that is limited, and its slots; folders have none in the fleet."""
    repositories = [
        (hash16(row.scope), row.concurrent)
        for row in limits.rows
        if row.concurrent is not None and not row.scope.startswith("/")
    ]
    return [(scope_hash, slots) for scope_hash, slots in repositories if scope_hash not in spare]
