"""Work enters once: the same id, wherever and however it stands, is not enqueued again."""

from __future__ import annotations

import threading

import pytest
from rq.job import Job
from rq.serializers import JSONSerializer

from dispatch.jobs import CALLABLE, encode, local_job
from dispatch.queue import keys
from dispatch.queue.new_jobs import CRON, FORGE, LOCAL
from dispatch.queue.producer import Enqueued, Exists, Producer
from dispatch.queue.states import State
from pidispatch_site import clients
from runs.outcome import Outcome
from tests.dispatch.queuekit import JOB, QUEUE, Host, everything, hash_of, listed, now_ms

DAY = 24 * 3600


@pytest.fixture
def host(valkey):
    return Host(valkey)


def test_a_job_stands_at_the_back_with_all_its_fields(valkey, host):
    host.enqueue("local-0")
    before = now_ms(valkey)

    answer = host.producer.enqueue(QUEUE, "local-1", JOB, scope_hash="abcd", needs=["w:b", "s:a"])

    job = hash_of(valkey, "local-1")
    assert isinstance(answer, Enqueued)
    assert before <= answer.first_queued_ms <= now_ms(valkey)
    assert listed(valkey) == ["local-0", "local-1"]
    assert (job["attempt"], job["attempts"], job["putBacks"]) == ("0", "2", "0")
    assert (job["firstQueued"], job["scope"]) == (str(answer.first_queued_ms), "abcd")
    assert (job["needs"], hash_of(valkey, "local-0").get("needs")) == ("s:a,w:b", None)
    assert (job["status"], job["origin"], job["timeout"]) == ("queued", QUEUE, "-1")
    assert valkey.ttl(keys.job(b"local-1")) == -1


@pytest.mark.parametrize(
    ("keeping", "attempts", "finished", "failed"),
    [
        pytest.param(LOCAL, 2, DAY, 7 * DAY, id="local"),
        pytest.param(FORGE, 2, 31 * DAY, 31 * DAY, id="forge"),
        pytest.param(CRON, 1, DAY, 7 * DAY, id="cron"),
    ],
)
def test_an_id_is_known_for_as_long_as_its_source_asks(valkey, host, keeping, attempts, finished, failed):
    for job_id in ("one", "two"):
        host.producer.enqueue(QUEUE, job_id, JOB, keeping=keeping)

    first = host.start()
    host.end(first)
    host.end(host.claim(), Outcome.FAILED)

    assert first.attempts == attempts
    lives = [valkey.ttl(keys.job(job_id)) for job_id in (b"one", b"two")]
    assert [round(life / 60) for life in lives] == [finished // 60, failed // 60]


def test_nothing_but_ids_is_in_what_rq_logs(valkey, host):
    secret = local_job("/srv/canary-folder", task="canary-task")
    host.producer.enqueue(QUEUE, "local-1", secret)

    job = hash_of(valkey, "local-1")

    assert job["description"] == "local-1"
    assert not [name for name, value in job.items() if "canary" in value and name != "data"]


def test_rq_reads_the_call_that_only_our_worker_runs(valkey, host):
    host.enqueue("local-1")

    job = Job.fetch("local-1", connection=valkey, serializer=JSONSerializer)

    assert (job.func_name, job.args, job.kwargs) == (CALLABLE, [], {"job": encode(JOB)})
    with pytest.raises(RuntimeError, match="runworker"):
        job.perform()


def left_alone(host):
    pass


def claimed(host):
    host.claim()


def started(host):
    host.start()


def sleeping(host):
    host.put_off(host.claim())


def finished(host):
    host.end(host.start())


def failed(host):
    host.end(host.start(), Outcome.FAILED)


@pytest.mark.parametrize(
    ("bring", "state"),
    [
        pytest.param(left_alone, State.QUEUED, id="waiting"),
        pytest.param(claimed, State.IN_HAND, id="in hand"),
        pytest.param(started, State.STARTED, id="started"),
        pytest.param(sleeping, State.SCHEDULED, id="sleeping"),
        pytest.param(finished, State.FINISHED, id="finished"),
        pytest.param(failed, State.FAILED, id="failed"),
    ],
)
@pytest.mark.parametrize("queue", [QUEUE, "pi-jobs@beta"])
def test_an_id_that_exists_is_answered_with_its_state_and_left_alone(valkey, host, bring, state, queue):
    host.enqueue("local-1")
    bring(host)
    before = everything(valkey)

    answer = host.producer.enqueue(queue, "local-1", local_job("/elsewhere", task="other"))

    assert answer == Exists(state=state, queue=QUEUE)
    after = everything(valkey)
    for names in (b"queues:known".decode(), "rq:queues"):
        before.pop(names), after.pop(names)
    assert after == before


def test_ids_that_differ_only_outside_rqs_alphabet_are_different_jobs(host, valkey):
    host.enqueue("gh-a/b", "gh-a_b", "gh-a:b", "gh-a_2fb")

    assert len(set(listed(valkey))) == 4


@pytest.mark.parametrize("job_id", ["", "x" * 201, "\ud800"], ids=["empty", "long", "surrogate"])
def test_an_id_that_can_be_none_is_refused_before_anything_is_written(valkey, host, job_id):
    with pytest.raises(ValueError, match="job id"):
        host.producer.enqueue(QUEUE, job_id, JOB)

    assert listed(valkey) == []


def test_many_producers_at_once_enqueue_one_job(valkey_url, valkey):
    answers = []

    def produce():
        answers.append(Producer(clients.state_client(valkey_url)).enqueue(QUEUE, "local-1", JOB))

    threads = [threading.Thread(target=produce) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(timeout=10)

    assert [type(one) for one in answers].count(Enqueued) == 1
    assert listed(valkey) == ["local-1"]


def test_a_queue_is_known_with_its_first_job(valkey, host):
    host.producer.enqueue("pi-jobs@alpha", "local-1", JOB)

    assert valkey.smembers("queues:known") == {b"pi-jobs@alpha"}
    assert valkey.smembers("rq:queues") == {b"rq:queue:pi-jobs@alpha"}
