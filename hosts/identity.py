"""Who this host is: the id of its state directory, the id of each boot, and the lock of its one worker."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from pathlib import Path
from types import TracebackType
from typing import Self

from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory, made_once

__all__ = ["StateDirectory", "WorkerLock", "host_id", "host_of", "new_boot"]

_HOST_ID = re.compile(r"[0-9a-f]{16}")
_BOOT = re.compile(r"([0-9a-f]{16})-[0-9a-f]{8}")


def host_id(state_dir: Path) -> str:
    """Read the id of this state directory, 16 hex digits, made by the first who asks and never changed.

    `OperationalError` when the file cannot be kept or holds something else: containers, records and boots
    carry the id, so that a new one would disown them.
    """
    state = StateDirectory(state_dir).made()
    found = made_once(state.host_id_file, lambda: secrets.token_hex(8))
    if not _HOST_ID.fullmatch(found):
        raise OperationalError(
            f"The file {state.host_id_file} does not hold 16 hexadecimal digits. Restore it from a backup; "
            "remove it only when no worker of this directory has jobs or containers left.",
        )
    return found


def new_boot(host: str) -> str:
    """Make the id of one start of a worker: `<host-id>-<8 hex>`, from which everybody knows the host."""
    return f"{host}-{secrets.token_hex(4)}"


def host_of(boot: str) -> str | None:
    """Tell the host-id of a boot id; None for a text that is no boot id (it comes from a shared server)."""
    match = _BOOT.fullmatch(boot)
    return match[1] if match else None


class WorkerLock:
    """Held by the one worker of a state directory; the kernel frees it however that worker ends.

    Whoever holds it knows that every older boot of this host is dead.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state = StateDirectory(state_dir)
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take the lock at once; `OperationalError` when another worker has it."""
        path = self._state.made().worker_lock
        # Not inherited by children: a container client or a server that outlives us must not keep it.
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise OperationalError(f"The lock {path} cannot be opened: {exc.strerror}.") from exc
        try:
            self._lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            owner = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            whose = f" (process {owner})" if owner.isdigit() else ""
            raise OperationalError(
                f"A worker of {self._state.path} is running already{whose}; there is one worker a host.",
            ) from exc
        except OSError as exc:
            raise OperationalError(
                f"The lock {self._state.worker_lock} cannot be taken: {exc.strerror}. "
                "Give PI_STATE_DIR a directory on a local disk.",
            ) from exc
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Free the lock. The file stays: removing it would let two workers lock two files of one name."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
