from __future__ import annotations

import pytest
import redis

from pidispatch_site import server_url
from pidispatch_site.parsing import Unusable


@pytest.mark.parametrize(
    ("text", "url"),
    [
        pytest.param("redis://127.0.0.1:6379", "redis://127.0.0.1:6379", id="plain"),
        pytest.param(" redis://h ", "redis://h", id="spaces around"),
        pytest.param("rediss://user:p%23w@h:1/3", "rediss://user:p%23w@h:1/3", id="everything"),
        pytest.param("redis://[::1]:6379/0", "redis://[::1]:6379/0", id="ipv6"),
        pytest.param("valkey://h/2", "redis://h/2", id="valkey's own scheme"),
        pytest.param("valkeys://h", "rediss://h", id="with tls"),
        pytest.param("unix:///run/v.sock?db=2", "unix:///run/v.sock?db=2", id="socket"),
        pytest.param("embedded", "embedded", id="our own"),
    ],
)
def test_an_address_is_given_as_the_client_takes_it(text, url):
    parsed = server_url.parse(text)

    assert parsed == url
    if parsed != server_url.EMBEDDED:
        redis.connection.parse_url(parsed)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("127.0.0.1:6379", id="no scheme"),
        pytest.param("http://h", id="wrong scheme"),
        pytest.param("redis://", id="no host"),
        pytest.param("redis://:6379", id="only a port"),
        pytest.param("redis://h:port", id="port no number"),
        pytest.param("redis://h:99999", id="port too large"),
        pytest.param("redis://h:0", id="port zero"),
        pytest.param("redis://h/abc", id="database no number"),
        pytest.param("redis://h/0/1", id="path too long"),
        pytest.param("redis://h?db=x", id="db no number"),
        pytest.param("redis://h?socket_timeout=0", id="an option that is not the operator's"),
        pytest.param("redis://h?decode_responses=1", id="another"),
        pytest.param("redis://:pa#ss@h", id="a bare # in the password"),
        pytest.param("unix://relative.sock", id="relative socket"),
        pytest.param("unix:///", id="no socket"),
        pytest.param("Embedded", id="case matters"),
        pytest.param('"redis://h"', id="quotes"),
        pytest.param("redis://[::1", id="half a bracket"),
    ],
)
def test_what_names_no_server_is_refused(text):
    with pytest.raises(Unusable):
        server_url.parse(text)


@pytest.mark.parametrize(
    "text", ["http://user:hunter2@h", "redis://user:hunter2@h:x", "redis://:hunter2@h/x"]
)
def test_a_refusal_never_repeats_the_password(text):
    with pytest.raises(Unusable) as caught:
        server_url.parse(text)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://user:hunter2@h:1/3", "redis://h:1/3"),
        ("redis://:hunter2@[::1]:1", "redis://[::1]:1"),
        ("unix://:hunter2@/run/v.sock?db=2", "unix:///run/v.sock"),
        ("embedded", "embedded"),
    ],
)
def test_an_address_is_shown_without_what_opens_it(url, text):
    assert server_url.shown(url) == text
