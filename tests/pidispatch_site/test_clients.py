from __future__ import annotations

import socket
import threading
import time
from contextlib import nullcontext

import pytest
import redis
from rq import Queue
from rq.serializers import JSONSerializer

from pidispatch_site import clients
from pidispatch_site.errors import ConfigurationError


@pytest.fixture
def silent():
    """The URL of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}"


class Answering(threading.Thread):
    """A server that answers SET with one line (or never), everything else with OK, and counts the SETs."""

    def __init__(self, line):
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._line = line
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self.sets = 0

    def run(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(65536):
                    for command in data.split(b"*")[1:]:
                        is_set = b"\r\nSET\r\n" in command
                        self.sets += is_set
                        connection.sendall(self._line if is_set else b"+OK\r\n")

    def close(self):
        self._listener.close()


@pytest.fixture
def answering(request):
    server = Answering(request.param)
    server.start()
    yield server
    server.close()


@pytest.mark.parametrize("make", [clients.state_client, clients.queue_client])
def test_a_client_stores_and_answers_in_bytes(valkey_url, make):
    client = make(valkey_url)

    client.set("k", "v")

    assert client.get("k") == b"v"
    client.close()


def test_a_silent_server_is_given_up_once_after_the_bound(silent):
    client = clients.state_client(silent, socket_timeout=0.2)
    started = time.monotonic()

    with pytest.raises(clients.VALKEY_FAULTS):
        client.incr("k")

    assert 0.1 < time.monotonic() - started < 1
    client.close()


def test_all_answers_together_have_an_end_that_cuts_one_short(silent):
    client = clients.state_client(silent, socket_timeout=5, all_seconds=0.8)
    started, took = time.monotonic(), []

    for _ in range(3):
        with pytest.raises(redis.exceptions.TimeoutError):
            client.incr("k")
        took.append(time.monotonic() - started)

    # Each by itself would have five seconds; those after the end have none, not their 0.8 once more.
    assert 0.7 < took[0] < 4
    assert took[2] - took[0] < 0.7
    client.close()


def test_nobody_there_is_a_fault_at_once(tmp_path):
    client = clients.state_client(f"unix://{tmp_path}/nobody.sock")

    with pytest.raises(clients.VALKEY_FAULTS):
        client.ping()


def test_a_popper_waits_longer_than_its_pop(valkey_url):
    client = clients.popper_client(valkey_url, pop_seconds=3)

    assert client.get_connection_kwargs()["socket_timeout"] == 8
    assert client.blmove("empty", "other", 0.05) is None
    client.close()


@pytest.mark.parametrize("answering", [b""], indirect=True, ids=["silence"])
def test_a_timed_out_command_is_not_repeated(answering):
    """It may be applied later all the same: one that counts would count twice."""
    client = clients.state_client(answering.url, socket_timeout=0.2)

    with pytest.raises(redis.exceptions.TimeoutError):
        client.set("k", "v")

    assert answering.sets == 1
    client.close()


FAULTS = [
    b"-MISCONF Errors writing to the AOF file: No space left on device\r\n",
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    b"-NOREPLICAS Not enough good replicas to write.\r\n",
    b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL.\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-LOADING server is loading the dataset in memory\r\n",
    b"-MASTERDOWN Link with MASTER is down\r\n",
    b"-ERR max number of clients reached\r\n",
]


@pytest.mark.parametrize("answering", FAULTS, indirect=True, ids=lambda line: line.split()[0].decode())
def test_what_a_troubled_server_answers_is_a_fault_and_not_our_mistake(answering):
    client = clients.state_client(answering.url)

    with pytest.raises(clients.VALKEY_FAULTS):
        client.set("k", "v")

    assert answering.sets == 1
    client.close()


def test_our_own_mistakes_are_no_faults(valkey_url):
    client = clients.state_client(valkey_url)
    client.set("text", "x")

    with pytest.raises(redis.exceptions.ResponseError) as caught:
        client.lpush("text", "y")

    assert not isinstance(caught.value, clients.VALKEY_FAULTS)
    client.close()


def test_the_queue_engine_works_on_its_client(valkey_url):
    client = clients.queue_client(valkey_url)
    queue = Queue("q", connection=client, serializer=JSONSerializer)

    job = queue.enqueue("builtins.len", [1], job_id="one", unique=True)

    assert queue.job_ids == [job.id] == ["one"]
    client.close()


@pytest.mark.parametrize(
    ("policy", "refused"), [("noeviction", False), ("volatile-lru", True), ("allkeys-lru", True)]
)
def test_a_server_that_throws_keys_away_is_refused(valkey, policy, refused):
    before = valkey.config_get("maxmemory-policy")["maxmemory-policy"]
    valkey.config_set("maxmemory-policy", policy)
    try:
        with pytest.raises(ConfigurationError, match=policy) if refused else nullcontext():
            clients.require_no_eviction(valkey)
    finally:
        valkey.config_set("maxmemory-policy", before)


def test_a_server_that_may_not_be_asked_is_trusted(valkey):
    valkey.acl_setuser("narrow", enabled=True, nopass=True, commands=["+@all", "-info"], keys=["*"])
    narrow = redis.Redis(
        unix_socket_path=valkey.get_connection_kwargs()["path"], username="narrow", password="x"
    )
    try:
        clients.require_no_eviction(narrow)
    finally:
        valkey.acl_deluser("narrow")
        narrow.close()
