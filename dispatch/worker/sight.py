"""What this host cannot see: its engine, in which case it takes no job, or Valkey. Told to the fleet."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dispatch.worker.outage import Outage
from pidispatch_site import log

ENGINE, VALKEY = "engine", "valkey"


class Sight:
    """Hears whether the engine answers, from any thread, and says so once when that changes.

    `look_again` is rung when somebody met a silent engine: whoever asks it tells us what it says. `changed`
    is rung when the fleet should hear of a change at once.
    """

    def __init__(
        self,
        outage: Outage,
        *,
        look_again: Callable[[], object],
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        self._outage = outage
        self._look_again = look_again
        self._changed = changed
        self._lock = threading.Lock()
        self._sees_engine = True

    @property
    def sees_engine(self) -> bool:
        """Whether the engine answered when it was last asked for all our containers."""
        return self._sees_engine

    def engine_answered(self, answered: bool) -> None:  # noqa: FBT001 - it is the news itself
        """Note whether it listed our containers just now."""
        with self._lock:
            did, self._sees_engine = self._sees_engine, answered
        if did and not answered:
            log.event("host_blind", what=ENGINE)
        elif answered and not did:
            log.event("host_sees_again", what=ENGINE)
        if did != answered:
            self._changed()

    def engine_was_silent(self) -> None:
        """Hear that a job met a silent engine: it is asked again at once, before the next job meets it."""
        self._look_again()

    def blind(self) -> str:
        """Name what this host cannot see, or could not a moment ago, as its row in the registry does."""
        words = [] if self._sees_engine else [ENGINE]
        if self._outage.was_long_and_is_recent:
            words.append(VALKEY)
        return ",".join(words)
