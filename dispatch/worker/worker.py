"""The frame of the per-host worker: boot order, threads, shutdown (Q 11). It decides nothing about a job."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import redis

from dispatch.ids import natural_id
from dispatch.instants import instant_of
from dispatch.money.ledger import valkey_now
from dispatch.queue.popper import Popper
from dispatch.queue.promote import Promoter
from dispatch.queue.sweep import Sweeper, Swept
from dispatch.queue.takers import Beats
from dispatch.schedules.stall_guard import StallGuard
from dispatch.worker.daemon import Daemon
from dispatch.worker.duties import Duties
from dispatch.worker.host import Host
from dispatch.worker.loop import PopLoop, pop_until_stopped
from dispatch.worker.outage import Outage
from dispatch.worker.reaping import Reaping, forget_gone
from dispatch.worker.scheduling import Schedules
from dispatch.worker.sight import Sight
from dispatch.worker.waking import Waking
from pidispatch_site import clients, log
from pidispatch_site.clients import VALKEY_FAULTS
from runs.abort import AbortReason
from runs.reaper import Reaped
from runs.recorder import Recorder

_HEAR_SIGNALS_SECONDS = 0.5
# An engine that does not answer is asked again so soon: no job is taken meanwhile.
_BLIND_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the frame keeps going; `retention` removes what is older than the operator keeps."""

    reaping: Reaping
    beats: Beats
    sweeper: Sweeper
    promoter: Promoter
    recorder: Recorder
    waking: Waking
    poppers: tuple[Popper, ...]
    outage: Outage
    sight: Sight
    duties: Duties
    schedules: Schedules | None
    stall_guard: StallGuard
    retention: Callable[[], None]
    started: Callable[[], None]


class Bells:
    """Wires the attempts' news to the threads that act on them; the frame fills it in once those exist."""

    def __init__(self) -> None:
        self.promote: Callable[[], None] = _silence
        self.reap: Callable[[], None] = _silence
        self.publish: Callable[[], None] = _silence


def _silence() -> None:
    """Ring nowhere."""


