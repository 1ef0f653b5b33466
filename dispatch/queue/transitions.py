"""What a worker does with a job in hand (contracts 3): one script each, a compare-and-set on the token.

Each may be repeated after a lost answer: if the first try landed, the repeat answers DONE and changes
nothing. LOST is no error: somebody else decided about the job; log, release, touch nothing. Faults of Valkey
are raised as they are (`dispatch.queue.patient` repeats).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dispatch.queue import fields, keys, results
from dispatch.queue.delays import Delays, no_delay
from dispatch.queue.owner import execution_id
from dispatch.queue.scripts import Key, Scripts, Value
from dispatch.queue.timings import Timings
from hosts import keys as hosts_keys
from runs.outcome import Outcome

if TYPE_CHECKING:
    import redis

    from dispatch.queue.owner import Owner
    from dispatch.queue.popper import Claimed


class Step(StrEnum):
    """What became of a transition. The last three are `begin`'s only and change nothing of the job.

    HELD: a pause or drain holds. DENIED: its lease ran out, and others have every slot. UNLISTED: the key
    that lists the containers of this host is of another type, so that nobody could stop one.
    """

    DONE = "done"
    LOST = "lost"
    HELD = "held"
    DENIED = "denied"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What `begin` makes sure of for a job that the fleet limits; see `dispatch.leases.leases.Lease`."""

    slots: tuple[str, ...]
    beyond: tuple[str, ...]
    claim: str
    ttl_ms: int


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """The transitions of one worker process. Safe for threads; `client` never retries by itself.

    `now` is the host's clock, for the texts that RQ's tools show; what is decided goes by Valkey's.
    """

    client: redis.Redis
    owner: Owner
    timings: Timings = field(default_factory=Timings)
    delays: Delays = no_delay
    now: Callable[[], datetime] = _utc_now
    _scripts: Scripts = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_scripts", Scripts(self.client))

    def give_back(self, claimed: Claimed) -> Step:
        """Put it back to the front of its queue: pause, drain, no slot, shutdown."""
        names = keys.queue_keys(claimed.queue)
        return self._step(
            "give_back",
            (keys.job(claimed.raw_id), names.taken(self.owner.boot), names.jobs),
            (claimed.raw_id, claimed.token),
        )

    def put_off(
        self,
        claimed: Claimed,
        *,
        until_ms: int,
        reason: str,
        scope_hash: str | None = None,
        cause: str | None = None,
    ) -> Step:
        """Let it sleep until an instant of Valkey's clock, rounded up to a second; no attempt is spent.

        `scope_hash` names what it waits for, so that `waiters.wake` of that scope finds it. `cause` is a
        token that says more than the reason, for whoever asks why it sleeps.
        """
        names = keys.queue_keys(claimed.queue)
        return self._step(
            "put_off",
            (
                *(keys.job(claimed.raw_id), names.taken(self.owner.boot), names.scheduled),
                *(keys.waiters(claimed.queue, reason, scope_hash), keys.QUEUES, keys.PUT_OFFS),
            ),
            (claimed.raw_id, claimed.token, until_ms, reason, scope_hash or "", names.jobs, cause or ""),
        )

    def begin(self, claimed: Claimed, *, container: str, deadline_ms: int, slot: Slot | None = None) -> Step:
        """Make it started, right before its container is created: from here on nobody runs it again.

        `container` is the name that it will have, `deadline_ms` when it ends itself (epoch, host's clock).
        `slot` is had for its whole time from then on, if the job needs one.
        """
        names = keys.queue_keys(claimed.queue)
        worker = self.owner.worker_name(claimed.queue)
        entry = {"job": claimed.job_id, "attempt": claimed.attempt, "token": claimed.token}
        return self._step(
            "begin",
            (
                *(keys.job(claimed.raw_id), names.taken(self.owner.boot)),
                *hosts_keys.switches(queue=claimed.queue, host=self.owner.host),
                *self._execution_keys(claimed, names, worker),
                keys.containers(self.owner.host_id),
                *((*slot.slots, *slot.beyond) if slot else ()),
            ),
            (
                *self._stamp(claimed, self.timings.execution_ttl),
                *(container, _compact({**entry, "deadline": deadline_ms})),
                *((claimed.job_id, slot.claim, slot.ttl_ms, len(slot.slots)) if slot else ()),
            ),
        )

    def refuse(self, claimed: Claimed, *, reason: str, record: bytes) -> Step:
        """End it by policy before it started; `record` goes to this host's pending records."""
        names = keys.queue_keys(claimed.queue)
        return self._step(
            "refuse",
            (
                *(keys.job(claimed.raw_id), names.taken(self.owner.boot), names.finished),
                *(keys.results(claimed.raw_id), keys.pending_records(self.owner.host_id)),
            ),
            (*self._stamp(claimed, results.FINISHED_SECONDS), *results.returned(reason), record),
        )

    def end(
        self,
        claimed: Claimed,
        *,
        outcome: Outcome,
        reason: str | None,
        record: bytes,
        gone: str | None = None,
    ) -> Step:
        """End a started job, or fail one in hand; `record` goes to this host's pending records.

        `gone` names its container once the engine has said that it is removed.
        """
        names = keys.queue_keys(claimed.queue)
        worker = self.owner.worker_name(claimed.queue)
        failed = outcome is Outcome.FAILED
        token = reason or outcome.value
        return self._step(
            "end",
            (
                *(keys.job(claimed.raw_id), names.taken(self.owner.boot)),
                *(names.failed if failed else names.finished, keys.results(claimed.raw_id)),
                keys.pending_records(self.owner.host_id),
                *self._execution_keys(claimed, names, worker),
                *(keys.worker(worker), keys.containers(self.owner.host_id)),
            ),
            (
                *self._stamp(claimed, results.FAILED_SECONDS if failed else results.FINISHED_SECONDS),
                *(results.raised(token) if failed else results.returned(token)),
                *(record, "failed" if failed else "finished", gone or ""),
            ),
        )

    def again(
        self,
        claimed: Claimed,
        *,
        delay_ms: int,
        record: bytes,
        log_entry: Mapping[str, Any],
        gone: str | None = None,
    ) -> Step:
        """Try it again after `delay_ms`; one attempt is spent.

        `log_entry` (JSON values) joins its attemptLog; `record` is of this attempt, not final.
        `gone` names its container once the engine has said that it is removed.
        """
        names = keys.queue_keys(claimed.queue)
        worker = self.owner.worker_name(claimed.queue)
        now = self.now()
        return self._step(
            "again",
            (
                *(keys.job(claimed.raw_id), names.taken(self.owner.boot), names.scheduled),
                *(keys.waiters(claimed.queue, "retry"), keys.QUEUES),
                *self._execution_keys(claimed, names, worker),
                *(keys.worker(worker), keys.pending_records(self.owner.host_id)),
                keys.containers(self.owner.host_id),
            ),
            (
                *(claimed.raw_id, claimed.token, delay_ms, names.jobs),
                *(fields.rq_text(now), now.timestamp(), claimed.attempt + 1),
                *(_compact([*claimed.attempt_log, log_entry]), record, gone or ""),
            ),
        )

    def _stamp(self, claimed: Claimed, seconds: int) -> tuple[Value, ...]:
        now = self.now()
        return (
            claimed.raw_id,
            claimed.token,
            fields.rq_text(now),
            now.timestamp(),
            self.owner.worker_name(claimed.queue),
            seconds,
        )

    def _execution_keys(self, claimed: Claimed, names: keys.QueueKeys, worker: str) -> tuple[Key, ...]:
        return (
            keys.execution(claimed.raw_id, execution_id(claimed.token)),
            keys.executions(claimed.raw_id),
            names.started,
            keys.worker_executions(worker),
        )

    def _step(self, name: str, script_keys: tuple[Key, ...], args: tuple[Value, ...]) -> Step:
        point = name.replace("_", " ")
        self.delays(f"before {point}")
        answer = Step(self._scripts.call(name, script_keys, args).decode())
        self.delays(f"after {point}")
        return answer


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
