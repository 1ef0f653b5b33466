from __future__ import annotations

import pytest

from pidispatch_site import webserver
from pidispatch_site.errors import ConfigurationError, OperationalError


@pytest.mark.parametrize(
    ("bind", "parts"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_taken_apart(bind, parts):
    assert webserver.parsed(bind) == parts


@pytest.mark.parametrize(
    "bind", ["8000", ":8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "h:65536", "h:-1", "h:٣", ""]
)
def test_what_is_no_address_is_refused(bind):
    with pytest.raises(ConfigurationError, match="expected HOST:PORT"):
        webserver.parsed(bind)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - the very address that is refused
        ("::", False),
        ("192.168.1.2", False),
        ("example.org", False),
        ("localhost.example", False),
    ],
)
def test_only_addresses_of_this_machine_are_loopback(host, own):
    assert webserver.is_loopback(host) is own


def test_a_taken_address_is_said_with_what_to_do():
    with webserver.listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]

        assert webserver.address(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(OperationalError, match=rf"127.0.0.1:{port}: Address already in use. Try another"):
            webserver.listen("127.0.0.1", port)


def test_an_address_that_is_not_this_machines_is_said():
    with pytest.raises(OperationalError, match="Nothing can be served"):
        webserver.listen("192.0.2.1", 0)
