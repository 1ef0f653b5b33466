"""The configuration of this host for a page: what a fault of it quotes is for whoever sits there (D17)."""

from __future__ import annotations

from django.conf import settings

from pidispatch_site.conf import Config
from pidispatch_site.errors import ConfigurationError

NO_CONFIGURATION = (
    "The configuration of this host has a fault; `manage.py doctor` on this machine names each problem."
)


def configured() -> Config:
    """Load it, or raise ConfigurationError without the values that are wrong."""
    try:
        config: Config = settings.PIDISPATCH
        # It is loaded when a value of it is read, not when it is named.
        _ = config.state_dir
    except ConfigurationError as error:
        raise ConfigurationError(NO_CONFIGURATION) from error
    return config
