"""Where things stand in the state directory, and how something private is made there (contracts 1)."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pidispatch_site.errors import OperationalError

_PRIVATE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The names of everything that one host keeps; naming makes nothing, `made` makes the directory."""

    path: Path

    def made(self) -> StateDirectory:
        """Make sure that it exists with mode 0700; `OperationalError` when that cannot be."""
        make_private(self.path)
        return self

    @property
    def worker_lock(self) -> Path:
        """Held (flock) by the one worker of this directory."""
        return self.path / "worker.lock"

    @property
    def host_id_file(self) -> Path:
        """The random id of this host."""
        return self.path / "host-id"

    @property
    def db(self) -> Path:
        """The SQLite database, unless DATABASE_URL says otherwise."""
        return self.path / "db.sqlite3"

    @property
    def secret_key(self) -> Path:
        """The key that signs sessions and login links."""
        return self.path / "secret_key"

    @property
    def valkey_dir(self) -> Path:
        """Everything of the embedded server."""
        return self.path / "valkey"


def keep_files_private() -> None:
    """Have every file that this process makes from now on be its owner's alone; what must not be says so."""
    os.umask(_OTHERS)


def make_private(path: Path) -> None:
    """Make a directory that only its owner can enter, and its parents; `OperationalError` if that cannot be.

    A directory that others can enter is tightened while it is empty. One that holds something is refused
    instead: it may be a shared place such as /tmp, named by mistake.
    """
    try:
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if path.stat().st_mode & _OTHERS:
            if any(path.iterdir()):
                raise OperationalError(
                    f"The directory {path} is open to other users and holds files already. "
                    f"If it is meant to be this product's own: chmod 700 {path}",
                )
            path.chmod(_PRIVATE)
    except OSError as exc:
        raise OperationalError(
            f"The directory {path} cannot be made private: {exc.strerror}. "
            "Give PI_STATE_DIR a directory that this user owns.",
        ) from exc


def private_file(path: Path) -> Path:
    """Make the file, empty and its owner's alone, if it is not there; `OSError` when that cannot be.

    One that is there is not even opened: closing it again would drop this process's locks on it.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return path


def made_once(path: Path, make: Callable[[], str]) -> str:
    """Read the text of a private file that the first who asks makes whole and that never changes.

    Any number of processes may ask at once: all get the same text. `OperationalError` when it cannot be kept.
    """
    try:
        with contextlib.suppress(FileNotFoundError):
            return path.read_text(encoding="ascii")
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(make())
                file.flush()
                os.fsync(file.fileno())
            # A link appears complete or not at all, and only for the first.
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            Path(temporary).unlink()
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise OperationalError(f"The file {path} cannot be kept: {reason}.") from exc
