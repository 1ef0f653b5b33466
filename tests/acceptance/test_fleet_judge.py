"""What the judge and the proxy know of a fleet of several hosts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import redis

from dispatch.jobs import decode, encode
from runs.workspace.scope import hash16
from tests.acceptance.test_judge import JOB, LIFE, RECORD, SOUND, SPAN
from tests.harness.blackhole import BlackHole
from tests.harness.forge_jobs import forge_job
from tests.harness.judge import bounded_per_repository, judge
from tests.harness.worker_process import until

ELSEWHERE = replace(JOB, queue="pi-jobs@beta", places=("rq:finished:pi-jobs@beta",))
FIRST = replace(LIFE, scope=hash16("acme/web"))
SECOND = replace(FIRST, host_id="bb", job_id="local-2", token="bb-1/1", started=[11.0], died=12.0)


def _job(**fields):
    return replace(SOUND, jobs=(replace(JOB, **fields),))


_OTHER = {**RECORD, "jobId": "local-2"}
UNEVEN = replace(
    SOUND,
    jobs=(
        replace(JOB, mirrored=RECORD),
        replace(ELSEWHERE, job_id="local-2", files=(_OTHER,), rows=(_OTHER,)),
    ),
    spans=(SPAN, replace(SPAN, folder="two", container="pi-job-local-2")),
)


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param(replace(SOUND, jobs=(ELSEWHERE,)), id="a host's own queue"),
        pytest.param(_job(mirrored=RECORD), id="mirrored"),
        pytest.param(replace(UNEVEN, unmirrored=1), id="the mirror did not take one, and that was said"),
    ],
)
def test_a_sound_fleet_is_sound(evidence):
    assert judge(evidence) == []


@pytest.mark.parametrize(
    ("rule", "evidence"),
    [
        pytest.param("none_lost", _job(queue="pi-jobs@beta"), id="in another queue's registry"),
        pytest.param("mirrored_as_recorded", _job(mirrored={**RECORD, "final": False}), id="old news"),
        pytest.param(
            "mirrored_as_recorded",
            replace(_job(mirrored={**RECORD, "final": False}), unmirrored=1),
            id="old news that nobody replaced",
        ),
        pytest.param("mirrored_as_recorded", UNEVEN, id="one is not mirrored"),
    ],
)
def test_what_must_not_be_in_a_fleet_is_seen(rule, evidence):
    assert rule in {violation.rule for violation in judge(evidence)}


@pytest.mark.parametrize(
    ("bound", "seen"), [pytest.param(1, 1, id="one"), (2, 0), pytest.param(None, 0, id="any number")]
)
def test_containers_of_a_repository_are_counted_over_all_hosts(bound, seen):
    evidence = replace(SOUND, spans=(), lives=(FIRST, SECOND), bounds={"web": bound}, hosts=2)

    assert len(list(bounded_per_repository(evidence))) == seen


@pytest.mark.parametrize(("begin", "seen"), [(10.5, 1), pytest.param(11.0, 0, id="just after")])
def test_without_an_engine_the_journals_tell(begin, seen):
    spans = (SPAN, replace(SPAN, container="pi-job-2", begin=begin, end=12.0))
    evidence = replace(SOUND, spans=spans, lives=None, bounds={"one": 1}, hosts=2)

    assert len(list(bounded_per_repository(evidence))) == seen


def test_a_job_of_a_forge_is_one_that_the_queue_can_hold():
    job_id, job = forge_job("acme/web", "d1")

    assert job_id == "gh-d1"
    assert decode(json.dumps(["dispatch.jobs.run", None, [], {"job": encode(job)}]).encode()) == job


def test_packets_are_dropped_without_a_word_and_what_was_sent_before_arrives_late(
    valkey, valkey_url, tmp_path
):
    with BlackHole(tmp_path, valkey_url) as hole:
        client = redis.Redis.from_url(hole.url, socket_timeout=0.2)
        assert client.set("before", "1")

        hole.swallow()
        for call in (lambda: client.set("meanwhile", "1"), lambda: client.set("as a new caller", "1")):
            with pytest.raises(redis.exceptions.TimeoutError):
                call()
        assert valkey.keys() == [b"before"]

        hole.pass_on()
        assert client.set("after", "1")
        until(lambda: valkey.dbsize() == 3, seconds=5, what="it arrives")
        assert sorted(valkey.keys()) == [b"after", b"before", b"meanwhile"]
        client.close()
