"""RQ's tools see the truth: each of our steps leaves what RQ's own methods leave of a twin job."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest
from rq import Queue
from rq.executions import Execution
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.results import Result
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker

from dispatch.queue.moving import move
from dispatch.queue.owner import execution_id
from dispatch.queue.queues import DispatchJob, rq_queue
from dispatch.queue.registration import Registration
from runs.outcome import Outcome
from tests.dispatch.queuekit import QUEUE, Host, everything

OURS = "local-1"
TWIN = "local-2"
OTHER = "pi-jobs@beta"
TTL = 90
# The fields that are ours alone.
OUR_FIELDS = re.compile(
    rb"taker|host|left|attempt|attempts|attemptLog|putBacks|firstQueued|scope|reason|until|since"
)
OUR_KEYS = re.compile(r"takers:|pi-jobs:taken|waiters:|records:|containers:|queues:known")


class OneRow(Registration):
    def _set_ip_address(self, connection):
        self.ip_address = "unknown"


@pytest.fixture
def host(valkey):
    host = Host(valkey)
    host.enqueue(OURS)
    return host


@pytest.fixture
def worker(valkey, host):
    """RQ's row of our worker, whose figures both ways count."""
    worker = OneRow(valkey, host.owner, QUEUE)
    worker.register_birth()
    return worker


def twin(client):
    Host(client).enqueue(TWIN)
    client.lrem(f"rq:queue:{QUEUE}", 1, TWIN)
    return DispatchJob.fetch(TWIN, connection=client, serializer=JSONSerializer)


def begin_as_rq(client, worker):
    job = twin(client)
    with client.pipeline() as pipeline:
        execution = Execution.create(job, TTL, pipeline, worker_name=worker.name)
        job.prepare_for_execution(worker.name, pipeline)
        pipeline.persist(job.key)
        pipeline.execute()
    return job, execution


def finish_as_rq(client, worker, value):
    job, execution = begin_as_rq(client, worker)
    worker.handle_execution_ended(job, rq_queue(client, QUEUE), TTL)
    job._result = value
    job._status = JobStatus.FINISHED
    worker.handle_job_success(
        job=job,
        queue=rq_queue(client, QUEUE),
        started_job_registry=job.started_job_registry,
        execution=execution,
    )


def fail_as_rq(client, worker, text):
    job, execution = begin_as_rq(client, worker)
    worker.handle_execution_ended(job, rq_queue(client, QUEUE), TTL)
    worker.handle_job_failure(job, rq_queue(client, QUEUE), exc_string=text, execution=execution)


def seen(client, job_id):
    """All of RQ's keys that are about this job, with what differs between twins named alike."""
    found = {}
    for key, value in everything(client).items():
        about = plain(key, job_id)
        content = plain(value, job_id)
        if not OUR_KEYS.match(key) and ("<id>" in about or "<id>" in str(content)):
            life = client.ttl(key.encode("latin-1"))
            found[about] = (content, round(life / 10))
    return found


def plain(value, job_id):  # noqa: PLR0911 - one return a kind of value
    if isinstance(value, bytes | str):
        return plain_text(value.decode("latin-1") if isinstance(value, bytes) else value, job_id)
    match value:
        case dict():
            return {
                plain(name, job_id): plain(content, job_id)
                for name, content in value.items()
                if not (isinstance(name, bytes) and OUR_FIELDS.fullmatch(name))
            }
        case set():
            return {plain(one, job_id) for one in value if job_id.encode() in one or b":" not in one}
        case list():
            return [plain(one, job_id) for one in value if concerns(one, job_id)]
        case tuple():
            return tuple(plain(one, job_id) for one in value)
        case float():
            # A score is an instant; the twins are made some milliseconds apart.
            return round((value - time.time()) / 10)
    return value


