"""What Django's settings are made of, where they depend on the environment."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pidispatch_site import conf, databases, embedded, server_url
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.places import StateDirectory, made_once

# A browser on this machine; every other name of it must be declared, or a page elsewhere could rebind to us.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_TIMEOUT_SECONDS = 2


def current_folder() -> Path | None:
    """Tell where we are; None when that folder is gone: stopping work must not depend on it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def database(environment: Mapping[str, str]) -> dict[str, Any]:
    """Make DATABASES under any environment; what is wrong is said by the first connection."""
    try:
        url = conf.one("DATABASE_URL", environment)
        default = Path("/") if url else StateDirectory(conf.state_dir(environment)).db
        return {"default": databases.settings(url, default=default)}
    except ConfigurationError as exc:
        return {"default": databases.unusable(exc.problems)}


def cache(environment: Mapping[str, str]) -> dict[str, Any]:
    """Make CACHES: the fleet's server, under a prefix, with JSON values; without it everything is a miss."""
    url, state = conf.switch_settings(environment)
    if url == server_url.EMBEDDED and state is not None:
        url = embedded.url(StateDirectory(state))
    return {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": url,
            "KEY_PREFIX": "web",
            "OPTIONS": {
                "CLIENT_CLASS": "pidispatch_site.cache.PrefixClient",
                # Never pickle: whoever can write to the shared server could run code here.
                "SERIALIZER": "django_redis.serializers.json.JSONSerializer",
                "IGNORE_EXCEPTIONS": True,
                "SOCKET_TIMEOUT": _TIMEOUT_SECONDS,
                "SOCKET_CONNECT_TIMEOUT": _TIMEOUT_SECONDS,
            },
        },
    }


def secret_key(environment: Mapping[str, str]) -> str:
    """Read the key of this state directory, made by the first who asks."""
    state = StateDirectory(conf.state_dir(environment)).made()
    return made_once(state.secret_key, lambda: secrets.token_urlsafe(50))


def web_origins(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Read the declared addresses of the console; none of them where they are wrong, as `load` will say."""
    try:
        found: tuple[str, ...] = conf.one("PI_WEB_ORIGINS", environment)
    except ConfigurationError:
        return ()
    return found


def allowed_hosts(origins: tuple[str, ...]) -> list[str]:
    """Name the hosts that a request may be addressed to."""
    return [*LOOPBACK, *(re.sub(r":\d+\Z", "", origin.partition("://")[2]) for origin in origins)]


def is_https(origins: tuple[str, ...]) -> bool:
    """Tell whether browsers reach the console over TLS only: each declared address says so, and one does."""
    return bool(origins) and all(origin.startswith("https://") for origin in origins)
