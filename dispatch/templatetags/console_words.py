"""Sentences that name commands, as commands and pages have them in common, for pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from re import Match

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from dispatch.pages.queue_asked import token_of
from hosts.names import in_alphabet

register = template.Library()

# As the words of commands name one that a person is to fill in.
_ANY_HOST = "HOST"


def _host(found: Match[str]) -> str:
    host = found["host"]
    if host == _ANY_HOST or not in_alphabet(host):
        return reverse("admin:console_fleet")
    return reverse("admin:console_fleet_host", args=[host])


def _job(found: Match[str]) -> str | None:
    token = token_of(found["job"])
    return reverse("admin:console_why", args=[token]) if token else None


def _to(name: str) -> Callable[[Match[str]], str]:
    return lambda _: reverse(f"admin:{name}")


_PAGES: tuple[tuple[str, Callable[[Match[str]], str | None]], ...] = (
    (r"(resume|pause|stop)\b.*", _to("console_switch")),
    (r"(undrain|drain|reroute) (?P<host>\S+)", _host),
    (r"fleet\b.*", _to("console_fleet")),
    (r"(triggers|run --trigger)\b.*", _to("dispatch_schedule_changelist")),
    (r"settings\b.*", _to("console_settings")),
    (r"budget\b.*", _to("index")),
    (r"why (?P<job>\S+)", _job),
)


@register.filter
def commands(text: str) -> SafeString:
    """Set what stands between two backticks as code, and lead from a command to the page that does it.

    All of the text is escaped, as ever.
    """
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return conditional_escape(text)
    done = [_command(part) if number % 2 else conditional_escape(part) for number, part in enumerate(parts)]
    return mark_safe("".join(done))  # noqa: S308 - each part is escaped


def _command(text: str) -> SafeString:
    for pattern, page in _PAGES:
        found = re.fullmatch(rf"manage\.py {pattern}", text)
        url = page(found) if found else None
        if url:
            return format_html('<a href="{}"><code>{}</code></a>', url, text)
    return format_html("<code>{}</code>", text)
