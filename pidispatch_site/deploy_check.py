"""What `manage.py check --deploy` says beside Django's own warnings: the one variable that settles them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004 - Django's name


@register(Tags.security, deploy=True)
def https_origins(**_asked: Any) -> list[CheckMessage]:
    """Warn where browsers are not led to HTTPS."""
    if settings.SECURE_SSL_REDIRECT:
        return []
    return [
        Warning(
            "Browsers reach the console without TLS: PI_WEB_ORIGINS names no address, or one without https://.",
            hint="Nothing to do where the console serves this machine only. Behind a proxy with TLS set"
            " PI_WEB_ORIGINS=https://…, the address that browsers use: it settles security.W004, W008, W012"
            " and W016 as well (docs/console.md, Behind a proxy).",
            id="pidispatch.W001",
        )
    ]
