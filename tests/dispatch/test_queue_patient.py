"""A step is repeated through an outage until it answers, and through nothing else."""

from __future__ import annotations

import threading

import pytest
from redis import exceptions

from dispatch.queue.patient import GaveUpError, patient
from pidispatch_site import clients
from pidispatch_site.clients import ServerRefusesWritesError
from tests.dispatch.queuekit import Host, hash_of


class Steps:
    """A step that fails so and so often, and what its repeater did in between."""

    def __init__(self, *faults):
        self.faults = list(faults)
        self.pauses = []
        self.heard = []
        self.tries = 0

    def __call__(self):
        self.tries += 1
        if self.faults:
            raise self.faults.pop(0)
        return "answer"

    def run(self, *, stop=lambda: False):
        return patient(self, stop=stop, on_fault=self.heard.append, sleep=self.pauses.append)


FAULTS = [
    exceptions.ConnectionError("refused"),
    exceptions.TimeoutError("no answer"),
    exceptions.BusyLoadingError("loading"),
    exceptions.ReadOnlyError("replica"),
    exceptions.OutOfMemoryError("maxmemory"),
    ServerRefusesWritesError("disk full"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_fault_of_valkey_is_waited_out(fault):
    steps = Steps(fault, fault, fault)

    assert steps.run() == "answer"
    assert (steps.tries, steps.heard) == (4, [fault] * 3)


def test_an_answer_at_once_waits_for_nothing():
    steps = Steps()

    assert steps.run() == "answer"
    assert (steps.pauses, steps.heard) == ([], [])


@pytest.mark.parametrize(
    "mistake",
    [
        exceptions.ResponseError("ERR wrong number of arguments"),
        exceptions.DataError("a float or a string, please"),
        ValueError("ours"),
    ],
    ids=lambda mistake: type(mistake).__name__,
)
def test_a_mistake_of_ours_goes_through_at_once(mistake):
    steps = Steps(mistake)

    with pytest.raises(type(mistake)):
        steps.run()
    assert steps.tries == 1


def test_pauses_double_up_to_the_longest():
    steps = Steps(*[FAULTS[0]] * 8)

    steps.run()

    assert steps.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_stop_ends_it_after_a_fault_and_never_instead_of_a_try():
    steps = Steps(FAULTS[0])

    with pytest.raises(GaveUpError) as error:
        steps.run(stop=lambda: True)

    assert error.value.__cause__ is FAULTS[0]
    assert steps.tries == 1
    assert Steps().run(stop=lambda: True) == "answer"


def test_a_transition_waits_for_a_server_that_stands_still(valkey, valkey_url):
    """The answer of the first try is lost while it lands; the repeat says that it did."""
    host = Host(clients.state_client(valkey_url, socket_timeout=0.2))
    host.enqueue("local-1")
    claimed = host.claim()
    heard = []
    valkey.execute_command("CLIENT", "PAUSE", 600, "ALL")

    answer = patient(lambda: host.begin(claimed), stop=lambda: False, on_fault=heard.append)

    assert answer == "done"
    assert heard
    assert hash_of(valkey, "local-1")["status"] == "started"


def test_a_repeat_ends_early_when_its_event_is_set():
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    steps = Steps(*[FAULTS[0]] * 1000)

    with pytest.raises(GaveUpError):
        patient(steps, stop=stop.is_set, sleep=stop.wait)
