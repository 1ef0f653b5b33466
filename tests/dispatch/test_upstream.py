"""RQ's source, pinned: what we lean on, imitate or must never call. Read a change, then note it."""

from __future__ import annotations

import hashlib
import inspect

import pytest
import rq
from rq import intermediate_queue, queue, registry, results, scripts, worker_registration
from rq.executions import Execution, ExecutionRegistry
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry, StartedJobRegistry
from rq.serializers import JSONSerializer
from rq.worker.base import BaseWorker

from dispatch.queue import keys

PINNED = {
    # The worker's row (dispatch/queue/registration.py): inherited, or overridden.
    BaseWorker.__init__: "86f83bb69582",
    BaseWorker._set_connection: "38ebd371028a",
    BaseWorker._set_ip_address: "939aa1ae57f1",
    BaseWorker.register_birth: "4690ab4f7b74",
    BaseWorker.register_death: "cb2b0be15021",
    BaseWorker.heartbeat: "63b1089fd146",
    BaseWorker.serialize: "219368b12c2d",
    BaseWorker.set_state: "bb8d4f1d93ff",
    BaseWorker.procline: "126ae4ea885e",
    worker_registration.register: "757bc1c839a2",
    worker_registration.clean_worker_registry: "4e48a0d48857",
    registry.FinishedJobRegistry.cleanup: "8d3debb01fc5",
    worker_registration.unregister: "14ac14053479",
    # Executions: begin.lua, beat.lua, shared/execution.lua.
    Execution.create: "b167074a0d20",
    Execution.save: "27a9a8461d65",
    Execution.serialize: "6ebaef2afef4",
    Execution.heartbeat: "d5b2cc74931f",
    Execution.delete: "8c36e0625109",
    ExecutionRegistry.add: "0ee58742c13a",
    StartedJobRegistry.add_execution: "058aeccefc8e",
    BaseWorker.prepare_job_execution: "d08dd32962e3",
    Job.prepare_for_execution: "4e8e0eca634d",
    # Endings: end.lua, refuse.lua, stall.lua, shared/finish.lua.
    BaseWorker.handle_job_success: "9dda7c7d3ca1",
    BaseWorker.handle_job_failure: "7432afe53b9f",
    BaseWorker.handle_execution_ended: "23748b027980",
    Job._handle_success: "35b96f8229b6",
    Job._handle_failure: "3b947507f202",
    Job.cleanup: "16734aeb1eea",
    FailedJobRegistry.add: "f8d6dd39b765",
    registry.BaseRegistry.add: "2ae9a477b803",
    results.Result.save: "1433b6a45f0a",
    results.Result.serialize: "fe329712c924",
    # Sleeping and coming back: put_off.lua, again.lua, promote.lua.
    queue.Queue.schedule_job: "2596db5209e0",
    queue.Queue._persist_job: "2e7cc7271d36",
    queue.Queue._enqueue_async_job: "3c3efebb3730",
    queue.Queue._prepare_for_queue: "cd8e2a082123",
    ScheduledJobRegistry.schedule: "302aa59d2301",
    # Entering: dispatch/queue/producer.py, queues.py. And the direction of the list: claim.lua.
    queue.Queue.enqueue_job: "05ff025c22a0",
    queue.Queue.create_job: "ff1c911b7450",
    queue.Queue.push_job_id: "da2f59b7ff9a",
    queue.Queue.lmove: "7aa797ad300b",
    scripts.save_unique_job: "af0753230560",
    scripts._build_hset_args: "1d0e70e45541",
    Job.to_dict: "9e1a56a9cd4b",
    Job.restore: "859daf950a3e",
    Job.perform: "c8f482e08e17",
    JSONSerializer: "a221a00f7854",
    # Never called, because each is unsafe here: a change may make one usable, or another one unsafe.
    BaseWorker.perform_job: "1f0e40678ae5",
    BaseWorker.clean_registries: "e2c9790c8156",
    StartedJobRegistry.cleanup: "c5cd78c27fc0",
    intermediate_queue.IntermediateQueue.cleanup: "e465aaeb5d29",
}


@pytest.mark.parametrize(("source", "digest"), PINNED.items(), ids=[one.__qualname__ for one in PINNED])
def test_rqs_source_is_the_one_that_was_read(source, digest):
    found = hashlib.sha256(inspect.getsource(source).encode()).hexdigest()[:12]

    assert found == digest, f"rq {rq.__version__} changed {source.__qualname__}: read the change, then update"


def test_rqs_unique_enqueue_is_the_script_that_was_read():
    digest = hashlib.sha256(scripts.UNIQUE_ENQUEUE_SCRIPT.encode()).hexdigest()[:12]

    assert digest == "29cab659d282"


def test_the_key_names_are_rqs_own(valkey):
    name = "pi-jobs@alpha"
    ours = keys.queue_keys(name)
    job = Job("local-1", connection=valkey)
    execution = Execution("e1", "local-1", valkey, worker_name="w")

    assert ours.jobs == queue.Queue(name, connection=valkey).key
    assert [ours.scheduled, ours.started, ours.finished, ours.failed] == [
        one(name, connection=valkey).key
        for one in (ScheduledJobRegistry, StartedJobRegistry, FinishedJobRegistry, FailedJobRegistry)
    ]
    assert keys.job(b"local-1").decode() == job.key == keys.JOB + "local-1"
    assert keys.results(b"local-1").decode() == results.Result.get_key("local-1")
    assert keys.executions(b"local-1").decode() == job.execution_registry.key
    assert keys.execution(b"local-1", "e1").decode() == execution.key
    assert keys.worker_executions("w") == execution.worker_executions_key
    assert keys.worker("w") == BaseWorker.redis_worker_namespace_prefix + "w"
    assert queue.Queue.redis_queues_keys == keys.QUEUES


def test_the_words_of_a_result_are_rqs_own():
    assert (results.Result.Type.SUCCESSFUL.value, results.Result.Type.FAILED.value) == (1, 2)


def test_an_unknown_field_of_the_hash_does_not_disturb_rq(valkey):
    """Our fields stand beside RQ's: its reader must go on ignoring them."""
    job = Job("local-1", connection=valkey)

    job.restore({b"data": b"[]", b"taker": b"x", b"attempt": b"1", b"left": b"x", b"until": b"5"})

    assert job.get_status(refresh=False) is not None
    assert FinishedJobRegistry.key_template == "rq:finished:{0}"
