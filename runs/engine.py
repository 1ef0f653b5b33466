"""The container engine (Docker, or Podman's compatible socket): the only module that imports `docker`.

Low-level calls, each with a timeout, each error translated at once: an answer is an answer, everything else
is silence. Nothing here pulls an image, repeats a start or weakens the isolation.

Podman (tried with 4.3.1) answers a taken name with 500 instead of 409, knows a missing network already at
create and makes the missing source of a mount: so a conflict is told by its text as well, and sources are
checked here first. Its filtered event stream stays empty, which only slows the noticing of an end.
"""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, ImageNotFound, NotFound, TLSParameterError
from docker.transport.unixconn import UnixHTTPAdapter, UnixHTTPConnection, UnixHTTPConnectionPool
from docker.utils import kwargs_from_env

from pidispatch_site.errors import ConfigurationError
from runs import engine_answers, engine_requests
from runs.container import ISOLATION, ContainerSpec
from runs.engine_frames import Demultiplexer
from runs.enginestreams import Endings, Log, Stream
from runs.protocols import (
    ContainerFacts,
    EngineAnsweredError,
    EngineNotFoundError,
    EngineSilentError,
    ImageFacts,
    NetworkFacts,
)
from runs.result import TAIL_BYTES

_SETTINGS = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")

#: More than the calls in flight of any host; a connection beyond it is made and thrown away.
_POOL = 64

#: Frames of at most 16 KiB each: what the engine reads from the end of a log, whatever was printed.
_TAIL_FRAMES = 100

#: What a gateway in front of an engine says when the engine itself did not answer.
_GATEWAY = frozenset({502, 504})

_CONFLICT = 409

#: What the first question, the one for the engine's own version, is asked in; docker-py refuses less than it.
_LEAST_VERSION = "1.24"

#: Only connecting can fail by these.
_NO_CONNECTION = (
    ConnectionRefusedError,
    FileNotFoundError,
    PermissionError,
    urllib3.exceptions.NewConnectionError,
    requests.ConnectTimeout,
)

#: Everything by which docker-py and what it stands on say that there was no usable answer. A broken body is
#: a ValueError.
_SILENCE = (DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError)


class _Connection(UnixHTTPConnection):  # type: ignore[misc] # docker-py has no types
    """Closes what could not connect; docker-py leaves that to the garbage collector."""

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self.unix_socket)
        except OSError:
            sock.close()
            raise
        self.sock = sock


class _Pool(UnixHTTPConnectionPool):  # type: ignore[misc]
    def _new_conn(self) -> _Connection:
        return _Connection(self.base_url, self.socket_path, self.timeout)


class _OnePool(UnixHTTPAdapter):  # type: ignore[misc]
    """One pool of connections for all URLs.

    docker-py keeps one for each, so that no connection is ever used again while 25 lie idle, and closes the
    eldest even under a thread that is about to use it. urllib3's own pools are safe to share.
    """

    def __init__(self, socket_path: str, seconds: float) -> None:
        super().__init__(f"http+unix://{socket_path}", seconds)
        self._pool = _Pool("http+docker://localhost", socket_path, seconds, maxsize=_POOL)

    def get_connection(self, url: str, proxies: Any = None) -> _Pool:
        del url, proxies
        return self._pool

    def close(self) -> None:
        self._pool.close()


def _address(environment: Mapping[str, str]) -> dict[str, Any]:
    """Read where the engine is; ConfigurationError for certificates that are not what they should be."""
    try:
        return dict(kwargs_from_env(environment={name: environment.get(name, "") for name in _SETTINGS}))
    except TLSParameterError as error:
        raise ConfigurationError(
            "DOCKER_TLS_VERIFY or DOCKER_CERT_PATH asks for an encrypted connection to the engine, and its"
            f" certificates cannot be used ({str(error).partition(chr(10))[0][:200]}). DOCKER_CERT_PATH must"
            " name a folder with ca.pem, cert.pem and key.pem; without encryption unset both."
        ) from error


