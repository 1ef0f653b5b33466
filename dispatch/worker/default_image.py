"""The image of jobs that name none, as the engine shows it at boot: for the log and for the fleet."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from runs.protocols import Backend, EngineSilentError, ImageFacts


class DefaultImage:
    """What is known of it; blank until `look` has seen it, and where the engine does not show it."""

    def __init__(self, backend: Backend, reference: str) -> None:
        self._backend = backend
        self.reference = reference
        self._facts: ImageFacts | None = None

    @property
    def digest(self) -> str | None:
        """Its content's digest."""
        return self._facts.id if self._facts else None

    @property
    def pi_version(self) -> str | None:
        """The version of pi that it declares."""
        return self._facts.pi_version if self._facts else None

    def look(self, *, seconds: float) -> None:
        """Ask the engine, so long at most: its own limits add up to more than a boot may wait (Q 11.1)."""
        asked: Future[ImageFacts | None] = Future()

        def ask() -> None:
            try:
                asked.set_result(self._backend.image(self.reference))
            except Exception as error:  # noqa: BLE001 - raised again below
                asked.set_exception(error)

        threading.Thread(target=ask, name="image", daemon=True).start()
        try:
            self._facts = asked.result(timeout=seconds)
        except (EngineSilentError, TimeoutError):
            self._facts = None
