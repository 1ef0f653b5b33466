from __future__ import annotations

import logging
import sys

import pytest

from pidispatch_site.library_logs import LOGGING, WithoutErrorText, WithoutLoginTokens, WithoutRefusals


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


def fail_with(said):
    try:
        {}[said]
    except KeyError:
        int(said)


def test_an_error_is_told_by_its_kind_and_place_and_not_by_what_it_says():
    try:
        fail_with("/srv/" + "secret")
    except ValueError:
        record = logging.LogRecord("django", logging.ERROR, "f", 1, "Server Error", (), sys.exc_info())

    text = WithoutErrorText("{levelname} {message}", style="{").format(record)

    assert text.startswith("ERROR Server Error\nValueError at\n")
    assert "KeyError at" in text
    assert "test_library_logs.py" in text
    assert "/srv/secret" not in text
    assert LOGGING["formatters"]["line"]["class"].endswith(WithoutErrorText.__name__)


@pytest.mark.parametrize(
    ("name", "level", "is_kept"),
    [
        ("django.request", logging.WARNING, False),
        ("django.request", logging.ERROR, True),
        ("rq.worker", logging.WARNING, True),
    ],
)
def test_a_refused_request_leaves_no_stack(name, level, is_kept):
    record = logging.LogRecord(name, level, "f", 1, "Forbidden: /x", (), (ValueError, ValueError(), None))

    assert WithoutRefusals().filter(record) is True
    assert (record.exc_info is not None) is is_kept