class Worker:
    """One worker process. The caller holds the host's worker lock for as long as this lives."""

    def __init__(self, host: Host, parts: Parts, *, bells: Bells) -> None:
        self._host = host
        self._parts = parts
        timings = host.timings
        self._tell_unswept, self._tell_others_unswept = (host.unreadable.teller("sweep") for _ in range(2))
        self._stop_asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._boot_error: BaseException | None = None
        self._booting = threading.Thread(target=self._boot_or_stop, name="boot", daemon=True)
        self._recorder_stops = threading.Event()
        self._recorder = threading.Thread(target=self._record, name="recorder", daemon=True)
        self._pops = [
            threading.Thread(
                target=pop_until_stopped, args=(host, PopLoop(host, popper)), name="pop", daemon=True
            )
            for popper in parts.poppers
        ]
        daemon = partial(Daemon, outage=parts.outage)
        promoting = daemon("promote", self._promote, every=timings.promote_every)
        reaping = daemon("reap", self._reap, every=self._reap_pause)
        publishing = daemon("host", parts.duties.registry.publish, every=timings.host_beat_every)
        self._daemons = (
            daemon("beat", self._beat, every=timings.queue.beat_every),
            promoting,
            # Apart: files are followed through an outage of Valkey as well.
            daemon("operator files", self._look, every=timings.look_every),
            daemon("rouse", self._rouse, every=timings.look_every),
            daemon("sweep", self._sweep, every=timings.sweep_every),
            reaping,
            publishing,
            daemon("orders", parts.duties.hear_orders, every=timings.orders_every),
            daemon("upkeep", parts.duties.look_after_others, every=timings.upkeep_every),
            # Apart: a long history may have to be counted first.
            daemon("retention", parts.retention, every=timings.retention_every),
            *self._scheduling(daemon),
        )
        bells.promote, bells.reap, bells.publish = promoting.wake, reaping.wake, publishing.wake

    def _scheduling(self, daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
        """Make what acts on schedules: apart from what keeps them, which may wait for a dead file system."""
        if schedules := self._parts.schedules:
            every = self._host.timings.tick_every
            yield daemon("schedules", schedules.tick, every=every)
            yield daemon("schedule keeper", schedules.keeper.look, every=every)

    def run(self) -> None:
        """Boot, serve until `stop` is called, shut down. What broke the boot is raised after the shutdown."""
        threading.Thread(target=self._await_stop, name="stop", daemon=True).start()
        # In a thread: an engine that is silent during the boot must not hold up a stop.
        self._booting.start()
        # With a limit: the system may hand a signal to another thread (it does to a process that was frozen),
        # and Python runs its handler when this thread wakes.
        while not self._host.stopping.wait(_HEAR_SIGNALS_SECONDS):
            pass
        self._shut_down()
        if self._boot_error is not None:
            raise self._boot_error

    def stop(self) -> None:
        """Ask for the shutdown; safe from a signal handler, which an event's lock is not."""
        self._stop_asked.put(None)

    def _await_stop(self) -> None:
        self._stop_asked.get()
        self._host.stopping.set()

    def _boot_or_stop(self) -> None:
        try:
            self._boot()
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self._boot_error = error
            self._host.stopping.set()

    def _boot(self) -> None:
        """Do what comes before the first pop, in this order, as long as no stop is asked."""
        parts, host = self._parts, self._host
        # Before anything is taken: a container of a killed worker must not meet the next job of its folder.
        reaped = parts.reaping.reap()
        if not self._until_valkey_answers(lambda: self._enter_the_queue(reaped)) or host.stopping.is_set():
            return
        self._recorder.start()
        for daemon in self._daemons:
            daemon.start()
        for thread in self._pops:
            thread.start()
        parts.started()
        # The image is known by now.
        parts.duties.registry.publish()

    def _enter_the_queue(self, reaped: Reaped) -> None:
        clients.require_no_eviction(self._host.client)
        # Before anything is ours by name: another machine may bear it.
        self._parts.duties.enter()
        self._parts.duties.free_claims(reaped)
        self._parts.beats.register()
        self._tell_unswept(self._report(self._parts.sweeper.at_boot(self._host.queues)))
        if schedules := self._parts.schedules:
            schedules.keeper.at_boot()

    def _until_valkey_answers(self, step: Callable[[], None]) -> bool:
        """Do the first step on Valkey; when it is down say so once, wait, and go on when it comes."""
        host, outage = self._host, self._parts.outage
        while not host.stopping.is_set():
            try:
                step()
            except VALKEY_FAULTS as fault:
                outage.faulted(fault)
                host.stopping.wait(host.timings.valkey_retry_max)
            else:
                outage.answered()
                return True
        return False

    def _beat(self) -> None:
        self._parts.beats.beat(self._host.live.begun())
        self._parts.outage.answered()

    def _promote(self) -> None:
        self._parts.promoter.promote(self._host.queues)

    def _look(self) -> None:
        self._host.rules.look()
        if schedules := self._parts.schedules:
            schedules.follow()

    def _rouse(self) -> None:
        self._host.rules.rouse(self._parts.waking, self._valkey_now)

    def _valkey_now(self) -> datetime:
        return instant_of(valkey_now(self._host.client))

    def _sweep(self) -> None:
        """Sweep our queues, then those of others: what stands there keeps nothing of ours waiting."""
        sweeper = self._parts.sweeper
        self._tell_unswept(self._report(sweeper.tick(self._host.queues)))
        others = self._parts.duties.queues_of_others()
        self._tell_others_unswept({**others.unreadable, **self._report(sweeper.tick(others.queues))})

    def _report(self, swept: Swept) -> Mapping[str, str]:
        for rq_id in swept.put_back:
            log.event("job_put_back", jobId=natural_id(rq_id) or rq_id)
        for lost in swept.failed:
            log.event("job_failed", jobId=lost.job_id, attempt=lost.attempt, reason=lost.cause.value)
            self._parts.stall_guard.stalled(lost.job_id, lost.queue)
        if swept.failed:
            self._host.record_pushed()
        return swept.unreadable

    def _reap(self) -> None:
        host = self._host
        reaped = self._parts.reaping.reap()
        # Beside a copy of our state directory, what our engine does not have may run on the other machine.
        if not self._parts.duties.registry.shares_host_id:
            forget_gone(
                host.client, host.owner.host_id, reaped, is_live=host.live.has_container, now=host.utc_now()
            )
            self._parts.duties.free_claims(reaped)

    def _reap_pause(self) -> float:
        every = self._host.timings.reap_every
        return every if self._parts.sight.sees_engine else min(_BLIND_SECONDS, every)

    def _record(self) -> None:
        self._parts.recorder.run(self._recorder_stops, interval_seconds=self._host.timings.record_every)

    def _shut_down(self) -> None:
        """Stop what runs, let the attempts settle, write the last records, leave the lists."""
        host, parts = self._host, self._parts
        deadline = time.monotonic() + host.timings.shutdown_patience
        host.live.abort_all(AbortReason.SHUTDOWN)
        # The pops first: one that was under way may still bring a job, which goes back at once.
        _join((self._booting, *self._pops), deadline)
        if not host.slots.wait_idle(max(0.0, deadline - time.monotonic())):
            log.event("shutdown_incomplete", jobs=host.slots.used)
        host.out_of_patience.set()
        for daemon in self._daemons:
            daemon.stop()
        self._recorder_stops.set()
        parts.recorder.wake()
        threads = [self._recorder, *(daemon.thread for daemon in self._daemons), *self._pops]
        _join(threads, time.monotonic() + host.timings.thread_patience)
        # An unreachable server would only cost the rest of the time.
        if not parts.outage.is_on:
            parts.duties.registry.close()
            if host.slots.used == 0:
                _leave(parts.beats)
        log.event("worker_stopped", jobs=host.slots.used)


def _join(threads: Iterable[threading.Thread], deadline: float) -> None:
    """Wait for the ends of those that were started, all together until `deadline` (monotonic)."""
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, deadline - time.monotonic()))


def _leave(beats: Beats) -> None:
    try:
        beats.unregister()
    except redis.exceptions.RedisError as error:
        # Our beats grow old and our rows in RQ's list end by themselves.
        log.event("valkey_unreachable", error=type(error).__name__)
