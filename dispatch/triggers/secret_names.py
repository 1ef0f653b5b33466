"""Which names a trigger's secrets may take in a job's environment (Q 5.1, E 4.1)."""

from __future__ import annotations

import re

from pidispatch_site.known_names import MINTED, PROXY, SET_BY_WORKER, WORKER_ONLY

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROFILE = re.compile(r"[A-Za-z0-9._-]+")

# A job's own forge: its address would decide whom the minted token is shown to.
_FORGE_HOSTS = frozenset({"GITLAB_HOST", "FORGEJO_HOST", "AZURE_DEVOPS_ORG_URL"})
# Point a provider's library at files or services of the host.
_OF_THE_HOST = frozenset(
    {
        "ANTHROPIC_IDENTITY_TOKEN_FILE",
        "AWS_CONFIG_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AZURE_CLIENT_CERTIFICATE_PATH",
        "AZURE_FEDERATED_TOKEN_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
    }
)
_RESERVED = MINTED | WORKER_ONLY | SET_BY_WORKER | PROXY | _FORGE_HOSTS | _OF_THE_HOST
# Decide where a provider's library sends a job's text and key.
_STEERING = re.compile(r"[A-Z0-9_]*_(?:BASE_URL|CUSTOM_HEADERS|ENDPOINT_URL)|AWS_ENDPOINT_URL_[A-Z0-9_]+")


def is_name(text: str) -> bool:
    """Tell whether an environment variable can be called so."""
    # An object of JavaScript has this key already, and the reference reads these files too.
    return _NAME.fullmatch(text) is not None and text != "__proto__"


def is_reserved(name: str) -> bool:
    """Tell whether the name means something to the worker, to the container, or to a provider's library."""
    return name in _RESERVED or _STEERING.fullmatch(name) is not None


def is_profile(text: str) -> bool:
    """Tell whether a script that resolves secrets can be called so, as those of PI_SECRET_PROFILES are."""
    return _PROFILE.fullmatch(text) is not None
