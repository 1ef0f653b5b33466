"""What the engine itself saw: an independent witness of every start and end, and of what is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from runs import labels


@dataclass(slots=True, kw_only=True)
class Life:
    """One container of a job: instants are the engine's (epoch seconds), `started` one for each start.

    `token` is the claim that it was created for, `scope` the hash of its folder.
    """

    name: str
    host_id: str
    job_id: str
    token: str
    scope: str
    created: float
    started: list[float]
    died: float | None = None
    destroyed: bool = False


class DeafWitnessError(Exception):
    """The engine's events were not heard to the end: what was seen so far is no evidence."""


class EngineWitness:
    """Listens to the engine's events from the moment it is made; `client` is docker-py's."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lives: dict[str, Life] = {}
        self._lock = threading.Lock()
        self._ended_with: str | None = None
        self._stream = client.api.events(since=int(time.time()), decode=True, filters={"type": "container"})
        self._thread = threading.Thread(target=self._listen, name="engine witness", daemon=True)
        self._thread.start()

    def lives(self, host_ids: Collection[str]) -> list[Life]:
        """The containers of these hosts so far; DeafWitnessError when the events are not heard any more."""
        with self._lock:
            if self._ended_with is not None:
                raise DeafWitnessError(f"the stream of the engine's events ended: {self._ended_with}")
            return [life for life in self._lives.values() if life.host_id in host_ids]

    def left(self, host_ids: Collection[str]) -> list[str]:
        """Names of containers and networks of these hosts that are still there."""
        found = []
        for host_id in host_ids:
            ours = {"label": [f"{labels.HOST}={host_id}"]}
            found += [one["Names"][0] for one in self._client.api.containers(all=True, filters=ours)]
            found += [one["Name"] for one in self._client.api.networks(filters=ours)]
        return found

    def remove(self, host_ids: Collection[str]) -> None:
        """Remove what is left of these hosts: the tests' own clean-up."""
        for host_id in host_ids:
            ours = {"label": [f"{labels.HOST}={host_id}"]}
            for one in self._client.api.containers(all=True, filters=ours):
                self._client.api.remove_container(one["Id"], force=True, v=True)

    def close(self) -> None:
        """Stop listening."""
        self._stream.close()
        self._thread.join(5)

    def _listen(self) -> None:
        try:
            for event in self._stream:
                with self._lock:
                    self._hear(event)
            ended_with = "the engine closed it"
        except Exception as error:  # noqa: BLE001 - a broken stream ends in any of many ways
            ended_with = repr(error)
        with self._lock:
            self._ended_with = ended_with

    def _hear(self, event: dict[str, Any]) -> None:
        attributes, at = event["Actor"]["Attributes"], event["timeNano"] / 1e9
        host_id = attributes.get(labels.HOST)
        if host_id is None:
            return
        life = self._lives.setdefault(
            event["Actor"]["ID"],
            Life(
                name=attributes["name"],
                host_id=host_id,
                job_id=attributes.get(labels.JOB, ""),
                token=attributes.get(labels.ATTEMPT, ""),
                scope=attributes.get(labels.SCOPE, ""),
                created=at,
                started=[],
            ),
        )
        match event["Action"]:
            case "start":
                life.started.append(at)
            case "die":
                life.died = at
            case "destroy":
                life.destroyed = True
