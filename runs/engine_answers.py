"""The engine's answers, read as values (Docker's API as of 1.41, which Podman speaks as well)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.protocols import ENDED, ContainerFacts, ImageFacts, NetworkFacts

PI_VERSION = "dev.pi-dispatch.pi-version"
FORGES = "dev.pi-dispatch.forges"
CAPABILITIES = "dev.pi-dispatch.capabilities"


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
