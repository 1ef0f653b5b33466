"""Sentences that name commands, as commands and pages have them in common, for pages."""

from __future__ import annotations

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.filter
def commands(text: str) -> SafeString:
    """Set what stands between two backticks as code; all of the text is escaped, as ever."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return conditional_escape(text)
    done = [
        format_html("<code>{}</code>", part) if number % 2 else conditional_escape(part)
        for number, part in enumerate(parts)
    ]
    return mark_safe("".join(done))  # noqa: S308 - each part is escaped
