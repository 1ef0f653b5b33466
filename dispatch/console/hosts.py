"""Which host a command acts on: the one that a person names, or this one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from hosts import names
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError


def named_host(given: str) -> str:
    """Check the name of a worker that a person gave; `ConfigurationError` says what is allowed."""
    if not names.in_alphabet(given):
        raise ConfigurationError(f"{given!r} is no worker's name; allowed are {names.declared(given)}")
    return given


def this_host(environment: Mapping[str, str], *, hostname: Callable[[], str] = socket.gethostname) -> str:
    """Name this host's worker as the worker names itself; `ConfigurationError` where that is wrong."""
    typed = conf.one("PI_WORKER_NAME", environment)
    if typed is None:
        return names.defaulted(hostname)
    if names.declared(typed):
        raise ConfigurationError(
            f"PI_WORKER_NAME is no worker's name; allowed are {names.declared(typed)}. Or name the host."
        )
    return str(typed)
