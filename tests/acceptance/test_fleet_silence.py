"""A host that is not heard for a while: given up, cut off, or only out of the registry."""

from __future__ import annotations

import time
from dataclasses import replace

from hosts import keys as hosts_keys
from hosts import roster
from tests.harness.judge import outcomes
from tests.harness.knobs import QUICK, Knobs
from tests.harness.lost_contact import cut_off, stand_still
from tests.harness.manage import answered, manage

#: Whoever is silent for two seconds is given up.
HASTY = replace(QUICK, queue=replace(QUICK.queue, beat_every=0.2, late=1.5, gone=2))


def test_the_late_results_of_a_host_that_was_given_up_change_no_word_on_its_jobs(fleet):
    stand_still(fleet, Knobs(timings=HASTY, without_containers=True), silence=4, delays=(2, 2))


def test_a_host_whose_packets_are_dropped_knows_it_takes_nothing_and_works_again_soon_after(fleet):
    timings = replace(HASTY, queue=replace(HASTY.queue, late=2.5, gone=20))

    cut_off(fleet, Knobs(timings=timings, without_containers=True), seconds=5)


def test_a_host_that_left_the_registry_and_works_on_is_paused_too_and_resumed_while_it_is_down(fleet):
    switches = {"VALKEY_URL": fleet.url, "PI_STATE_DIR": str(fleet.home)}
    # Between two beats: the row has run out, and nothing writes it anew.
    timings = replace(QUICK, host_beat_every=3600)
    alpha, beta = fleet.worker("alpha"), fleet.worker("beta")
    alpha.start(Knobs(timings=timings, without_containers=True))
    beta.start(Knobs(without_containers=True))
    fleet.client.delete(hosts_keys.host_row("alpha"))
    assert [row.name for row in roster.read(fleet.client).hosts] == ["beta"]

    assert manage(switches, "pause").returncode == 0
    job_ids = [fleet.enqueue(fleet.place(f"{one.name}-1"), queue=one.queue) for one in (alpha, beta)]
    time.sleep(1)
    assert fleet.statuses(job_ids) == [b"queued", b"queued"]
    status = answered(switches, "status")
    assert (status["pausedState"], status["paused"]) == (True, 2)

    alpha.kill()
    assert manage(switches, "resume").returncode == 0
    fleet.until_over(job_ids[1:], seconds=10)
    status = answered(switches, "status")
    assert (status["pausedState"], status["waiting"]) == (False, 1)
    alpha.start(Knobs(timings=timings, without_containers=True))
    fleet.until_over(seconds=10)

    assert outcomes(fleet.require_sound()) == {"completed": 2}
