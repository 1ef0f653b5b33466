"""The pop loop of one queue: a slot, then a job, then a thread for it.

A slot is taken first and the pop does not wait; only an empty queue is waited on, without a slot, so that an
idle queue never starves another. What comes out without a slot goes back to the front.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from redis.exceptions import ResponseError

from dispatch.ids import natural_id
from dispatch.queue.patient import GaveUpError
from dispatch.queue.popper import Claimed, Dropped, Empty, Paused, Popped, Popper
from dispatch.worker.attempt import attempt
from dispatch.worker.host import Host
from dispatch.worker.patience import patiently
from hosts.faults import token_of
from pidispatch_site import log
from pidispatch_site.clients import VALKEY_FAULTS

_NO_THREAD_SECONDS = 1.0
_REFUSED_SECONDS = 1.0


class PopLoop:
    """Feeds the host with the jobs of one queue, until the host is stopping."""

    def __init__(
        self, host: Host, popper: Popper, *, work: Callable[[Host, Claimed], None] = attempt
    ) -> None:
        self._host = host
        self._popper = popper
        self._work = work
        self._tell_unreadable = host.unreadable.teller("pop")

    def step(self) -> None:
        """Take one job and start it, or wait a moment for one; a fault of Valkey goes through.

        While every slot is taken it waits for its turn to have one, whatever else the worker drains.
        """
        host = self._host
        if not host.may_take():
            # Each job that we took now would lose an attempt, or run beside those of our double.
            host.stopping.wait(host.timings.pause_recheck)
            return
        if not host.slots.take(stop=host.stopping.is_set):
            return
        if not host.may_take():
            # What freed the slot may be a job that its engine has ended.
            host.slots.give_back()
            return
        popped = self._use_slot(self._popper.pop)
        self._tell_unreadable({})
        if isinstance(popped, Empty):
            self._wait()
        else:
            self._look(popped)

    def refused(self, fault: ResponseError) -> None:
        """Hear that the server refused a step: some key of this queue is not ours. Wait a moment."""
        self._tell_unreadable({self._popper.queue: token_of(fault)})
        self._host.stopping.wait(_REFUSED_SECONDS)

    def _wait(self) -> None:
        """Wait for a job without a slot; one that comes when none is free goes back to the front."""
        host = self._host
        popped = self._popper.wait(host.timings.pop_block)
        if not isinstance(popped, Claimed):
            self._look(popped)
        elif host.stopping.is_set() or not host.may_take() or not host.slots.try_take():
            self._give_back(popped)
        else:
            self._use_slot(lambda: popped)

    def _look(self, popped: Popped) -> None:
        match popped:
            case Paused():
                self._host.stopping.wait(self._host.timings.pause_recheck)
            case Dropped(rq_id=rq_id):
                log.event("job_dropped", jobId=natural_id(rq_id) or rq_id)
            case Claimed() | Empty():
                pass

    def _use_slot(self, take: Callable[[], Popped]) -> Popped:
        """Spend the slot that was just taken on the job that comes, or give it back, whatever happens."""
        started = False
        try:
            popped = take()
            started = isinstance(popped, Claimed) and self._start(popped)
            return popped
        finally:
            if not started:
                self._host.slots.give_back()

    def _start(self, claimed: Claimed) -> bool:
        """Hand job and slot to a thread; False, with the job back in the queue, when none can be had."""
        thread = threading.Thread(
            target=self._run, args=(claimed,), name=f"attempt {claimed.rq_id}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            log.event("attempt_thread_refused", jobId=claimed.job_id, error=type(error).__name__)
            self._give_back(claimed)
            # The machine is out of threads: asking again at once would only spin.
            self._host.stopping.wait(_NO_THREAD_SECONDS)
            return False
        return True

    def _run(self, claimed: Claimed) -> None:
        try:
            self._work(self._host, claimed)
        finally:
            self._host.slots.give_back()

    def _give_back(self, claimed: Claimed) -> None:
        try:
            patiently(self._host, lambda: self._host.transitions.give_back(claimed))
        except GaveUpError:
            log.event("job_left_behind", jobId=claimed.job_id)


def pop_until_stopped(host: Host, loop: PopLoop) -> None:
    """Repeat the loop's step; through an outage less often, saying so once. A thread's body."""
    faults = 0
    while not host.stopping.is_set():
        try:
            loop.step()
        except VALKEY_FAULTS as fault:
            host.valkey_faulted(fault)
            faults += 1
            host.stopping.wait(min(host.timings.valkey_retry_max, 0.05 * 2 ** min(faults, 10)))
        except ResponseError as fault:
            loop.refused(fault)
        except Exception as error:  # noqa: BLE001 - a dead pop loop would look alive and take nothing
            log.event("worker_thread_error", thread="pop", error=type(error).__name__)
            host.stopping.wait(1)
        else:
            faults = 0
