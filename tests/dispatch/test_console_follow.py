"""Following a job: one line a change, its end by record or by the queue's word, and no harm done to it."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dispatch.console.follow import EXIT_CODES, Follower, Patience
from dispatch.queue import keys
from dispatch.queue.dropping import drop
from dispatch.queue.waiters import Waiters, WaitReason
from pidispatch_site import clients
from pidispatch_site.errors import OperationalError
from runs.files import Entry, RecordFiles
from runs.outcome import Outcome, Reason
from tests.dispatch.consolekit import own_server
from tests.dispatch.queuekit import QUEUE, Host, age_beat
from tests.harness.records import a_record
from tests.harness.worker_process import until

JOB_ID = "local-1"
QUICK = Patience(look=0.01, why=0.05, record=0.3, valkey=0.5)


class Watch:
    """A follower in a thread, and what it has said."""

    def __init__(self, client, logs_dir, *, here="here", patience=QUICK):
        self.lines = []
        self._changed = threading.Condition()
        self.follower = Follower(
            client, JOB_ID, logs_dir=logs_dir, here=here, say=self._say, patience=patience
        )
        self._pool = ThreadPoolExecutor(1)
        self._future = self._pool.submit(self.follower.to_the_end)
        self._pool.shutdown(wait=False)

    def _say(self, line):
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def until(self, text):
        with self._changed:
            assert self._changed.wait_for(lambda: any(text in line for line in self.lines), 5), self.lines

    def ending(self):
        return self._future.result(timeout=5)

    @property
    def told(self):
        return [re.sub(r"^ +\d+\.\d s  ", "", line) for line in self.lines]


@pytest.fixture
def host(valkey):
    host = Host(valkey, name="there")
    host.enqueue(JOB_ID)
    host.beats.register()
    return host


@pytest.fixture
def watch(valkey_url, tmp_path, host):
    client = clients.state_client(valkey_url)
    yield lambda **options: Watch(client, tmp_path, **options)
    client.close()


def test_each_change_is_one_line_with_the_time_passed(watch, host):
    watched = watch()
    watched.until("queued")
    claimed = host.claim()
    watched.until("taken by there")
    host.put_off(claimed, 1)
    watched.until("asleep: its folder or repository is busy")
    host.promoter.promote([QUEUE])
    watched.until("queued")
    claimed = host.start()
    watched.until("running on there")
    looks = looks_so_far(host)
    until(lambda: looks_so_far(host) > looks + 5, seconds=5, what="some more looks")
    host.end(claimed)

    watched.ending()

    assert [line for line in watched.told if line not in ("queued", "taken by there")] == [
        "asleep: its folder or repository is busy",
        "running on there",
        "completed",
    ]
    assert all(re.match(r"^ {2,6}\d+\.\d s  ", line) for line in watched.lines)


def looks_so_far(host):
    return host.client.info("commandstats").get("cmdstat_hmget", {}).get("calls", 0)


def test_the_record_of_this_host_tells_how_it_ended(watch, host, tmp_path):
    watched = watch(here="there")
    claimed = host.start()
    watched.until("running")
    host.end(claimed)
    # The recorder of this host comes a moment later.
    record = a_record(job_id=JOB_ID, outcome=Outcome.POLICY, reason=Reason.RUNNER_POLICY.value)
    RecordFiles(tmp_path).write([Entry(record, record.to_bytes())])

    ending = watched.ending()

    assert (ending.outcome, ending.reason) == (Outcome.POLICY, "runner-policy")
    assert ending.record is not None
    assert EXIT_CODES[ending.outcome] == 2


@pytest.mark.parametrize(
    ("end", "outcome", "reason"),
    [
        pytest.param(lambda host, job: host.end(job), Outcome.COMPLETED, None, id="completed"),
        pytest.param(lambda host, job: host.end(job, Outcome.FAILED), Outcome.FAILED, None, id="failed"),
        pytest.param(
            lambda host, job: host.steps.end(
                job, outcome=Outcome.POLICY, reason="worker-abort", record=b"{}"
            ),
            Outcome.POLICY,
            "worker-abort",
            id="stopped",
        ),
    ],
)
def test_a_job_of_another_host_ends_by_the_queues_own_word_and_at_once(watch, host, end, outcome, reason):
    watched = watch(patience=Patience(look=0.01, record=60))
    claimed = host.start()
    watched.until("running on there")
    end(host, claimed)

    ending = watched.ending()

    assert (ending.outcome, ending.reason, ending.record) == (outcome, reason, None)


def test_a_retry_is_told_with_its_hour_and_the_job_is_followed_on(watch, host):
    watched = watch()
    host.again(host.start(), delay_ms=3_600_000)

    watched.until("asleep: it could not run and is tried again, until ")

    assert re.search(r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(attempt 2 of 2\)$", watched.told[-1])
    drop(host.client, JOB_ID)
    ending = watched.ending()
    assert (ending.outcome, ending.reason) == (Outcome.POLICY, Reason.OPERATOR_CANCEL)


def test_a_parked_job_is_told_which_cap_holds_it_up_also_when_that_changes(watch, host):
    watched = watch()
    for cause, words in {
        "over-budget:day": "the cap of starts a day is reached",
        "scope-cap:week": "the cap of its folder or repository, starts a week, is reached",
        "later": "a cap is used up",
    }.items():
        claimed = host.claim()
        host.steps.put_off(claimed, until_ms=claimed.now_ms + 3_600_000, reason="cap", cause=cause)
        watched.until(f"asleep: {words}, until ")
        Waiters(host.client).wake_oldest([QUEUE], WaitReason.CAP)
        host.promoter.promote([QUEUE])

    drop(host.client, JOB_ID)
    with pytest.raises(OperationalError):
        watched.ending()


def test_a_job_that_is_taken_out_of_the_queue_ends_the_watching(watch, host):
    watched = watch()
    watched.until("queued")

    drop(host.client, JOB_ID)

    with pytest.raises(OperationalError, match=f"Job {JOB_ID} is no longer in the queue"):
        watched.ending()


def test_a_state_that_an_rq_tool_set_ends_the_watching(watch, host):
    watched = watch()
    watched.until("queued")

    host.client.hset(keys.job(JOB_ID.encode()), "status", "canceled")

    with pytest.raises(OperationalError, match="no longer in the queue"):
        watched.ending()


def test_a_job_that_nobody_would_take_is_told_so(watch, host):
    age_beat(host.client, host, 3600)

    watched = watch()

    watched.until("queued; no worker is there to take jobs from pi-jobs")
    host.start()
    watched.until("running on there")


@pytest.fixture
def server():
    with own_server() as server, server.client() as client:
        Host(client).enqueue(JOB_ID)
        yield server


@pytest.fixture
def client(server):
    client = clients.state_client(server.url)
    yield client
    client.close()


def test_an_outage_is_waited_out(tmp_path, server, client):
    watched = Watch(client, tmp_path, patience=Patience(look=0.01, record=0, valkey=30))
    watched.until("queued")
    server.kill()
    watched.until("Valkey does not answer; watching again when it does")
    server.start()
    with server.client() as again:
        other = Host(again, name="there")
        other.end(other.start())

    assert watched.ending().outcome is Outcome.COMPLETED


def test_an_outage_without_an_end_ends_the_watching_and_says_that_the_job_stays(tmp_path, server, client):
    watched = Watch(client, tmp_path)
    watched.until("queued")

    server.kill()

    with pytest.raises(OperationalError, match=f"job {JOB_ID} stays where it is"):
        watched.ending()