def plain_text(text, job_id):
    text = re.sub(rf"{job_id}(?!\d)", "<id>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)
    text = re.sub(r"\b\d{10}\.\d+\b", "<epoch>", text)
    return re.sub(r"\b[0-9a-f]{32}\b", "<execution>", text)


def concerns(entry, job_id):
    """Leave out the other twin's entries of a common list or registry, and the ids of a stream's entries."""
    other = TWIN if job_id == OURS else OURS
    return other.encode() not in (entry[0] if isinstance(entry, tuple) else entry)


def without_stream_ids(found):
    return {
        key: ([fields for _, fields in content], life) if key.startswith("rq:results:") else (content, life)
        for key, (content, life) in found.items()
    }


def twins(client):
    return without_stream_ids(seen(client, OURS)), without_stream_ids(seen(client, TWIN))


def test_begin_leaves_what_rq_leaves(valkey, host, worker):
    host.start()
    begin_as_rq(valkey, worker)

    ours, theirs = twins(valkey)

    assert ours == theirs
    assert set(ours) >= {
        "rq:job:<id>",
        "rq:execution:<id>:<execution>",
        "rq:executions:<id>",
        "rq:wip:pi-jobs",
        f"rq:worker:{worker.name}:executions",
    }


def test_whatever_begin_writes_beside_the_job_expires_by_itself(valkey, host):
    name = f"alpha.{host.owner.boot}.{QUEUE}"
    claimed = host.start()
    execution = f"rq:execution:{OURS}:{execution_id(claimed.token)}"

    lives = [valkey.ttl(key) for key in (execution, f"rq:executions:{OURS}", f"rq:worker:{name}:executions")]

    assert [round(life / 10) for life in lives] == [9, 15, 15]


@pytest.mark.parametrize(
    ("outcome", "reason", "value"),
    [
        pytest.param(Outcome.COMPLETED, None, "completed", id="completed"),
        pytest.param(Outcome.POLICY, "worker-abort", "worker-abort", id="policy"),
    ],
)
def test_a_finish_leaves_what_rq_leaves(valkey, host, worker, outcome, reason, value):
    host.steps.end(host.start(), outcome=outcome, reason=reason, record=b"{}")
    worked = float(valkey.hget(worker.key, "total_working_time"))
    finish_as_rq(valkey, worker, value)

    ours, theirs = twins(valkey)

    assert ours == theirs
    assert "rq:results:<id>" in ours
    assert valkey.hget(worker.key, "successful_job_count") == b"2"
    assert 0 < worked < float(valkey.hget(worker.key, "total_working_time")) < 10


def test_a_failure_leaves_what_rq_leaves(valkey, host, worker):
    host.steps.end(host.start(), outcome=Outcome.FAILED, reason="container-detached", record=b"{}")
    fail_as_rq(valkey, worker, "container-detached")

    ours, theirs = twins(valkey)

    assert ours == theirs
    assert valkey.hget(worker.key, "failed_job_count") == b"2"


def test_a_stall_leaves_what_a_failure_of_rq_leaves(valkey, host, worker):
    host.start()
    Host(valkey, name="beta", host_id="bbbb", boot_number=1).sweeper.at_boot([QUEUE])
    Host(valkey, boot_number=2).sweeper.at_boot([QUEUE])
    fail_as_rq(valkey, worker, "stalled")

    ours, theirs = twins(valkey)

    # RQ lets the index of executions expire, where we remove it.
    theirs.pop("rq:executions:<id>", None)
    assert ours == theirs


def test_put_off_leaves_what_rq_leaves_of_a_scheduled_job(valkey, host):
    claimed = host.claim()
    moment = datetime.fromtimestamp(claimed.now_ms // 1000 + 60, UTC)
    host.put_off(claimed, round(moment.timestamp() * 1000))
    rq_queue(valkey, QUEUE).schedule_job(twin(valkey), moment)

    ours, theirs = twins(valkey)

    assert ours == theirs
    assert ScheduledJobRegistry(QUEUE, connection=valkey).get_scheduled_time(OURS) == moment


def test_a_retry_leaves_what_rq_leaves_of_a_scheduled_retry(valkey, host, worker):
    host.again(host.start(), delay_ms=60_000)
    job, execution = begin_as_rq(valkey, worker)
    job.retries_left, job.retry_intervals = 1, [60]
    worker.handle_execution_ended(job, rq_queue(valkey, QUEUE), TTL)
    worker.handle_job_failure(job, rq_queue(valkey, QUEUE), exc_string="infra", execution=execution)
    valkey.hdel(job.key, "retries_left", "retry_intervals")

    ours, theirs = twins(valkey)

    for one in (ours, theirs):
        # The time of the attempt's end, which RQ writes as the job's last sign of life too.
        one["rq:job:<id>"][0].pop("last_heartbeat")
    assert ours == theirs


def test_promotion_leaves_what_rq_leaves_of_an_enqueued_job(valkey, host):
    host.put_off(host.claim(), 1)
    host.promoter.promote([QUEUE])
    job = twin(valkey)
    rq_queue(valkey, QUEUE)._enqueue_job(job, at_front=True)

    ours, theirs = twins(valkey)

    assert ours == theirs


@pytest.mark.parametrize("asleep", [False, True], ids=["in line", "asleep"])
def test_a_move_leaves_what_rq_leaves_of_a_job_given_to_that_queue(valkey, host, asleep):
    if asleep:
        host.put_off(host.claim(), 4_000_000_000_000)
    move(valkey, [OURS.encode()], source=QUEUE, target=OTHER)
    job, queue = twin(valkey), rq_queue(valkey, OTHER)
    job.origin = OTHER
    if asleep:
        queue.schedule_job(job, datetime.fromtimestamp(4_000_000_000, UTC))
    else:
        queue._enqueue_job(job)

    ours, theirs = twins(valkey)

    assert ours == theirs
    assert (f"rq:scheduled:{OTHER}" if asleep else f"rq:queue:{OTHER}") in ours
    assert valkey.sismember("rq:queues", f"rq:queue:{OTHER}")


def test_rq_reads_our_job_back(valkey, host):
    host.beats.register()
    claimed = host.start()
    host.beats.beat([claimed])

    job = Job.fetch(OURS, connection=valkey, serializer=JSONSerializer)
    [worker] = BaseWorker.all(connection=valkey, job_class=Job, queue_class=Queue)

    assert job.get_status() is JobStatus.STARTED
    assert StartedJobRegistry(QUEUE, connection=valkey).get_job_ids(cleanup=False) == [OURS]
    assert [one.job_id for one in job.get_executions()] == [OURS]
    assert [one.job_id for one in worker.get_current_executions()] == [OURS]
    assert (worker.name, worker.get_state()) == (f"alpha.{host.owner.boot}.{QUEUE}", "busy")
    assert (job.timeout, job.result_ttl, job.failure_ttl) == (-1, 86400, 604800)
    assert job.description == OURS


@pytest.mark.parametrize("started", [True, False], ids=["started", "in hand"])
def test_rq_reads_the_reason_back_and_nothing_else(valkey, host, started):
    claimed = host.start() if started else host.claim()
    host.steps.end(claimed, outcome=Outcome.FAILED, reason="worker-lost", record=b'{"secret": 1}')

    result = Job.fetch(OURS, connection=valkey, serializer=JSONSerializer).latest_result()

    assert (result.type, result.exc_string, result.return_value) == (Result.Type.FAILED, "worker-lost", None)
    assert FailedJobRegistry(QUEUE, connection=valkey).get_job_ids() == [OURS]


def test_rq_reads_a_refusal_as_a_finished_job(valkey, host):
    host.refuse(host.claim())

    job = Job.fetch(OURS, connection=valkey, serializer=JSONSerializer)

    assert job.get_status() is JobStatus.FINISHED
    assert job.return_value() == "over-budget"
    assert job.ended_at is not None
    assert FinishedJobRegistry(QUEUE, connection=valkey).get_job_ids() == [OURS]


def test_rqs_own_clean_up_leaves_a_beaten_job_alone(valkey, host):
    claimed = host.start()
    host.beats.beat([claimed])

    StartedJobRegistry(QUEUE, connection=valkey, serializer=JSONSerializer).cleanup()

    assert host.end(claimed) == "done"


def test_a_beat_keeps_an_execution_as_rqs_own_beat_does(valkey, host, worker):
    claimed = host.start()
    job, execution = begin_as_rq(valkey, worker)
    for job_id, execution_name in ((OURS, execution_id(claimed.token)), (TWIN, execution.id)):
        hash_key = f"rq:execution:{job_id}:{execution_name}"
        valkey.expire(hash_key, 1)
        valkey.hset(hash_key, "last_heartbeat", "0.5")
        valkey.expire(f"rq:executions:{job_id}", 1)
        valkey.zadd(f"rq:executions:{job_id}", {execution_name: 5})
        valkey.zadd("rq:wip:pi-jobs", {f"{job_id}:{execution_name}": 5})

    host.beats.beat([claimed])
    with valkey.pipeline() as pipeline:
        execution.heartbeat(job.started_job_registry, TTL, pipeline)
        pipeline.execute()

    ours, theirs = twins(valkey)
    assert ours == theirs
    assert ours["rq:execution:<id>:<execution>"][0]["last_heartbeat"] == "<epoch>"
    assert ours["rq:wip:pi-jobs"][0] == [("<id>:<execution>", 9)]


def test_a_beat_makes_no_execution_that_has_gone(valkey, host):
    claimed = host.start()
    host.end(claimed)

    host.beats.beat([claimed])

    assert not list(valkey.scan_iter("rq:execution*"))
    assert valkey.zcard("rq:wip:pi-jobs") == 0


@pytest.mark.parametrize("move", ["end", "again"])
def test_an_ending_makes_no_row_of_a_worker_whose_row_has_expired(valkey, host, move):
    getattr(host, move)(host.start())

    assert not list(valkey.scan_iter("rq:worker:*"))


def test_an_attempt_that_never_began_counts_as_no_work_of_rqs_worker(valkey, host, worker):
    host.again(host.claim(), delay_ms=0)

    assert valkey.hget(worker.key, "failed_job_count") is None


def test_the_row_of_a_worker_that_expired_is_written_again(valkey, host):
    host.beats.register()
    name = f"rq:worker:alpha.{host.owner.boot}.{QUEUE}"
    valkey.delete(name)

    host.beats.beat([])

    assert valkey.hget(name, "birth") is not None
    assert 0 < valkey.ttl(name) <= 150


def test_registering_may_be_repeated_and_a_new_boot_serves_at_once(valkey, host):
    host.beats.register()
    host.beats.register()
    Host(valkey).beats.register()

    Host(valkey, boot_number=2).beats.register()

    assert len(BaseWorker.all(connection=valkey)) == 2


def test_the_rows_of_killed_boots_leave_rqs_list_with_the_next_boot(valkey, host):
    host.beats.register()
    valkey.delete(f"rq:worker:alpha.{host.owner.boot}.{QUEUE}")
    new = Host(valkey, boot_number=2)

    new.beats.register()

    row = f"rq:worker:alpha.{new.owner.boot}.{QUEUE}".encode()
    assert valkey.smembers("rq:workers") == valkey.smembers(f"rq:workers:{QUEUE}") == {row}


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_an_ending_clears_its_registry_of_ids_whose_time_is_up(valkey, host, outcome):
    for registry in ("finished", "failed"):
        valkey.zadd(f"rq:{registry}:{QUEUE}", {"old": 1, "kept": time.time() + 100})

    host.end(host.start(), outcome)

    registry = "failed" if outcome is Outcome.FAILED else "finished"
    assert valkey.zrange(f"rq:{registry}:{QUEUE}", 0, -1) == [b"kept", OURS.encode()]


def test_a_worker_that_ended_its_runs_leaves_rqs_list(valkey, host):
    host.beats.register()

    host.beats.unregister()

    assert BaseWorker.all(connection=valkey) == []


def test_registering_leaves_the_clients_timeouts_and_the_process_name_alone(valkey_url, host):
    from pidispatch_site import clients

    client = clients.queue_client(valkey_url)

    row = Registration(client, host.owner, QUEUE)
    row.procline("anything")

    assert client.connection_pool.connection_kwargs["socket_timeout"] == 2.0
