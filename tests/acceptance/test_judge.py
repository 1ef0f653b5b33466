"""The judge itself: evidence of a sound run passes, and each thing that must not be is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.harness.engine_proxy import EngineProxy
from tests.harness.engine_witness import DeafWitnessError, EngineWitness, Life
from tests.harness.evidence import Evidence, JobEvidence
from tests.harness.ground import Span, read_journal
from tests.harness.judge import judge, outcomes
from tests.harness.worker_process import until

RECORD = {
    "jobId": "local-1",
    "outcome": "completed",
    "reason": None,
    "attempt": 0,
    "final": True,
    "budgetReserved": True,
}
JOB = JobEvidence(
    job_id="local-1",
    status="finished",
    owned=False,
    places=("rq:finished:pi-jobs",),
    results=1,
    grants=frozenset({0}),
    files=(RECORD,),
    rows=(RECORD,),
    told=(("job_completed", None),),
)
SPAN = Span(folder="one", container="pi-job-local-1", begin=10.0, end=11.0)
LIFE = Life(
    name="pi-job-local-1",
    host_id="aa",
    job_id="local-1",
    token="aa-1/1",
    scope="s1",
    created=9.0,
    started=[9.5],
    died=11.5,
)
SOUND = Evidence(jobs=(JOB,), spans=(SPAN,), lives=(LIFE,), left=(), dirty=(), counted=1, granted=1, hosts=1)
LATER = replace(LIFE, job_id="local-2", token="aa-1/2", created=10.0, started=[11.0], died=12.0)


def _job(**fields):
    return replace(SOUND, jobs=(replace(JOB, **fields),))


def _record(**fields):
    record = {**RECORD, **fields}
    return _job(files=(record,), rows=(record,))


def test_a_sound_run_is_sound():
    assert judge(SOUND) == []
    assert outcomes(SOUND) == {"completed": 1}


def test_a_stalled_job_without_a_container_is_sound():
    record = {**RECORD, "outcome": "failed", "reason": "stalled"}
    job = replace(
        JOB,
        status="failed",
        places=("rq:failed:pi-jobs",),
        files=(record,),
        rows=(record,),
        told=(("job_failed", 0),),
    )

    assert judge(replace(SOUND, jobs=(job,), spans=(), lives=())) == []


def test_another_host_may_know_of_an_earlier_attempt_only():
    earlier = {**RECORD, "outcome": "failed", "final": False}
    record = {**RECORD, "attempt": 1}
    job = replace(JOB, files=(earlier, record), rows=(record, earlier), grants=frozenset({0, 1}))

    assert judge(replace(SOUND, jobs=(job,), hosts=2, counted=2, granted=2)) == []
    assert judge(replace(SOUND, jobs=(job,), hosts=1, counted=2, granted=2)) != []


@pytest.mark.parametrize(
    ("rule", "evidence"),
    [
        pytest.param("none_lost", _job(status="queued", places=("rq:queue:pi-jobs",)), id="not over"),
        pytest.param("none_lost", _job(status=None, places=()), id="gone"),
        pytest.param("none_lost", _job(places=()), id="in no registry"),
        pytest.param("none_lost", _job(places=(*JOB.places, "pi-jobs:taken:aa-1")), id="in hand as well"),
        pytest.param("none_lost", _job(owned=True), id="owned"),
        pytest.param("one_final_record", _job(files=()), id="no file"),
        pytest.param("one_final_record", _job(rows=()), id="no row"),
        pytest.param("one_final_record", _job(files=(RECORD, RECORD)), id="two files"),
        pytest.param("one_final_record", _job(results=2), id="ended twice"),
        pytest.param("one_final_record", _record(final=False), id="not final"),
        pytest.param("one_final_record", _job(rows=({**RECORD, "exitCode": 1},)), id="row differs"),
        pytest.param("one_final_record", _record(outcome="failed"), id="queue says otherwise"),
        pytest.param("told_once", _job(told=(("job_completed", None),) * 2), id="told twice"),
        pytest.param("started_once", replace(SOUND, spans=(SPAN, SPAN)), id="two begins"),
        pytest.param("started_once", replace(SOUND, spans=()), id="completed without a run"),
        pytest.param(
            "started_once", replace(SOUND, spans=(replace(SPAN, end=None),)), id="completed without an end"
        ),
        pytest.param(
            "engine_started_once", replace(SOUND, lives=(replace(LIFE, started=[1.0, 2.0]),)), id="two starts"
        ),
        pytest.param(
            "engine_started_once",
            replace(SOUND, lives=(LIFE, replace(LIFE, token="aa-1/2", started=[20.0], died=21.0))),
            id="two claims",
        ),
        pytest.param("one_job_per_folder", replace(SOUND, lives=(LIFE, LATER)), id="containers overlap"),
        pytest.param(
            "one_job_per_folder",
            replace(SOUND, lives=(replace(LIFE, died=None), replace(LATER, started=[90.0]))),
            id="one never died",
        ),
        pytest.param(
            "one_job_per_folder",
            replace(SOUND, spans=(SPAN, replace(SPAN, container="pi-job-2", begin=10.5, end=10.7))),
            id="journals overlap",
        ),
        pytest.param("nothing_left", replace(SOUND, left=("/pi-job-local-1",)), id="a container"),
        pytest.param("queue_is_clean", replace(SOUND, dirty=("rq:wip:pi-jobs",)), id="a key"),
        pytest.param("money_is_right", replace(SOUND, counted=2), id="counted without a grant"),
        pytest.param("money_is_right", _job(grants=frozenset()), id="started unpaid"),
        pytest.param("money_is_right", _record(budgetReserved=False), id="recorded as unpaid"),
    ],
)
def test_what_must_not_be_is_seen(rule, evidence):
    assert rule in {violation.rule for violation in judge(evidence)}


@pytest.mark.docker
def test_a_witness_that_was_cut_off_from_the_engine_gives_no_evidence(engine, tmp_path):
    import docker

    with EngineProxy(tmp_path) as proxy:
        client = docker.DockerClient(base_url=proxy.environment["DOCKER_HOST"], version="auto")
        witness = EngineWitness(client)
        assert witness.lives([]) == []

        proxy.down()
        until(lambda: _is_deaf(witness), seconds=5, what="the witness noticed")
        witness.close()
        client.close()


def _is_deaf(witness):
    try:
        witness.lives([])
    except DeafWitnessError:
        return True
    return False


def test_a_journal_pairs_begins_with_ends():
    text = "begin a 1.00\nend a 2.50\nbegin b 3.00\nbegin a 4.00\nend a 5.00\n"

    spans = read_journal("one", text)

    assert [(span.container, span.begin, span.end) for span in spans] == [
        ("a", 1.0, 2.5),
        ("b", 3.0, None),
        ("a", 4.0, 5.0),
    ]
