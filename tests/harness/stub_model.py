"""A model for real job containers: the stub of the runner's own tests, in a container beside them.

It runs in a network namespace of its own on the engine's default bridge, so a job reaches it by its address
with the network that every job has, wherever the engine is. What it answers is decided by the model id alone
(`SCRIPTS`), how far a job has come by its key: any number of jobs may use it at a time.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CODE = Path(__file__).resolve().parents[2] / "image" / "runner" / "test"

PORT = 8080


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """An answer that calls one tool."""
    return {"calls": [{"name": tool, "arguments": arguments}]}


#: Model id to its answers: the nth request of a key gets the nth, the last one is repeated. See stub.mjs.
SCRIPTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "hello": [{"say": "Hello."}],
    "writes-a-file": [call("write", path="made-by-pi.txt", content="made by pi\n"), {"say": "Done."}],
    "tools-for-ever": [call("bash", command="echo turn >> turns.txt")],
    "fails-once": [{"status": 500}, {"say": "Recovered."}],
    "fails-always": [{"status": 500}],
    "fails-three-times": [{"status": 500}] * 3 + [{"say": "Recovered."}],
    "refuses-the-key": [{"status": 401}],
    "stalls": [{"say": "Let me think", "stall": True}],
    "sleeps-in-a-tool": [call("bash", command="sleep 300")],
    "cut-short": [{"say": "Half a sen", "finish": "length"}],
    "measured": [{"say": "x", "usage": {"prompt": 1000, "cached": 600, "completion": 50, "reasoning": 7}}],
}


class StubModel:
    """The running stub; `close` removes it.

    `engine` is a docker-py client, `image` a job image (for its Node), `folder` an empty one for its records.
    """

    def __init__(self, engine: Any, *, image: str, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        (folder / "scripts.json").write_text(json.dumps(SCRIPTS))
        mounts = {str(CODE): {"bind": "/stub/code", "mode": "ro"}, str(folder): {"bind": "/stub/data"}}
        self._container = engine.containers.create(
            image,
            entrypoint=["node", "/stub/code/stub-main.mjs", "/stub/data"],
            name=f"pi-stub-{secrets.token_hex(6)}",
            user=f"{os.getuid()}:{os.getgid()}",
            volumes=mounts,
            init=True,
            labels={"dev.pi-dispatch.test": "stub-model"},
        )
        self._container.start()
        self.base_url = f"http://{self._address()}:{PORT}/v1"

    def _address(self) -> str:
        deadline = time.monotonic() + 20
        while not (self._folder / "ready").exists():
            self._container.reload()
            if self._container.status == "exited" or time.monotonic() > deadline:
                raise RuntimeError(f"the stub model did not come up: {self._container.logs().decode()}")
            time.sleep(0.05)
        self._container.reload()
        networks = self._container.attrs["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])

    def models_file(self, key: str) -> str:
        """Content of an overlay's models.json: provider `stub`, every scripted model, asked with this key."""
        models = [
            {
                "id": name,
                "contextWindow": 100_000,
                "cost": {"input": 10, "output": 100, "cacheRead": 1, "cacheWrite": 0},
            }
            for name in SCRIPTS
        ]
        provider = {"baseUrl": self.base_url, "api": "openai-completions", "apiKey": key, "models": models}
        return json.dumps({"providers": {"stub": provider}})

    def requests(self, key: str) -> list[dict[str, Any]]:
        """What was asked with this key so far: model, system, tools, messages of each request."""
        file = self._folder / "requests.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [request for request in map(json.loads, lines) if request["key"] == key]

    def close(self) -> None:
        """Remove the stub's container."""
        self._container.remove(force=True)
