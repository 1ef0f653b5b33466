"""A client's way to Valkey that can be cut: before a command is sent, or before its answer is heard."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import redis

from pidispatch_site import clients

FOR_EVER = 1_000_000


class Loss(StrEnum):
    """What is lost: the command, which is never carried out, or only the answer to it."""

    COMMAND = "command"
    ANSWER = "answer"


class Wire:
    """Counts what goes over it, and loses the `nth` of it (from 0) and those after it, `times` in all."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loss = Loss.COMMAND
        self._losing = range(0)
        self.sent = 0

    def cut(self, loss: Loss, *, nth: int = 0, times: int = 1) -> None:
        """Count anew from here, and lose."""
        self.sent = 0
        self._loss, self._losing = loss, range(nth, nth + times)

    def mend(self) -> None:
        self._losing = range(0)

    @property
    def has_lost(self) -> bool:
        """Whether anything came to be lost since the cut."""
        return len(self._losing) > 0 and self.sent > self._losing.start

    def client(self) -> redis.Redis:
        """Make a client of the product's own kind that uses this wire."""
        made = clients.queue_client(self._url)
        pool = made.connection_pool
        pool.connection_class = _over(self, pool.connection_class)
        return made

    def pass_on(self) -> Loss | None:
        """Tell what becomes of the next command; for the connections."""
        number, self.sent = self.sent, self.sent + 1
        return self._loss if number in self._losing else None


def _over(wire: Wire, connection: type[Any]) -> type[Any]:
    class Connection(connection):
        fate: Loss | None = None

        def send_packed_command(self, *args: Any, **options: Any) -> None:
            self.fate = wire.pass_on()
            if self.fate is Loss.COMMAND:
                self.disconnect()
                raise redis.exceptions.ConnectionError("cut")
            super().send_packed_command(*args, **options)

        def read_response(self, *args: Any, **options: Any) -> Any:
            # Read all the same: what was sent has then been carried out.
            answer = super().read_response(*args, **options)
            if self.fate is Loss.ANSWER:
                self.disconnect()
                raise redis.exceptions.TimeoutError("cut")
            return answer

    return Connection
