"""Why nobody has a schedule, in words: every reason has some."""

from __future__ import annotations

import pytest

from dispatch.console.schedule_absence import absence
from dispatch.schedules.missed import MissedReason
from dispatch.schedules.unserved import UnservedReason
from tests.dispatch.fleetkit import row


@pytest.mark.parametrize("why", UnservedReason)
def test_what_no_host_can_serve_is_told_in_words(why):
    hosts = [row("alpha", fp_triggers="a" * 16, fp_cron="0" * 16)]

    told = absence(hosts, {"nightly": why})("nightly")

    assert told.reason is MissedReason.UNSERVED
    assert told.brief.startswith("unserved: ")