class Engine:
    """One engine for every thread of the process.

    `environment` is where DOCKER_HOST and its certificates are looked up. `quick_seconds` bounds questions,
    `slow_seconds` what changes something. `memory_bytes` exists for tests that let a job run out of it.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        memory_bytes: int = ISOLATION.memory_bytes,
        quick_seconds: float = 10.0,
        slow_seconds: float = 60.0,
    ) -> None:
        # Never an empty mapping: docker-py would take the process's own environment instead.
        self._address = _address(environment)
        self._isolation = replace(ISOLATION, memory_bytes=memory_bytes, memory_and_swap_bytes=memory_bytes)
        self._seconds = (quick_seconds, slow_seconds)
        self._lock = threading.Lock()
        self._clients: tuple[docker.APIClient, docker.APIClient] | None = None

    def close(self) -> None:
        """Close the idle connections; a later call opens new ones."""
        with self._lock:
            clients, self._clients = self._clients, None
        for client in clients or ():
            client.close()

    def ping(self) -> None:
        """Return when the engine answers."""
        with _asking():
            self._quick.ping()

    def image(self, reference: str) -> ImageFacts | None:
        """Facts of a local image; None when the engine is there and does not have it."""
        try:
            with _asking():
                return engine_answers.inspected_image(self._quick.inspect_image(reference))
        except EngineNotFoundError:
            return None
        except EngineSilentError as error:
            if not isinstance(error.__cause__, APIError):
                raise
        # It answered with another error than 404. Whoever answers a ping is not silent: the image is missing.
        self.ping()
        return None

    def create(self, spec: ContainerSpec) -> str:
        """Create the container and return its id."""
        if not all(Path(mount.source).exists() for mount in spec.mounts):
            raise EngineAnsweredError("mount-source-missing")
        body = engine_requests.creation_body(spec, self._isolation)
        with _demanding():
            return str(self._slow.create_container_from_config(body, spec.name)["Id"])

    def start(self, container: str) -> None:
        """Start it; the caller asks once."""
        with _demanding():
            self._slow.start(container)

    def inspect(self, container: str) -> ContainerFacts:
        """One container by id or exact name."""
        with _asking():
            return engine_answers.inspected_container(self._quick.inspect_container(container))

    def listing(self, labels: Mapping[str, str]) -> list[ContainerFacts]:
        """Containers of any state that carry all of `labels`."""
        with _asking():
            answers = self._quick.containers(
                all=True, filters={"label": engine_requests.label_filter(labels)}
            )
            return [engine_answers.listed_container(answer) for answer in answers]

    def changes(self, labels: Mapping[str, str]) -> Endings:
        """Listen for containers that end."""
        kinds = {"type": ["container"], "event": ["die"], "label": engine_requests.label_filter(labels)}
        return Endings(self._open("/events", {"filters": json.dumps(kinds)}, endless=True))

    def tail(self, container: str) -> bytes:
        """Read the last 8 KiB of its output; the engine reads at most some 1.6 MB for it."""
        frames = Demultiplexer()
        tail = b""
        output = self._open(_logs(container), {"stdout": 1, "stderr": 1, "tail": _TAIL_FRAMES}, endless=False)
        try:
            while data := output.read():
                tail = (tail + frames.feed(data))[-TAIL_BYTES:]
        finally:
            output.close()
        return tail

    def follow(self, container: str) -> Log:
        """Its output from the first byte on. Never `attach`: that would let a slow reader block the job."""
        return Log(self._open(_logs(container), {"stdout": 1, "stderr": 1, "follow": 1}, endless=True))

    def stop(self, container: str, *, grace_seconds: int) -> None:
        """SIGTERM, then SIGKILL; docker-py gives the grace on top of the timeout of a question."""
        with suppress(EngineNotFoundError), _asking():
            self._quick.stop(container, timeout=grace_seconds)

    def discard(self, container: str) -> bool:
        """Remove it unless it is running: the engine refuses that by itself, under its own lock."""
        try:
            with suppress(EngineNotFoundError), _asking():
                self._slow.remove_container(container, v=True, force=False)
        except EngineSilentError as error:
            # Docker says 409 for it, Podman 500; what is the matter, the inspection tells.
            if isinstance(error.__cause__, APIError):
                facts = self.inspect(container)
                if not facts.ended and facts.status != "created":
                    return False
            raise
        return True

    def remove(self, container: str) -> None:
        """Remove it by force, with its anonymous volumes."""
        with suppress(EngineNotFoundError), _asking():
            self._slow.remove_container(container, v=True, force=True)

    def networks(self, labels: Mapping[str, str]) -> list[NetworkFacts]:
        """Networks that carry all of `labels`; a listing does not tell what is attached, so each is asked."""
        found = []
        with _asking():
            for answer in self._quick.networks(filters={"label": engine_requests.label_filter(labels)}):
                with suppress(NotFound):
                    found.append(engine_answers.inspected_network(self._quick.inspect_network(answer["Id"])))
        return found

    def remove_network(self, network: str) -> None:
        """Detach what is on it, then remove it: the engine refuses to remove one in use."""
        with suppress(EngineNotFoundError), _asking():
            for container in self._quick.inspect_network(network).get("Containers") or {}:
                with suppress(NotFound):
                    self._slow.disconnect_container_from_network(container, network, force=True)
            self._slow.remove_network(network)

    def import_image(self, layer: bytes, reference: str, changes: Sequence[str]) -> None:
        """Make an image of one tar and the instructions in `changes`; only the demo makes images."""
        repository, _, tag = reference.partition(":")
        with _demanding():
            self._slow.import_image_from_data(layer, repository=repository, tag=tag, changes=list(changes))

    def build_image(self, context: bytes, reference: str) -> None:
        """Build a tar with a Dockerfile; the engine itself fetches a base that it does not have."""
        with _demanding():
            steps = self._slow.build(
                fileobj=io.BytesIO(context), custom_context=True, tag=reference, rm=True, decode=True
            )
            if any("error" in step for step in steps):
                raise EngineAnsweredError("image-build-failed")

    @property
    def _quick(self) -> docker.APIClient:
        return self._connected()[0]

    @property
    def _slow(self) -> docker.APIClient:
        return self._connected()[1]

    def _connected(self) -> tuple[docker.APIClient, docker.APIClient]:
        with self._lock:
            if self._clients is None:
                try:
                    self._clients = self._connect()
                except _SILENCE as error:
                    # Only the version was asked for: whatever was to follow has not been sent.
                    raise EngineSilentError(_token(error), unreachable=True) from error
            return self._clients

    def _connect(self) -> tuple[docker.APIClient, docker.APIClient]:
        quick_seconds, slow_seconds = self._seconds
        with _client(self._address, version=_LEAST_VERSION, seconds=quick_seconds) as anybody:
            version = anybody.version(api_version=False).get("ApiVersion") or _LEAST_VERSION
        quick = _client(self._address, version=version, seconds=quick_seconds)
        slow = _client(self._address, version=version, seconds=slow_seconds)
        # A connection of its own for each: one that the engine has just closed would make an outcome unknown.
        slow.headers["Connection"] = "close"
        return quick, slow

    def _open(self, path: str, parameters: Mapping[str, Any], *, endless: bool) -> Stream:
        with _asking():
            client = self._quick
            response = client.get(
                f"{client.base_url}/v{client.api_version}{path}",
                params=dict(parameters),
                stream=True,
                timeout=client.timeout,
            )
            if not response.ok:
                response.close()
                if response.status_code == requests.codes["not_found"]:
                    raise NotFound("no such container")
                response.raise_for_status()
            sock = getattr(response.raw.connection, "sock", None)
            if endless and sock is not None:
                # A container may be quiet for long.
                sock.settimeout(None)
            return Stream(response)


def _client(address: Mapping[str, Any], *, version: str, seconds: float) -> docker.APIClient:
    client = docker.APIClient(**address, version=version, timeout=seconds, max_pool_size=_POOL)
    # No proxy and no netrc of the worker's environment between us and the engine.
    client.trust_env = False
    adapter = client.get_adapter(client.base_url)
    if isinstance(adapter, UnixHTTPAdapter):
        client.mount("http+docker://", _OnePool(adapter.socket_path, seconds))
    return client


@contextmanager
def _asking() -> Iterator[None]:
    """Translate the errors of a question: not found is an answer, any other error is none."""
    try:
        yield
    except NotFound as error:
        raise EngineNotFoundError from error
    except _SILENCE as error:
        raise EngineSilentError(_token(error), unreachable=_never_connected(error)) from error


@contextmanager
def _demanding() -> Iterator[None]:
    """Translate the errors of create and start: any error that is an answer means that it did not happen."""
    try:
        yield
    except APIError as error:
        if error.status_code is None or error.status_code in _GATEWAY:
            raise EngineSilentError(_token(error)) from error
        conflict = error.status_code == _CONFLICT or "already in use" in str(error.explanation)
        token = "image-missing" if isinstance(error, ImageNotFound) else _token(error)
        raise EngineAnsweredError(token, conflict=conflict) from error
    except _SILENCE as error:
        raise EngineSilentError(_token(error), unreachable=_never_connected(error)) from error


def _token(error: Exception) -> str:
    if isinstance(error, APIError):
        return f"engine-{error.status_code}"
    if isinstance(error, requests.Timeout):
        return "engine-timeout"
    return "engine-unreachable" if _never_connected(error) else "engine-connection-lost"


def _never_connected(error: BaseException | None) -> bool:
    """Whether no connection came about; looks into what requests and urllib3 wrap, where they put it."""
    if error is None:
        return False
    if isinstance(error, _NO_CONNECTION):
        return True
    inner = [error.__cause__, getattr(error, "reason", None), *error.args]
    return any(_never_connected(one) for one in inner if isinstance(one, BaseException))


def _logs(container: str) -> str:
    return f"/containers/{quote(container, safe='')}/logs"
