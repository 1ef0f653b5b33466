"""Notices that a container has ended: one listing for all runs of the process, hurried on by engine news.

A ring is a hint to look, never a fact: the run inspects its container itself. News come within milliseconds
but may be late, missing or over without a word, so the listing goes on beside them; while none come at all
it is asked more often.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pidispatch_site.log import event
from runs.protocols import Backend, Changes, EngineSilentError


class Watcher:
    """Rings for each watched container that may have ended; nothing is asked while none is watched.

    `labels` select this process's containers (host-id and boot). `listened_seconds` is the time between
    listings while news are known to come, `deaf_seconds` while they are not. Two daemon threads, started by
    the first `watch`.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        labels: Mapping[str, str],
        listened_seconds: float = 1.0,
        deaf_seconds: float = 0.2,
    ) -> None:
        self._backend = backend
        self._labels = dict(labels)
        self._listened_seconds = listened_seconds
        self._deaf_seconds = deaf_seconds
        self._changed = threading.Condition()
        self._bells: dict[str, Callable[[], None]] = {}
        self._news: Changes | None = None
        self._hearing = False
        self._silent = False
        self._threads: list[threading.Thread] = []
        self._closed = False

    def watch(self, container: str, ring: Callable[[], None]) -> None:
        """Have `ring` called whenever the container of this id may have ended; it must not block."""
        with self._changed:
            self._bells[container] = ring
            if not self._threads and not self._closed:
                self._threads = [
                    self._thread("listing", self._list_on),
                    self._thread("news", self._listen_on),
                ]
            self._changed.notify_all()

    def forget(self, container: str) -> None:
        """Stop watching it; unknown ones are fine."""
        with self._changed:
            self._bells.pop(container, None)

    def close(self) -> None:
        """End the threads, at the latest when the engine has answered the question that is under way."""
        with self._changed:
            self._closed = True
            news = self._news
            self._changed.notify_all()
        if news is not None:
            news.close()

    def _thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name=f"watcher-{name}", daemon=True)
        thread.start()
        return thread

    def _someone_to_watch(self) -> bool:
        """Block until a container is watched; false when the watcher was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._bells or self._closed)
            return not self._closed

    def _list_on(self) -> None:
        while self._someone_to_watch():
            with self._changed:
                self._changed.wait_for(lambda: self._closed, self._interval())
            try:
                self._list_once()
                self._say(silent=False)
            except EngineSilentError as error:
                self._say(silent=True, kind=error.token)
            except Exception as error:  # noqa: BLE001 - without this thread no run would ever end
                event("watcher_fault", kind=type(error).__name__)

    def _say(self, *, silent: bool, kind: str | None = None) -> None:
        """Log once that the engine went silent, once that it is back."""
        if silent != self._silent:
            self._silent = silent
            event("engine_silent" if silent else "engine_back", kind=kind)

    def _interval(self) -> float:
        return self._listened_seconds if self._hearing else self._deaf_seconds

    def _list_once(self) -> None:
        with self._changed:
            watched = dict(self._bells)
        if not watched:
            return
        going = {facts.id for facts in self._backend.listing(self._labels) if not facts.ended}
        # One that was watched before the listing and is not in it has ended or is gone.
        ended = [ring for container, ring in watched.items() if container not in going]
        if ended:
            # News of it would have come first. Until they do come again, look often.
            self._hearing = False
        for ring in ended:
            ring()

    def _listen_on(self) -> None:
        while self._someone_to_watch():
            try:
                self._listen()
            except EngineSilentError:
                pass
            except Exception as error:  # noqa: BLE001 - news are a convenience, their loss ends nothing
                event("watcher_fault", kind=type(error).__name__)
            self._hearing = False
            with self._changed:
                self._changed.wait_for(lambda: self._closed, self._listened_seconds)

    def _listen(self) -> None:
        news = self._backend.changes(self._labels)
        with self._changed:
            self._news = news
            closed = self._closed
        try:
            # Closed while the connection was being made: nobody else will end it.
            for container in () if closed else news:
                self._hearing = True
                with self._changed:
                    ring = self._bells.get(container)
                if ring is not None:
                    ring()
        finally:
            news.close()
