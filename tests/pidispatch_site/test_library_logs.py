from __future__ import annotations

import logging

import pytest

from pidispatch_site.library_logs import WithoutLoginTokens


@pytest.mark.parametrize(
    ("message", "args", "shown"),
    [
        ("Forbidden (%s): %s", ("no cookie", "/login/WzEs:1x:abc"), "Forbidden (no cookie): /login/…"),
        ("Gone: %s", ("/login/WzEs:1x:abc?next=/",), "Gone: /login/…?next=/"),
        ("Not Found: %s", ("/favicon.ico",), "Not Found: /favicon.ico"),
        ("plain 100%", (), "plain 100%"),
    ],
)
def test_the_token_of_a_login_link_never_reaches_a_log(message, args, shown):
    record = logging.LogRecord("django.request", logging.WARNING, "f", 1, message, args, None)

    assert WithoutLoginTokens().filter(record) is True
    assert record.getMessage() == shown
