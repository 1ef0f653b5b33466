"""What a request sees of Valkey: in time, and with no place of this machine in the words."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dispatch.pages.acting import acting
from dispatch.pages.sight import SECONDS, Unseen, sight
from pidispatch_site.errors import OperationalError
from tests.harness.way import Manner, Way


def test_what_is_there_is_read(valkey, valkey_url):
    valkey.set("key", "value")

    with sight({"VALKEY_URL": valkey_url}) as seen:
        assert seen.read(lambda client: client.get("key")) == b"value"
        assert seen.fault == ""


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        pytest.param({"VALKEY_URL": "redis://127.0.0.1:1"}, "does not answer", id="nobody"),
        pytest.param({"VALKEY_URL": "unix:///srv/canary/socket"}, "does not answer", id="no socket"),
        pytest.param(
            {"VALKEY_URL": "embedded", "PI_STATE_DIR": "/srv/canary"}, "is not running", id="embedded"
        ),
        pytest.param({"VALKEY_URL": "http://canary"}, "VALKEY_URL", id="no address"),
    ],
)
def test_what_is_not_there_is_told_without_a_path(environment, words):
    with sight(environment) as seen:
        found = seen.read(lambda client: client.ping())

    assert isinstance(found, Unseen)
    assert words in found.why
    assert "canary" not in found.why
    assert "canary" not in seen.shown


def test_whoever_accepts_and_is_silent_costs_one_wait():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with sight({"VALKEY_URL": url}) as seen:
            answers = [seen.read(lambda client: client.ping()) for _ in range(5)]

        # Two waits would be twice as long.
        assert time.monotonic() - began < 1.75 * SECONDS
    assert all(isinstance(one, Unseen) for one in answers)


def test_many_slow_answers_are_cut_off_together(valkey_url):
    slow = threading.Event()

    with sight({"VALKEY_URL": valkey_url}) as seen:
        began = time.monotonic()
        found = seen.read(lambda client: [slow.wait(0.4) or client.ping() for _ in range(20)])

    assert time.monotonic() - began < SECONDS + 0.5
    assert "too slowly" in found.why


def test_what_somebody_else_refuses_is_told(valkey_url):
    def ask(client):
        raise OperationalError("the folder /srv/canary is away")

    with sight({"VALKEY_URL": valkey_url}) as seen:
        assert seen.read(ask).why == "the folder (a path) is away"


def test_of_many_who_meet_a_slow_server_one_tries_it_and_nobody_else_waits(valkey_url):
    with (
        TemporaryDirectory(prefix="pd-") as folder,
        Way(Path(folder), valkey_url) as way,
        ThreadPoolExecutor(20) as browsers,
    ):
        environment = {"VALKEY_URL": way.url}

        def look(_=None):
            began = time.monotonic()
            with sight(environment) as seen:
                seen.read(lambda client: client.ping())
            return seen.fault, time.monotonic() - began

        way.manner = Manner.SLOW
        look()
        looks = list(browsers.map(look, range(20)))
        assert all("too slowly" in fault for fault, _ in looks)
        assert sum(seconds > 0.5 for _, seconds in looks) <= 2
        # Gone altogether, it is not called slow any more; and there again, it is asked at once.
        way.manner = Manner.CLOSED
        assert "does not answer" in look()[0]
        way.manner = Manner.OPEN
        assert look()[0] == ""


def test_whoever_acts_is_told_of_no_socket():
    with acting({"VALKEY_URL": "unix:///srv/canary/socket"}) as server:
        assert server.shown == "unix://(a path)"


def test_all_that_an_action_asks_of_a_slow_server_has_an_end(valkey_url, monkeypatch):
    monkeypatch.setattr("dispatch.pages.acting._ALL_SECONDS", 1.0)
    with TemporaryDirectory(prefix="pd-") as folder, Way(Path(folder), valkey_url) as way:
        way.manner, way.seconds = Manner.SLOW, 0.2
        began = time.monotonic()
        with (
            pytest.raises(OperationalError, match="does not answer"),
            acting({"VALKEY_URL": way.url}) as server,
        ):
            [server.client.ping() for _ in range(50)]

    # All fifty would take ten seconds.
    assert 0.9 < time.monotonic() - began < 5
