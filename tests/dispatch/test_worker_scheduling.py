"""When a worker acts on its schedules, and what it tells the fleet of them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from dispatch.queue.owner import Owner
from dispatch.worker.followed import load_operator_files
from dispatch.worker.presence import facts
from dispatch.worker.scheduling import Schedules, opinion, takes_jobs
from hosts import switches
from pidispatch_site import conf
from tests.dispatch.schedules.schedulekit import MINUTE, QUEUE, Ground, schedule
from tests.harness.standing_work import cron


@pytest.fixture
def due(valkey):
    """A host, and its schedules, one of which is due."""
    ground = Ground(valkey, schedule())
    ground.clock.go(5 * MINUTE)
    host = SimpleNamespace(
        client=valkey, owner=Owner(boot="aaaa-00000001", host_id="aaaa", host="alpha"), may_take=lambda: True
    )
    ticker = ground.ticker(may_fire=lambda _: takes_jobs(host))
    return SimpleNamespace(host=host, schedules=Schedules(file=None, keeper=None, ticker=ticker))


def fired(due):
    due.schedules.tick()
    return bool(due.host.client.keys("rq:job:*"))


def test_a_host_that_is_drained_or_may_take_nothing_leaves_what_is_due_until_it_may(due):
    due.host.may_take = lambda: False
    assert not fired(due)
    due.host.may_take = lambda: True
    switches.drain(due.host.client, "alpha", by="me", reason="")
    assert not fired(due)
    switches.undrain(due.host.client, "alpha")
    # The drain of another one is not ours, nor keeps a pause a job from waiting.
    switches.drain(due.host.client, "beta", by="me", reason="")
    switches.pause(due.host.client, [QUEUE], by="me", reason="")
    assert fired(due)


def test_the_row_tells_file_fingerprint_and_number_or_nothing(tmp_path):
    path = tmp_path / "triggers.json"
    path.write_text(json.dumps({"triggers": [cron("a", "0 3 * * *", tmp_path)]}))
    told = {}
    for name, more in (("with", {"PI_TRIGGERS_FILE": str(path)}), ("without", {})):
        config = conf.load({"PI_STATE_DIR": str(tmp_path), "PI_EGRESS": "0", **more})
        files = load_operator_files(config)
        found = facts(
            config,
            image=SimpleNamespace(reference=""),
            slots=None,
            live=(),
            files=files,
            opinion=opinion(config, files.triggers),
            blind=lambda: "",
        )
        told[name] = [
            fact() if callable(fact) else fact
            for fact in (found[field] for field in ("fpTriggers", "fpCron", "cronCount"))
        ]

    digest, fingerprint, count = told["with"]
    assert (len(digest), len(fingerprint), count) == (16, 16, 1)
    assert told["without"] == ["", "", ""]
