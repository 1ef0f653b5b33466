"""`manage.py apitoken`: make, list and revoke what programs show to the read API and to /metrics."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import DatabaseError, transaction

from dispatch.api import tokens
from dispatch.console.arguments import HIDDEN, duration
from dispatch.models import ApiToken
from dispatch.pages import audit
from pidispatch_site import schema
from pidispatch_site.errors import OperationalError
from pidispatch_site.places import StateDirectory

_HEADINGS = ("NAME", "USER", "MADE (UTC)", "HOLDS UNTIL (UTC)", "LAST USED")


class Command(BaseCommand):
    help = "Make, list or revoke the tokens with which programs read /api/ and /metrics."
    suppressed_base_arguments = HIDDEN

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_subparsers(dest="what", required=True, metavar="create|list|revoke")
        create = what.add_parser("create", help="make a token and print it, once")
        create.add_argument("name", metavar="NAME", help="what it is for, such as prometheus")
        create.add_argument(
            "--user", metavar="U", help="whose permissions it has; default: api, a viewer that cannot log in"
        )
        create.add_argument(
            "--for", dest="lifetime", type=duration, metavar="90d", help="default: until it is revoked"
        )
        what.add_parser("list", help="name the tokens, never their values")
        revoke = what.add_parser("revoke", help="refuse a token from now on")
        revoke.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        schema.migrate_if_needed(StateDirectory(settings.PIDISPATCH.state_dir))
        try:
            match options["what"]:
                case "create":
                    self._create(options)
                case "revoke":
                    with transaction.atomic():
                        _log(tokens.revoke(options["name"]), "token-revoked", options["name"])
                    self.stderr.write(f"{options['name']} is refused from now on.", str)
                case _:
                    self._list()
        except DatabaseError as error:
            raise OperationalError(f"The database of this host cannot be used: {error}.") from error

    def _create(self, options: dict[str, Any]) -> None:
        name, lifetime = options["name"], options["lifetime"]
        with transaction.atomic():
            user = tokens.owner(options["user"])
            token = tokens.create(name, user=user, lifetime=lifetime, now=datetime.now(UTC))
            _log(user, "token-created", name, {"for": str(lifetime) if lifetime else "until it is revoked"})
        self.stderr.write(
            f"A token for what {user.get_username()} may see. It is shown this once; send it as"
            " `Authorization: Bearer …`.",
            str,
        )
        # Said on stdout alone, for `> file`.
        self.stdout.write(token)

    def _list(self) -> None:
        rows = [
            _HEADINGS,
            *map(_row, ApiToken.objects.select_related("user").order_by("name").iterator(chunk_size=500)),
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
        for row in rows:
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write(line.rstrip())


def _log(user: User, action: str, name: str, after: Any = None) -> None:
    audit.record_command(user, action, name, command="apitoken", after=after)


def _row(token: ApiToken) -> tuple[str, ...]:
    user = token.user
    return (
        token.name,
        user.get_username() if user.is_active else f"{user.get_username()} (not active: refused)",
        f"{token.created_at:%Y-%m-%d %H:%M}",
        _until(token.expires_at, datetime.now(UTC)),
        f"{token.last_used_on:%Y-%m-%d}" if token.last_used_on else "never",
    )


def _until(expires_at: datetime | None, now: datetime) -> str:
    if expires_at is None:
        return "revoked"
    return f"{expires_at:%Y-%m-%d %H:%M}" + (" (over)" if expires_at <= now else "")
