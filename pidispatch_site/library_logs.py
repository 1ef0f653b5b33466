"""Where the lines of libraries go: to stderr from WARNING on. Stdout belongs to the event log alone."""

from __future__ import annotations

import logging
import re
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


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname} {name} {message}", "style": "{"}},
    "filters": {"without_login_tokens": {"()": "pidispatch_site.library_logs.WithoutLoginTokens"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["without_login_tokens"],
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
