"""Standing work from the file to the container: by the clock of the machine, on a live worker."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.harness.judge import outcomes
from tests.harness.knobs import Knobs
from tests.harness.manage import manage
from tests.harness.standing_work import TriggersFile, cron, known_occurrences, recorded
from tests.harness.worker_process import until

pytestmark = pytest.mark.docker


def _told(folder):
    """What the jobs of a folder found in /job/event.json, one after the other."""
    path = folder / "events"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _iso(text):
    return None if text is None else datetime.fromisoformat(text)


def test_a_schedule_runs_in_containers_follows_its_file_and_can_be_started_by_hand(contained):
    fleet, triggers = contained, TriggersFile(contained.home / "triggers.json")
    site, other = (
        fleet.folder(name, command="cat /job/event.json >> /workspace/events") for name in ("site", "other")
    )
    often = cron("often", "* * * * * *", site)
    triggers.write(often, cron("seldom", "0 3 29 2 *", other))
    worker = fleet.worker(environment={**triggers.environment, "TZ": "Europe/Paris"})
    began = datetime.now(UTC)
    worker.start(Knobs())
    until(lambda: len(_told(site)) >= 3, seconds=30, what="it has run three times")

    # Live: without its entry it starts no more, and the other one does.
    said = worker.said_so_far()
    triggers.write(cron("seldom", "0/2 * * * * *", other))
    worker.until_said("schedules_reloaded", after=said)
    edited = datetime.now(UTC)
    until(lambda: _told(other), seconds=30, what="the other one has run")
    said = worker.said_so_far()
    triggers.write(cron("seldom", "0 3 29 2 *", other))
    worker.until_said("schedules_reloaded", after=said)
    runs = known_occurrences(fleet, "often")
    assert max(runs) <= edited

    fleet.job_ids += [*runs.values(), *known_occurrences(fleet, "seldom").values()]
    fleet.until_over(seconds=20)
    asked = manage(worker.environment, "run", "--trigger", "seldom", "--wait")
    assert asked.returncode == 0, asked.stderr
    (by_hand,) = [job_id for job_id in recorded(fleet) if not job_id.startswith("repeat:")]
    fleet.job_ids.append(by_hand)
    assert outcomes(fleet.require_sound()) == {"completed": len(fleet.job_ids)}
    assert fleet.complaints() == ""

    events = _told(site)
    assert {event["source"] for event in events} == {"cron"}
    assert [event["trigger"] for event in events] == [{"id": "often", "pattern": "* * * * * *"}] * len(events)
    instants = [_iso(event["scheduledFor"]) for event in events]
    assert sorted(instants) == list(runs)
    assert all(began <= instant <= edited and not instant.microsecond for instant in instants)
    ends = {instant: _iso(fleet.record(runs[instant])["endedAt"]) for instant in instants}
    before = [_iso(event["previousRunAt"]) for event in events]
    for instant, ran in zip(instants, before, strict=True):
        # The record of the run before may come a moment after its end, and this job before that.
        assert ran in {None, *(end for other, end in ends.items() if other < instant)}
    assert before[0] is None
    assert any(before)
    last = _told(other)[-1]
    assert (last["source"], last["trigger"]) == ("manual", {"id": "seldom", "pattern": "0 3 29 2 *"})
    assert "scheduledFor" not in last
