"""One-time login links: how the operator of the machine gets into the console without a password.

A link is signed with the state directory's key, holds for ten minutes and for one login: it carries a digest
of the user's last login and password, which any login changes. Opening the link only shows a button, so that
a program that looks at links in messages does not use it up.
"""

from __future__ import annotations

import hmac
import json

from django.contrib import admin
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth import get_user_model, login
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from pidispatch_site.errors import ConfigurationError

LIFETIME_SECONDS = 600
DEFAULT_NAME = "operator"
_SALT = "pidispatch_site.login"
_BACKEND = "django.contrib.auth.backends.ModelBackend"
_MOST_NAMED = 20


def token_for(user: User) -> str:
    """Make a token that logs this user in once, within ten minutes."""
    return signing.dumps([user.pk, _state(user)], salt=_SALT)


def operator(name: str | None, *, create: bool = False) -> tuple[User, bool]:
    """Find the user to log in, and whether it was made: the named one, else the first superuser.

    Without a name a superuser is made if there is none, with a name only where `create` asks for it; it has
    no password. `ConfigurationError` when there is none of that name, or it may not use the console.
    """
    users = get_user_model()._default_manager
    if name is None:
        found = users.filter(is_superuser=True, is_staff=True, is_active=True).order_by("pk").first()
    else:
        found = users.filter(username=name).first()
    if found is None:
        if name is not None and not create:
            raise ConfigurationError(_unknown(name))
        return _made(name or DEFAULT_NAME), True
    if not (found.is_active and found.is_staff):
        raise ConfigurationError(
            f"The user {found.get_username()} may not use the console: it is not active, or “Staff status” is"
            " not ticked. A superuser changes that under Users."
        )
    return found, False


def _unknown(name: str) -> str:
    names = get_user_model()._default_manager.order_by("username").values_list("username", flat=True)
    known = [repr(one) for one in names[: _MOST_NAMED + 1]]
    more = ", …" if len(known) > _MOST_NAMED else ""
    users = f"users are {', '.join(known[:_MOST_NAMED])}{more}" if known else "there are no users yet"
    return f"There is no user {name!r}; {users}. --create makes one, who may do everything (a superuser)."


def _made(name: str) -> User:
    """Make a superuser, with an entry of the log in its own name: a command has no user."""
    with transaction.atomic():
        user: User = get_user_model()._default_manager.create_superuser(name)
        LogEntry.objects.create(
            user=user,
            content_type=ContentType.objects.get_for_model(user),
            object_id=str(user.pk),
            object_repr=name,
            action_flag=ADDITION,
            change_message=json.dumps({"action": "user-added", "command": "loginlink"}),
        )
    return user


@sensitive_variables("token")
@never_cache
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def view(request: HttpRequest, token: str) -> HttpResponse:
    """Show the button; log in when it is pressed; say so when the link is spent, too old or not ours."""
    if request.method == "POST":
        user = _spend(request, token)
        return HttpResponseRedirect(reverse("admin:index")) if user else _page(request, None)
    return _page(request, _user(token, lock=False))


def _page(request: HttpRequest, user: User | None) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": "Log in",
        "who": user,
        "address": f"{request.scheme}://{request.get_host()}",
        "minutes": LIFETIME_SECONDS // 60,
    }
    return render(request, "pidispatch_site/login.html", context, status=200 if user else 410)


def _spend(request: HttpRequest, token: str) -> User | None:
    """Log the user in and thereby change what the token is compared with, as one step of the database."""
    with transaction.atomic():
        user = _user(token, lock=True)
        if user is not None:
            login(request, user, backend=_BACKEND)
        return user


def _user(token: str, *, lock: bool) -> User | None:
    try:
        payload = signing.loads(token, salt=_SALT, max_age=LIFETIME_SECONDS)
    except (signing.BadSignature, ValueError):
        return None
    match payload:
        case [int(primary_key), str(state)]:
            users = get_user_model()._default_manager.filter(is_active=True, is_staff=True)
            user = (users.select_for_update() if lock else users).filter(pk=primary_key).first()
            return user if user is not None and hmac.compare_digest(state, _state(user)) else None
        case _:
            return None


def _state(user: User) -> str:
    """Digest what a login changes. Microseconds count: two logins in one second are two."""
    last = user.last_login.isoformat() if user.last_login else ""
    return salted_hmac(_SALT, f"{user.pk}|{last}|{user.password}", algorithm="sha256").hexdigest()
