"""Where the lines of libraries go: to stderr from WARNING on. Stdout belongs to the event log alone."""

from __future__ import annotations

import logging
import re
import traceback
from types import TracebackType
from typing import Any

_LOGIN_TOKEN = re.compile(r"(/login/)[^\s/?'\"]+")


class WithoutLoginTokens(logging.Filter):
    """Takes the tokens of login links out of a line: Django names the path of a refused request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line where needed; every line passes."""
        text = record.getMessage()
        shown = _LOGIN_TOKEN.sub(r"\1…", text)
        if shown != text:
            record.msg, record.args = shown, None
        return True


class WithoutRefusals(logging.Filter):
    """Takes the stack away where Django refuses a request: that is no mistake of anybody's here."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line where needed; every line passes."""
        if record.name == "django.request" and record.levelno < logging.ERROR:
            record.exc_info = record.exc_text = None
        return True


class WithoutErrorText(logging.Formatter):
    """Writes of an error its kind and where it arose, not what it says: that may be a path or a secret."""

    def formatException(  # noqa: N802 - the standard library's name
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Write each error of the chain, the one that was raised last first."""
        lines = []
        error = ei[1]
        while error is not None:
            lines += [f"{type(error).__name__} at\n", *traceback.format_tb(error.__traceback__)]
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "".join(lines).rstrip()


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "class": "pidispatch_site.library_logs.WithoutErrorText",
            "format": "{levelname} {name} {message}",
            "style": "{",
        },
    },
    "filters": {
        "without_login_tokens": {"()": "pidispatch_site.library_logs.WithoutLoginTokens"},
        "without_refusals": {"()": "pidispatch_site.library_logs.WithoutRefusals"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["without_login_tokens", "without_refusals"],
        },
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    # Django brings handlers of its own, for a console in debug mode and for mail.
    "loggers": {
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
        # Any stranger's request would write a traceback; the answer 400 says it all.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}
