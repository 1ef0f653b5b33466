"""Tokens of programs: made once, kept as a digest, bound to a user whose permissions they have."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime, timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, IntegrityError, transaction

from dispatch.api.patience import hurried
from dispatch.models import ApiToken
from pidispatch_site.errors import ConfigurationError

#: Lets programs that look for leaked secrets know ours.
PREFIX = "pidt_"
#: Who programs are unless somebody says otherwise: may look, cannot log in.
DEFAULT_USER = "api"
_VIEWERS = "viewer"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LAST = datetime(9999, 12, 31, tzinfo=UTC)


def create(name: str, *, user: User, lifetime: timedelta | None, now: datetime) -> str:
    """Keep a new token's digest and answer the token, which nobody can ask for again.

    `lifetime` None: until it is revoked. `ConfigurationError` for a name that is none or is taken.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name of a token; allowed are 1 to 64 of A-Z a-z 0-9 . _ -")
    token = PREFIX + secrets.token_urlsafe(32)
    expires_at = None if lifetime is None else min(lifetime, _LAST - now) + now
    try:
        with transaction.atomic():
            ApiToken.objects.create(
                name=name, user=user, digest=digest(token), created_at=now, expires_at=expires_at
            )
    except IntegrityError as error:
        raise ConfigurationError(
            f"There is a token {name} already; revoke it first (manage.py apitoken revoke {name})."
        ) from error
    return token


def owner(username: str | None) -> User:
    """Find the user of a token to be; without a name the one for programs, made as a viewer if need be.

    `ConfigurationError` when there is none of that name, or it is not active.
    """
    users = get_user_model()._default_manager
    found = users.filter(username=username or DEFAULT_USER).first()
    if found is None and username is None:
        found = users.create_user(DEFAULT_USER)
        found.groups.add(Group.objects.get_or_create(name=_VIEWERS)[0])
    if found is None:
        raise ConfigurationError(f"There is no user {username!r}.")
    if not found.is_active:
        raise ConfigurationError(f"The user {found.get_username()} is not active: its tokens are refused.")
    return found


def revoke(name: str) -> User:
    """Forget a token, refused from here on; answer whose it was. `ConfigurationError` when there is none."""
    found = ApiToken.objects.select_related("user").filter(name=name).first()
    if found is None:
        raise ConfigurationError(f"There is no token {name!r}; `manage.py apitoken list` names them.")
    found.delete()
    return found.user


def bearer_of(token: str, now: datetime) -> User | None:
    """Answer the user of a token; None where it is unknown, over, or its user is not active.

    Raises Django's DatabaseError where nobody can tell.
    """
    found = ApiToken.objects.select_related("user").filter(digest=digest(token)).first()
    if found is None or not found.user.is_active:
        return None
    if found.expires_at is not None and found.expires_at <= now:
        return None
    _note_use(found, now)
    return found.user


def digest(token: str) -> str:
    """Digest a token as it is kept."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _note_use(token: ApiToken, now: datetime) -> None:
    """Keep the day of the last use, once a day; a database that takes no writes costs the note only."""
    if token.last_used_on == now.date():
        return
    try:
        with hurried():
            ApiToken.objects.filter(pk=token.pk).update(last_used_on=now.date())
    except DatabaseError:
        return
