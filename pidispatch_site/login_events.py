"""Events of the event log for who logs in, and who fails to: a guess at passwords shows nowhere else."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from pidispatch_site import log


@receiver(user_logged_in, dispatch_uid="pidispatch_site.logged_in")
def _logged_in(request: HttpRequest, user: User, **_signal: Any) -> None:
    log.event("logged_in", user=user.pk, address=_address(request))


@receiver(user_login_failed, dispatch_uid="pidispatch_site.login_failed")
def _login_failed(request: HttpRequest | None = None, **_signal: Any) -> None:
    # Never the name: people type their password into that field, too.
    log.event("login_failed", address=_address(request))


def _address(request: HttpRequest | None) -> str | None:
    """Tell from where, as the connection has it: behind a proxy that is the proxy."""
    return (request.META.get("REMOTE_ADDR") or None) if request else None
