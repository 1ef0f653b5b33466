"""Valkey refuses or vanishes right when a job is to be paid for: no container, no job lost, none failed."""

from __future__ import annotations

import pytest

from tests.harness.fleet import Fleet
from tests.harness.knobs import Knobs
from tests.harness.outages import FROZEN, FULL, KILLED
from tests.harness.unpaid import Unpaid

pytestmark = pytest.mark.docker


@pytest.fixture
def unpaid(server, engine, fake_image):
    """One worker of two slots beside a server of its own."""
    server.start()
    with Fleet(server.url, image=fake_image, engine=engine) as fleet:
        yield Unpaid(fleet, server, hosts=1, concurrency=2, knobs=Knobs())


def test_what_cannot_be_reserved_does_not_run_until_it_can(unpaid):
    for outage in (FULL, FROZEN, KILLED):
        unpaid.at_the_reservation(outage, seconds=0.5)

    unpaid.require_sound()


def test_a_wait_or_a_token_cap_that_cannot_be_asked_lets_nothing_through(unpaid):
    unpaid.at_the_wait_check(FULL, seconds=0.5)
    unpaid.at_the_token_cap(KILLED, seconds=0.5)

    unpaid.require_sound()
