"""Names of the keys in Valkey that more than one layer uses (contracts 2)."""

from __future__ import annotations

QUEUES_KNOWN = "queues:known"
# Every host that ever beat: host-id to its name and last beat; outlives the rows of the registry.
HOSTS_KNOWN = "known:hosts"
HOSTS_LIVE = "host:live"
# The literal star: the whole fleet, queues that are born later included.
FLEET = "*"


def pause(scope: str) -> str:
    """Name the pause of one queue, or of the fleet for the scope `*`."""
    return f"pause:{scope}"


def drain(host: str) -> str:
    """Name the switch that keeps one worker, by name, from taking jobs."""
    return f"drain:{host}"


def stop_request(host: str) -> str:
    """Name the request to one worker, by name, to stop what it runs."""
    return f"stop:req:{host}"


def stop_answer(host: str) -> str:
    """Name that worker's answer."""
    return f"stop:ack:{host}"


def host_row(name: str) -> str:
    """Name the registry's row of the worker of this name; expires 90 s after its last beat."""
    return f"host:h:{name}"


def cancel_request(job_id: str) -> str:
    """Name the request to whoever runs the job of this natural id to stop it; lives 60 s."""
    return f"cancel:req:{job_id}"


def cancel_answer(job_id: str) -> str:
    """Name the answer to it, the worker's name; lives 5 min."""
    return f"cancel:ack:{job_id}"


def containers(host_id: str) -> str:
    """Name the hash of container name to what began it; no TTL, the engine's word removes an entry."""
    return f"containers:{host_id}"


def pending_records(host_id: str) -> str:
    """Name the list of records that the host has yet to write, oldest first; no TTL, drained by that host."""
    return f"records:pending:{host_id}"


def switches(*, queue: str, host: str) -> tuple[str, str, str]:
    """Name the three switches that can hold work of this queue back on this worker, as scripts take them."""
    return pause(FLEET), pause(queue), drain(host)
