"""How often and how long, in one place: production's values are the defaults, tests pass their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from dispatch.queue.timings import VANISHED_SECONDS
from dispatch.queue.timings import Timings as QueueTimings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTimings:
    """Seconds throughout.

    `job_limit`: wall clock of a container (Q 3.2). `deadline_slack`: its own deadline is later by this, so
    that the limit of the worker normally comes first. `scope_recheck`: when a job whose folder is busy wakes;
    freeing the folder wakes it sooner. `cap_recheck`: when a parked job looks again at the latest.
    `backoff_base`: the first back-off; it doubles with each attempt.
    `host_beat_every`, `host_row_ttl`: the registry's row of this host. `orders_every`: between two looks for
    requests to stop what runs. `upkeep_every`: between two looks at what others left behind; a host silent
    for `vanished` leaves its unwritten records to others.
    `tick_every`: between two looks for schedules that are due. What could not be done about the schedules of
    the triggers file is tried again after `schedules_retry`, and folders are looked for after
    `schedules_review`.
    `retention_every`: between two removals of what is too old. `look_every`: between two looks at the
    operator's files. `shutdown_patience`: how long the boot, the pops
    and the attempts may take to settle, all together; `thread_patience`: how long the remaining threads may,
    all together. Both stay within the 15 s that a service manager is promised.
    """

    job_limit: float = 1800
    deadline_slack: float = 60
    scope_recheck: float = 5
    cap_recheck: float = 300
    backoff_base: float = 60
    pop_block: float = 2
    pause_recheck: float = 0.5
    promote_every: float = 0.5
    look_every: float = 0.15
    sweep_every: float = 5
    reap_every: float = 60
    record_every: float = 5
    host_beat_every: float = 15
    host_row_ttl: float = 90
    tick_every: float = 0.5
    schedules_retry: float = 5
    schedules_review: float = 30
    orders_every: float = 0.5
    upkeep_every: float = 60
    vanished: float = VANISHED_SECONDS
    retention_every: float = 24 * 3600
    valkey_retry_max: float = 2
    shutdown_patience: float = 11
    thread_patience: float = 2.5
    queue: QueueTimings = field(default_factory=QueueTimings)
