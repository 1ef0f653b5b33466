"""A fleet that is being upgraded: one worker of the version before the fleet, beside new ones."""

from __future__ import annotations

from dataclasses import replace

from tests.conftest import absent
from tests.harness.earlier_version import UnknownCommitError, knobs_of, unpack
from tests.harness.judge import mirrored_as_recorded, outcomes
from tests.harness.knobs import QUICK, Knobs

#: The last commit whose workers know one queue only, no registry, no leases and no mirror.
BEFORE_THE_FLEET = "f78334063fe6f495c804f290723511b949b2ddc1"


#: Silence is judged within two seconds by both versions.
HASTY = {"beat_every": 0.2, "late": 1.5, "gone": 2}
KNOBS = Knobs(timings=replace(QUICK, queue=replace(QUICK.queue, **HASTY)), without_containers=True)


def test_an_old_worker_and_new_ones_share_a_queue_and_settle_what_the_other_left(fleet, tmp_path):
    try:
        root = unpack(BEFORE_THE_FLEET, tmp_path)
    except UnknownCommitError:
        absent("no commit from before the fleet: a copy without its history")
    old, beta = fleet.worker("old", root=root), fleet.worker("beta")
    old.start(knobs_of(root, **HASTY), ready=False)
    beta.start(KNOBS, ready=False)
    for worker in (old, beta):
        worker.until_said("worker_started")
    for number in range(16):
        fleet.enqueue(fleet.place(f"folder-{number}", delay="0.3"))
    own = fleet.enqueue(fleet.place("own"), queue=beta.queue)
    fleet.until_over(seconds=20)
    assert {record["host"] for record in fleet.records(fleet.job_ids).values()} == {"old", "beta"}
    assert fleet.record(own)["host"] == "beta"

    for dying, living, knobs in ((beta, old, KNOBS), (old, beta, knobs_of(root, **HASTY))):
        living.freeze()
        job_id = fleet.enqueue(fleet.place(f"of-{dying.name}", delay="60"))
        fleet.until_status(job_id, "started")
        living.thaw()
        dying.kill()
        fleet.until_over(seconds=15)
        record = fleet.record(job_id)
        assert (record["reason"], record["host"]) == ("stalled", dying.name)
        dying.start(knobs)

    # The old one writes no mirror.
    evidence = fleet.require_sound(without=(mirrored_as_recorded,))
    assert outcomes(evidence) == {"completed": 17, "failed/stalled": 2}
    assert [worker.terminate() for worker in (old, beta)] == [0, 0]
    assert fleet.complaints() == ""
