"""The engine API's own formats: the body of a create, what an answer says, how a log is framed.

Pure; `runs.engine` does the talking. Docker's API as of 1.41, which Podman speaks as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runs.container import ContainerSpec, Isolation
from runs.protocols import ENDED, ContainerFacts, ImageFacts, NetworkFacts

PI_VERSION = "dev.pi-dispatch.pi-version"
FORGES = "dev.pi-dispatch.forges"
CAPABILITIES = "dev.pi-dispatch.capabilities"

_FRAME_HEADER = 8


def creation_body(spec: ContainerSpec, isolation: Isolation) -> dict[str, Any]:
    """Write down what is asked of the engine for one job (E 1.1 as amended by contracts 6).

    Complete on purpose: what stands here is what a test compares with the inspection of a running job. No
    port, device, capability, restart or removal by the engine; `Mounts` instead of `Binds`, which would make
    a missing source as root.
    """
    body: dict[str, Any] = {
        "Image": spec.image,
        "Env": [f"{name}={value}" for name, value in spec.environment.items()],
        "Labels": dict(spec.labels),
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": {
            "AutoRemove": False,
            "Init": isolation.init,
            "Privileged": False,
            "CapDrop": list(isolation.drop_capabilities),
            "SecurityOpt": list(isolation.security_options),
            "PidsLimit": isolation.processes,
            "ShmSize": isolation.shared_memory_bytes,
            "Memory": isolation.memory_bytes,
            "MemorySwap": isolation.memory_and_swap_bytes,
            "NanoCpus": isolation.nano_cpus,
            "PublishAllPorts": False,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": isolation.log_driver, "Config": dict(isolation.log_options)},
            "Mounts": [
                {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}
                for mount in spec.mounts
            ],
        },
    }
    if spec.user is not None:
        body["User"] = spec.user
    return body


def inspected_container(answer: Mapping[str, Any]) -> ContainerFacts:
    """Read the inspection of one container; a code counts only once it has ended."""
    state = answer["State"]
    ended = state["Status"] in ENDED
    return ContainerFacts(
        id=answer["Id"],
        name=answer["Name"].removeprefix("/"),
        status=state["Status"],
        labels=answer["Config"].get("Labels") or {},
        exit_code=int(state["ExitCode"]) if ended else None,
        oom_killed=ended and bool(state.get("OOMKilled")),
    )


def listed_container(answer: Mapping[str, Any]) -> ContainerFacts:
    """Read one line of a listing; of several names (links) its own is the one without a further slash."""
    names = [name.removeprefix("/") for name in answer.get("Names") or ()]
    own = [name for name in names if "/" not in name]
    return ContainerFacts(
        id=answer["Id"],
        name=(own or names or [""])[0],
        status=answer["State"],
        labels=answer.get("Labels") or {},
    )


def inspected_network(answer: Mapping[str, Any]) -> NetworkFacts:
    """Read the inspection of one network."""
    attached = (answer.get("Containers") or {}).values()
    return NetworkFacts(
        id=answer["Id"],
        name=answer["Name"],
        labels=answer.get("Labels") or {},
        attached=tuple(sorted(endpoint.get("Name", "") for endpoint in attached)),
    )


def inspected_image(answer: Mapping[str, Any]) -> ImageFacts:
    """Read the inspection of one image; an empty or blank label counts as absent (E 2.1)."""
    config = answer.get("Config") or {}
    labels = config.get("Labels") or {}
    version = (labels.get(PI_VERSION) or "").strip()
    return ImageFacts(
        id=answer["Id"],
        pi_version=version or None,
        forges=_words(labels.get(FORGES)),
        capabilities=_words(labels.get(CAPABILITIES)),
        user=config.get("User") or "",
    )


def _words(label: str | None) -> frozenset[str] | None:
    words = frozenset(word.strip() for word in (label or "").split(",") if word.strip())
    return words or None


def label_filter(labels: Mapping[str, str]) -> list[str]:
    """Labels as the engine's filter takes them; all must match."""
    return [f"{label}={value}" for label, value in labels.items()]


class Demultiplexer:
    """Takes the frames apart in which the engine sends stdout and stderr of a container without a terminal.

    A frame is one byte of stream, three of nothing, four of length (big endian) and the payload, at most
    16 KiB of it. Keeps no payload, only an unfinished header.
    """

    def __init__(self) -> None:
        self._header = b""
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """Return the payload in `data`, both streams in the order in which they came."""
        return b"".join(self._payloads(memoryview(data)))

    def _payloads(self, data: memoryview) -> Iterable[memoryview]:
        while data:
            if self._left:
                yield data[: self._left]
                taken = min(self._left, len(data))
                self._left -= taken
            else:
                taken = min(_FRAME_HEADER - len(self._header), len(data))
                self._header += bytes(data[:taken])
                if len(self._header) == _FRAME_HEADER:
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header = b""
            data = data[taken:]
