"""Reading a whole queue by following `next`, while its jobs are taken, cancelled, put back and woken."""

from __future__ import annotations

import random
from collections import Counter
from urllib.parse import urlencode

import pytest

from dispatch.console import lookup, queue_shown
from dispatch.ids import natural_id
from dispatch.queue import keys, reading
from dispatch.queue.dropping import Drop, drop
from dispatch.queue.turns import Turn
from dispatch.queue.waiters import Waiters
from tests.dispatch.queuekit import QUEUE, Host, everything, now_ms, places

NAMES = keys.queue_keys(QUEUE)
SECTIONS = ("running", "waiting", "deferred", "held")
FAR = 10**13
A_TURN = Turn.of(1, b"x").written


def ask(browser, **given):
    return browser.get(f"/api/queue?{urlencode({'queue': QUEUE, **given}, doseq=True)}")


def patiently(browser, **given):
    """Ask as a program does: again where Valkey took too long, as on a busy machine."""
    answers = (ask(browser, **given) for _ in range(5))
    return next(answer for answer in answers if answer.status_code != 503)


def follow(browser, limit, between=lambda: None):
    """Follow `next` to the end and give the answers about the queue; `between` two pages the test goes on."""
    pages, where = [], {}
    while True:
        answer = patiently(browser, limit=limit, **where).json()
        pages += answer["queues"]
        assert max(len(pages[-1][one]["jobs"]) for one in SECTIONS) <= limit
        assert len(pages) <= 50
        if answer["next"] is None:
            return pages
        where = {"next": answer["next"]}
        between()


def jobs_of(pages, section):
    return [job for page in pages for job in page[section]["jobs"]]


def read_ids(pages):
    return Counter(job["job"] for section in SECTIONS for job in jobs_of(pages, section))


def sleep(host, reason, until_ms=FAR):
    claimed = host.claim()
    host.steps.put_off(claimed, until_ms=until_ms, reason=reason)
    return claimed.job_id


# Makes many jobs after the example of one: KEYS its hash, then where they stand; ARGV see `fill`.
MANY = """
for number = 1, tonumber(ARGV[3]) do
  local id = string.format('%s-%05d', ARGV[1], number)
  redis.call('COPY', KEYS[1], ARGV[2] .. id)
  local age = ARGV[4] + (ARGV[1] == 'waiting' and number or number * 7919 % 5000)
  redis.call('HSET', ARGV[2] .. id, 'firstQueued', string.format('%d', age))
  if ARGV[1] == 'waiting' then
    redis.call('RPUSH', KEYS[2], id)
  else
    redis.call('ZADD', KEYS[3], ARGV[5] + number, id)
    redis.call('ZADD', KEYS[4], age, id)
  end
end
"""


