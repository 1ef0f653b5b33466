"""Commands that an idle worker sends to Valkey, a second; those inside a script are the server's own."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import redis

from tests.bench import product
from tests.bench.report import report
from tests.bench.server import valkey

SECONDS = 30


def bench(keys: tuple[str, ...]) -> None:
    with valkey() as url, tempfile.TemporaryDirectory(prefix="pd-bench-") as home:
        client = redis.Redis.from_url(url)
        sent = 0
        over = threading.Event()
        running = product.running(Path(home) / "state", url, concurrency=4, null=True)
        with running, client.monitor() as monitor:
            deadline = time.monotonic() + SECONDS
            # The monitor blocks between commands; a ping of ours ends the last wait.
            pinger = threading.Thread(target=_ping_until, args=(url, over))
            pinger.start()
            while time.monotonic() < deadline:
                command = monitor.next_command()
                if command["client_type"] != "lua" and not command["command"].startswith(("PING", "CLIENT")):
                    sent += 1
            over.set()
            pinger.join()
    report(*keys, ours=sent / SECONDS, peer=None)


def _ping_until(url: str, over: threading.Event) -> None:
    client = redis.Redis.from_url(url)
    while not over.wait(0.5):
        client.ping()
