"""The answer of `fleet` as data for programs and pages: instants and ages in ms, null for what is unknown."""

from __future__ import annotations

from typing import Any

from dispatch.console import findings_shown, pause_shown
from dispatch.console.fleet_facts import FleetFacts, HostLook, QueueLook
from dispatch.console.fleet_findings import warnings
from hosts.rows import HostRow, Unreachable


def as_data(facts: FleetFacts) -> dict[str, Any]:
    """Put it into the shape of `fleet --json`.

    `hosts` is null where the registry could not be read, and `unreachable` says why.
    """
    unreachable = facts.roster.reason if isinstance(facts.roster, Unreachable) else None
    return {
        "now": facts.now_ms,
        "unreachable": unreachable,
        "paused": pause_shown.as_data(facts.pause),
        "hosts": None if unreachable else [_host_data(host, facts) for host in facts.hosts],
        "queues": [_queue_data(queue, facts) for queue in facts.queues.values()],
        "unreadable": [{"shown": one.shown, "why": one.why} for one in facts.known.unreadable],
        "warnings": [findings_shown.as_data(one) for one in warnings(facts)],
    }


def _host_data(host: HostLook, facts: FleetFacts) -> dict[str, Any]:
    return {
        "name": host.name,
        "hostId": host.host_id,
        "presence": host.presence.value,
        "beatAge": host.stale_ms,
        "queue": host.queue.name if host.queue else None,
        "draining": host.draining,
        "askedToStop": host.name in facts.asked_to_stop,
        **(_row_data(host.row) if host.row else {}),
    }


def _row_data(row: HostRow) -> dict[str, Any]:
    return {
        "boot": row.boot,
        "startedAt": row.started_at_ms,
        "skew": row.skew_ms,
        "slots": row.concurrency,
        "slotsUsed": row.slots_used,
        "routes": row.routes,
        "blind": row.blind or None,
        "version": row.version or None,
        "image": row.image or None,
        "imageDigest": row.image_digest or None,
        "piVersion": row.pi_version or None,
        "zone": row.tz or None,
        "caps": sorted(row.caps),
        "cronCount": row.cron_count,
        "loaded": {
            "cron": row.fp_cron or None,
            "pauseWindows": row.fp_pause or None,
            "scopedLimits": row.fp_limits or None,
            "settings": row.fp_settings or None,
            "spending": row.fp_spending or None,
            "triggers": row.fp_triggers or None,
        },
    }


def _queue_data(queue: QueueLook, facts: FleetFacts) -> dict[str, Any]:
    return {
        "name": queue.name,
        "waiting": queue.waiting,
        "active": queue.active,
        "deferred": queue.deferred,
        "held": queue.held,
        "hasWorker": facts.is_taken_from(queue),
        "paused": pause_shown.as_data(queue.pause),
    }
