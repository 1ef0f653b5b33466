"""Jobs for several hosts: half of them for one host alone, the others for any, some of few repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hosts.names import host_queue
from tests.harness.fleet import Fleet


def put(
    fleet: Fleet, names: Sequence[str], *, jobs: int, folders: int, make: Callable[..., Path], delay: float
) -> Mapping[str, str]:
    """Enqueue them; whose each is that only one host may run.

    There are `folders` for each host and for the shared queue, made by `Fleet.folder` or `Fleet.place`; the
    repositories are those that the fleet has bounds for. A container lasts between half of `delay` and all.
    """
    repositories = [make(name, delay=f"{delay / 2:.2f}").name for name in fleet.bounds]
    places = {
        owner: [
            make(f"{owner}-{number}", delay=f"{delay * (1 + number / folders) / 2:.2f}")
            for number in range(folders)
        ]
        for owner in (*names, "any")
    }
    theirs: dict[str, str] = {}
    for number in range(jobs):
        turn, is_own = number // 2, number % 2 == 0
        if is_own:
            name = names[turn % len(names)]
            folder = places[name][turn // len(names) % folders]
            theirs[fleet.enqueue(folder, queue=host_queue(name))] = name
        elif turn % 3:
            fleet.enqueue_forge(repositories[turn % len(repositories)])
        else:
            fleet.enqueue(places["any"][turn // 3 % folders])
    return theirs


def require_at_home(fleet: Fleet, theirs: Mapping[str, str]) -> None:
    """No host has run what was another's."""
    records = fleet.records(list(theirs))
    strays = {
        job_id: records[job_id]["host"] for job_id in theirs if records[job_id]["host"] != theirs[job_id]
    }
    assert not strays, strays
