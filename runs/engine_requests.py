"""What is asked of the engine: the body of a create, and a filter by labels (Docker's API as of 1.41)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.container import ContainerSpec, Isolation


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


def label_filter(labels: Mapping[str, str]) -> list[str]:
    """Labels as the engine's filter takes them; all must match."""
    return [f"{label}={value}" for label, value in labels.items()]