def fill(client, **counts):
    """Let many jobs wait, be deferred and held, as one of each does that the product put there.

    Who waits has been queued in the order of the line; those that sleep wake in another one.
    """
    host = Host(client)
    host.enqueue("first-held", "first-deferred", "first-waiting")
    sleep(host, "wait"), sleep(host, "cap")
    for section, count in counts.items():
        example = keys.job(f"first-{section}".encode())
        waiters = keys.waiters(QUEUE, "wait" if section == "held" else "cap")
        began = int(client.hget(example, "firstQueued")) - 20_000
        where = (example, NAMES.jobs, NAMES.scheduled, waiters)
        client.eval(MANY, len(where), *where, section, keys.JOB, count, began, FAR // 1000)
    client.lmove(NAMES.jobs, NAMES.jobs, "LEFT", "RIGHT")
    return host


class Life:
    """What happens to a queue between two pages, at random; `gone` are the jobs that left it."""

    def __init__(self, client, host, seed):
        self.client, self.host, self.random = client, host, random.Random(seed)
        self.hands, self.begun, self.gone, self.appended = [], [], set(), 0
        self.done = Counter()

    def __call__(self):
        for _ in range(25):
            change = self.random.choice(
                (
                    *(self.take, self.take, self.put_back, self.put_off, self.begin, self.again, self.end),
                    *(self.cancel_waiting, self.cancel_sleeping, self.wake, self.promote, self.append),
                )
            )
            if change() is not False:
                self.done[change.__name__] += 1

    def take(self):
        self.hands.append(self.host.claim())

    def put_back(self):
        return bool(self.hands) and self.host.steps.give_back(self._hand())

    def put_off(self):
        until = now_ms(self.client) + self.random.choice([-5000, 10**6, 10**11])
        reason = self.random.choice(["wait", "cap"])
        return bool(self.hands) and self.host.steps.put_off(self._hand(), until_ms=until, reason=reason)

    def begin(self):
        if not self.hands:
            return False
        self.begun.append(self._hand())
        return self.host.begin(self.begun[-1])

    def again(self):
        return bool(self.begun) and self.host.again(self.begun.pop(0))

    def end(self):
        if not self.begun:
            return False
        ended = self.begun.pop()
        self.gone.add(ended.job_id)
        return self.host.end(ended)

    def cancel_waiting(self):
        return self._cancel(self.client.lindex(NAMES.jobs, self.random.randrange(500)))

    def cancel_sleeping(self):
        return self._cancel(self._sleeper())

    def wake(self):
        return bool(Waiters(self.client).wake_these([(QUEUE, self._sleeper()) for _ in range(3)]))

    def promote(self):
        return bool(self.host.promoter.promote([QUEUE]))

    def append(self):
        self.appended += 1
        self.host.enqueue(f"new-{self.appended}")

    def _hand(self):
        return self.hands.pop(self.random.randrange(len(self.hands)))

    def _sleeper(self):
        return self.random.choice(self.client.zrange(NAMES.scheduled, 0, -1))

    def _cancel(self, raw_id):
        job_id = natural_id(raw_id.decode())
        self.gone.add(job_id)
        assert drop(self.client, job_id) in {Drop.DROPPED, Drop.OVER}


def standing(client):
    over = {NAMES.finished, NAMES.failed}
    found = places(client, NAMES).items()
    return {natural_id(raw_id.decode()) for raw_id, where in found if not over & set(where)}


@pytest.mark.parametrize("seed", [1, 2])
def test_every_job_that_is_there_all_the_time_is_read_once(seed, here, browser, valkey):
    host = fill(valkey, waiting=1500, deferred=400, held=300)
    life = Life(valkey, host, seed)
    life()
    before = standing(valkey)
    life.gone.clear()

    pages = follow(browser, 120, life)

    stayed = (before & standing(valkey)) - life.gone
    read = read_ids(pages)
    assert {one: count for one, count in read.items() if count > 1} == {}
    assert stayed - set(read) == set()
    assert len(stayed) > 2000
    assert len(pages) >= 10
    # Everything that can happen did happen, and a job was found in each section.
    assert len(life.done) == 11, life.done
    assert all(jobs_of(pages, one) for one in SECTIONS)
    for page in pages:
        states = {one: {job["state"] for job in page[one]["jobs"]} for one in SECTIONS}
        assert states["running"] <= {"started", "in-hand"}
        assert states["waiting"] <= {"queued"}
        assert states["deferred"] | states["held"] <= {"scheduled"}
        assert "wait" not in {job["reason"] for job in page["deferred"]["jobs"]}
        assert {job["reason"] for job in page["held"]["jobs"]} <= {"wait", "due"}


def test_ten_thousand_that_wait_are_read_in_their_order(here, browser, valkey):
    fill(valkey, waiting=9_999)

    pages = follow(browser, 1000)

    assert [job["position"] for job in jobs_of(pages, "waiting")] == list(range(1, 10_001))
    assert set(read_ids(pages).values()) == {1}
    assert {(page["waiting"]["total"], page["held"]["total"]) for page in pages} == {(10_000, 1)}
    assert len(pages) == 10


def test_what_fits_is_what_the_command_prints_and_reading_changes_nothing(here, browser, valkey):
    host = fill(valkey, waiting=5, deferred=4, held=3)
    host.start(), host.start(), host.claim()
    valkey.rpush(NAMES.jobs, "gone", "")
    valkey.zadd(NAMES.scheduled, {"gone": 1})
    before = everything(valkey)

    answer = ask(browser).json()

    assert answer.pop("next") is None
    printed = queue_shown.as_data(lookup.view(valkey, [QUEUE], limit=20, unreadable={}))
    for one in (*answer["queues"], *printed["queues"]):
        assert one.pop("now") == pytest.approx(now_ms(valkey), abs=60_000)
    assert answer == printed
    assert everything(valkey) == before


def test_of_too_many_jobs_the_first_are_answered_and_nobody_reads_on(here, browser, valkey, monkeypatch):
    fill(valkey, waiting=3, deferred=2, held=1)
    monkeypatch.setattr(reading, "MOST", 9)
    whole = ask(browser, limit=2).json()
    assert whole["next"]

    monkeypatch.setattr(reading, "MOST", 8)
    first, on = ask(browser, limit=2), ask(browser, limit=2, next=whole["next"])

    assert list(first.json()) == ["queues"]
    (queue,) = first.json()["queues"]
    assert [(queue[one]["total"], len(queue[one]["jobs"])) for one in SECTIONS] == [
        *((0, 0), (4, 2), (3, 2), (2, 2)),
    ]
    assert on.status_code == 409
    assert on.json()["error"] == {
        "status": 409,
        "code": "too-many-jobs",
        "message": f"9 jobs wait and sleep in {QUEUE}, and at most 8 are read page by page."
        " Ask without next for the first of each section, or again with it when there are fewer.",
    }
    # They are counted before any is listed.
    valkey.set(NAMES.takers, "no set")
    with pytest.raises(reading.TooManyError):
        reading.read_page(valkey, QUEUE, after=None, limit=1)


def wake(host, job_id):
    assert Waiters(host.client).wake_these([(QUEUE, job_id.encode())]) == host.promoter.promote([QUEUE]) == 1


# a-0 sleeps, a-1 is in hand, a-2 waits. What happens, and who then runs, waits (where), sleeps and is held.
LINE, SLEEPER = [("a-2", 1)], ["a-0"]
MOVES = {
    "nothing": (lambda _host, _claimed: None, (["a-1"], LINE, SLEEPER, [])),
    "taken": (lambda host, _: host.claim(), (["a-1", "a-2"], [], SLEEPER, [])),
    # It looks like one that is popped and not yet claimed.
    "put back": (lambda host, claimed: host.steps.give_back(claimed), (["a-1"], LINE, SLEEPER, [])),
    "put off": (lambda host, claimed: host.put_off(claimed), ([], LINE, ["a-0", "a-1"], [])),
    "held": (
        lambda host, claimed: host.steps.put_off(claimed, until_ms=FAR, reason="wait"),
        ([], LINE, SLEEPER, ["a-1"]),
    ),
    "woken": (lambda host, _: wake(host, "a-0"), (["a-1"], [("a-2", 1), ("a-0", None)], [], [])),
    "ended": (lambda host, claimed: (host.begin(claimed), host.end(claimed)), ([], LINE, SLEEPER, [])),
    "cancelled": (lambda host, _: drop(host.client, "a-2"), (["a-1"], [], SLEEPER, [])),
}


@pytest.mark.parametrize("what", MOVES)
def test_what_moves_while_a_page_is_read_stands_where_it_came_to(what, valkey, monkeypatch):
    """Between the look at all ids and the one at the hashes of those that are shown."""
    change, expected = MOVES[what]
    host = Host(valkey)
    host.enqueue("a-0", "a-1", "a-2")
    host.put_off(host.claim())
    claimed = host.claim()
    ask_when = reading._turns

    def then_it_moves(client, raw_ids):
        turns = ask_when(client, raw_ids)
        change(host, claimed)
        return turns

    monkeypatch.setattr(reading, "_turns", then_it_moves)
    listing = reading.read_page(valkey, QUEUE, after=None, limit=5).listing

    assert (
        [job.job_id for job in listing.running.entries],
        [(job.job_id, job.position) for job in listing.waiting.entries],
        [job.job_id for job in listing.deferred.entries],
        [job.job_id for job in listing.held.entries],
    ) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"next": ""}, "next is not what an answer"),
        ({"next": "null"}, "next is not what an answer"),
        ({"next": f"{QUEUE}~1"}, "next is not what an answer"),
        ({"next": f"{QUEUE}~{'9' * 17}~{'0' * 32}"}, "next is not what an answer"),
        (
            {"next": f"{QUEUE}@beta~{A_TURN}"},
            "next is of the queue 'pi-jobs@beta', and pi-jobs is asked for.",
        ),
        ({"next": [f"{QUEUE}~{A_TURN}"] * 2}, "next is given once and with one queue"),
        ({"next": f"{QUEUE}~{A_TURN}", "queue": []}, "next is given once and with one queue"),
        ({"next": f"{QUEUE}~{A_TURN}", "queue": [QUEUE, f"{QUEUE}@beta"]}, "next is given once and with one"),
    ],
)
def test_a_next_that_no_answer_gave_is_refused(given, said, here, browser):
    answer = ask(browser, **given)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad-request")
    assert answer.json()["error"]["message"].startswith(said)


def test_what_is_no_part_of_a_reading_has_no_next(here, browser, valkey):
    fill(valkey, waiting=30)

    assert "next" not in browser.get("/api/queue?limit=1").json()
    assert "next" not in ask(browser, queue=[QUEUE, f"{QUEUE}@beta"], limit=1).json()
    follows = ask(browser, limit=1).json()["next"]
    valkey.set(NAMES.scheduled, "no set")
    assert ask(browser, next=follows).json() == {"queues": [], "unreadable": {QUEUE: "wrong-type"}}
