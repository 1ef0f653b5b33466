"""Saying once that a queue's keys are not all ours, and once that they are again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Set

from pidispatch_site import log


class UnreadableQueues:
    """The queues of which some part of the worker met what it cannot read. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tellers: Counter[str] = Counter()

    def teller(self, part: str) -> Callable[[Mapping[str, str]], None]:
        """Make the ear of one part, by its name in the event.

        It is told after each of its rounds all queues that it could not read whole, each with the token of
        why. A queue is news when the first part meets it, and again when the last one no longer does.
        """
        before: Set[str] = frozenset()

        def tell(unreadable: Mapping[str, str]) -> None:
            nonlocal before
            with self._lock:
                new, gone = unreadable.keys() - before, before - unreadable.keys()
                before = frozenset(unreadable)
                self._tellers.update(new)
                self._tellers.subtract(gone)
                first = [queue for queue in sorted(new) if self._tellers[queue] == 1]
                last = [queue for queue in sorted(gone) if not self._tellers[queue]]
                for queue in last:
                    del self._tellers[queue]
            for queue in first:
                log.event("queue_unreadable", queue=queue, part=part, reason=unreadable[queue])
            for queue in last:
                log.event("queue_readable", queue=queue)

        return tell
