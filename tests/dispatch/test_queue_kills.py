"""A worker killed at any line loses no job and runs none twice: real processes, SIGKILL, the real server."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from functools import partial

import pytest

from dispatch.queue import keys
from dispatch.queue.popper import Claimed
from dispatch.queue.timings import Timings
from dispatch.queue.transitions import Step
from pidispatch_site import clients
from runs.outcome import Outcome
from tests.dispatch.queuekit import (
    MOVES,
    QUEUE,
    Host,
    age_beat,
    assert_sound,
    hash_of,
    records,
)

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
JOBS_UNDER_FIRE = 150
TIMINGS = Timings(late=0.4, gone=0.8, grace=0.3, beat_every=0.1)


def kill_at(deadly: str, point: str) -> None:
    if point == deadly:
        os.kill(os.getpid(), signal.SIGKILL)


def host_at(url: str, **kwargs) -> Host:
    return Host(clients.popper_client(url, pop_seconds=2), **kwargs)


def live_until(url: str, moves: list[str], deadly: str) -> None:
    """Be a worker that does these moves with one job and dies at this point."""
    host = host_at(url, delays=partial(kill_at, deadly))
    claimed = host.popper.wait(1) if deadly == "after move" else host.claim()
    for move in moves:
        MOVES[move](host, claimed)


def sweep_until(url: str, deadly: str) -> None:
    """Be a sweeping worker that dies at this point."""
    host_at(url, name="beta", host_id="bbbb", delays=partial(kill_at, deadly)).sweeper.tick([QUEUE])


def run_and_be_killed(target, *args) -> None:
    child = PROCESSES.Process(target=target, args=args)
    child.start()
    child.join(timeout=20)
    assert child.exitcode == -signal.SIGKILL, "the point was not reached"


def finals(client) -> Counter[str]:
    """How many final records each job has, over all hosts."""
    found = Counter()
    for host_id in ("aaaa", "bbbb", "cccc"):
        found.update(one["job"] for one in records(client, host_id) if one.get("final", True))
    return found


BEGUN = ["begin"]


@pytest.mark.parametrize("who", ["its restart", "a peer"])
@pytest.mark.parametrize(
    ("moves", "deadly", "status"),
    [
        ([], "after move", "queued"),
        ([], "after pop", "queued"),
        (["give back"], "before give back", "queued"),
        (["give back"], "after give back", "queued"),
        (["put off"], "before put off", "queued"),
        (["put off"], "after put off", "scheduled"),
        (["refuse"], "before refuse", "queued"),
        (["refuse"], "after refuse", "finished"),
        (["end failed"], "before end", "queued"),
        (["end failed"], "after end", "failed"),
        (BEGUN, "before begin", "queued"),
        # From here on it may have spent: never run again.
        (BEGUN, "after begin", "failed"),
        ([*BEGUN, "end"], "before end", "failed"),
        ([*BEGUN, "end"], "after end", "finished"),
        ([*BEGUN, "again"], "before again", "failed"),
        ([*BEGUN, "again"], "after again", "scheduled"),
    ],
    ids=lambda value: value if isinstance(value, str) else ", ".join(value) or "pop",
)
def test_a_job_of_a_worker_killed_at_this_point_is_settled_once(
    valkey, valkey_url, moves, deadly, status, who
):
    Host(valkey).enqueue("local-1")

    run_and_be_killed(live_until, valkey_url, moves, deadly)
    if who == "a peer":
        age_beat(valkey, Host(valkey), 1000)
        Host(valkey, name="beta", host_id="bbbb").sweeper.tick([QUEUE])
    else:
        Host(valkey, boot_number=2).sweeper.at_boot([QUEUE])

    assert hash_of(valkey, "local-1")["status"] == status
    assert_sound(valkey, ["local-1"])
    assert finals(valkey)["local-1"] == (status in {"finished", "failed"})


@pytest.mark.parametrize(
    ("started", "deadly"),
    [(False, "before put back"), (False, "after put back"), (True, "before stall"), (True, "after stall")],
)
def test_a_sweep_killed_at_this_point_is_finished_by_the_next(valkey, valkey_url, started, deadly):
    host = Host(valkey)
    host.enqueue("local-1")
    host.start() if started else host.claim()
    age_beat(valkey, host, 1000)

    run_and_be_killed(sweep_until, valkey_url, deadly)
    Host(valkey, name="gamma", host_id="cccc").sweeper.tick([QUEUE])

    assert_sound(valkey, ["local-1"])
    assert hash_of(valkey, "local-1")["status"] == ("failed" if started else "queued")
    assert hash_of(valkey, "local-1")["putBacks"] == ("0" if started else "1")
    assert finals(valkey)["local-1"] == started


def work(url: str, name: str, host_id: str, boot_number: int, queue_events: str) -> None:
    """Be a whole worker, whose jobs take every way there is; each begin is noted in a list of the server."""
    chance = random.Random(f"{name}{boot_number}")
    who = {"name": name, "host_id": host_id, "boot_number": boot_number}
    host = host_at(url, **who, timings=TIMINGS, clock=time.monotonic)
    host.beats.register()
    host.sweeper.at_boot([QUEUE])
    while True:
        host.beats.beat([])
        host.sweeper.tick([QUEUE])
        host.promoter.promote([QUEUE])
        popped = host.popper.wait(0.05) if chance.random() < 0.3 else host.popper.pop()
        if isinstance(popped, Claimed):
            host.held.add(popped.token)
            take_some_way(host, popped, chance, queue_events)
            host.held.discard(popped.token)


def take_some_way(host: Host, claimed: Claimed, chance: random.Random, queue_events: str) -> None:
    way = chance.random()
    if way < 0.1:
        host.steps.give_back(claimed)
    elif way < 0.2:
        host.put_off(claimed, 1)
    elif way < 0.25:
        host.refuse(claimed)
    elif host.begin(claimed) is Step.DONE:
        host.client.rpush(queue_events, f"{claimed.job_id} {claimed.attempt}")
        time.sleep(chance.random() / 50)
        if way < 0.35 and claimed.attempt + 1 < claimed.attempts:
            host.again(claimed, delay_ms=0)
        else:
            host.end(claimed, chance.choice([Outcome.COMPLETED, Outcome.FAILED]))


def test_two_hosts_race_for_jobs_and_each_is_started_once(valkey, valkey_url):
    job_ids = [f"local-{number}" for number in range(150)]
    Host(valkey).enqueue(*job_ids)
    workers = [start_worker(valkey_url, name, 1) for name in ("alpha", "beta")]
    try:
        wait_until_over(valkey, job_ids, lambda: None)
    finally:
        for one in workers:
            one.kill()
            one.join()

    begun = [one.decode() for one in valkey.lrange("events", 0, -1)]
    assert len(begun) == len(set(begun))
    assert finals(valkey) == dict.fromkeys(job_ids, 1)
    assert_sound(valkey, job_ids)


def test_workers_killed_again_and_again_settle_every_job_once(valkey, valkey_url):
    job_ids = [f"local-{number}" for number in range(JOBS_UNDER_FIRE)]
    Host(valkey).enqueue(*job_ids)
    boots = Counter()
    workers = {}
    kills = Counter()

    def kill_and_restart():
        if kills.total() < 10:
            # A fast machine must not be done before it was under fire.
            job_ids.append(f"local-{len(job_ids)}")
            Host(valkey).enqueue(job_ids[-1])
        for name in ("alpha", "beta"):
            if name in workers and random.random() < 0.4:
                continue
            if name in workers:
                workers[name].kill()
                workers[name].join()
                kills[name] += 1
            boots[name] += 1
            workers[name] = start_worker(valkey_url, name, boots[name])

    try:
        wait_until_over(valkey, job_ids, kill_and_restart, enough=lambda: kills.total() >= 10)
    finally:
        for one in workers.values():
            one.kill()
            one.join()

    begun = [one.decode() for one in valkey.lrange("events", 0, -1)]
    assert kills.total() >= 10
    assert len(begun) == len(set(begun))
    assert finals(valkey) == dict.fromkeys(job_ids, 1)
    assert_sound(valkey, job_ids)
    left = [key.decode() for key in valkey.scan_iter("*") if b"execution" in key or b":taken:" in key]
    assert left == []


def start_worker(url: str, name: str, boot_number: int):
    host_id = {"alpha": "aaaa", "beta": "bbbb"}[name]
    child = PROCESSES.Process(target=work, args=(url, name, host_id, boot_number, "events"))
    child.start()
    return child


def wait_until_over(client, job_ids, each_time, *, enough=lambda: True) -> None:
    deadline = time.monotonic() + 40
    while finals(client).total() < len(job_ids) or not enough():
        each_time()
        time.sleep(random.uniform(0.05, 0.2))
        assert time.monotonic() < deadline, left_behind(client, job_ids)


def left_behind(client, job_ids) -> str:
    jobs = {job_id: hash_of(client, job_id) for job_id in job_ids}
    return json.dumps(
        {
            job_id: {name: job.get(name) for name in ("status", "taker", "reason", "putBacks")}
            for job_id, job in jobs.items()
            if job.get("status") not in {"finished", "failed"}
        }
    ) + str(client.zrange(keys.queue_keys(QUEUE).takers, 0, -1, withscores=True))
