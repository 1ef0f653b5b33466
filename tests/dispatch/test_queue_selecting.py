"""Pages of the jobs of many queues: the same jobs in the same order as the listing of each queue has."""

from __future__ import annotations

import pytest

from dispatch.ids import rq_id
from dispatch.queue import keys
from dispatch.queue.listing import read_queue
from dispatch.queue.selecting import Standing, select
from tests.dispatch.queuekit import QUEUE, Host, everything

FAR = 10**13
OTHER = "pi-jobs@beta"
QUEUES = (QUEUE, OTHER)


@pytest.fixture
def hosts(valkey):
    """Two queues of whose jobs some run, are in hand, sleep, are held and wait, the sleepers mixed."""
    made = [Host(valkey), Host(valkey, name="beta", host_id="bbbb", queue=OTHER)]
    for host, start in zip(made, (100, 200), strict=True):
        host.enqueue(*(f"repeat:{number}" for number in range(start, start + 14)), f"local-{start}")
        host.start(), host.start(), host.claim()
        for number in range(6):
            claimed = host.claim()
            reason = "wait" if number % 3 == 0 else "cap"
            host.steps.put_off(claimed, until_ms=FAR + number * 1000, reason=reason)
    return made


def ids(found):
    return [(one.queue, one.raw_id.decode()) for one in found]


def listed(valkey, standing):
    """What the listing of each queue says, one queue after the other."""
    return [
        (queue, rq_id(entry.job_id))
        for queue in QUEUES
        for entry in getattr(read_queue(valkey, queue, limit=1000), standing).entries
    ]


@pytest.mark.parametrize("standing", list(Standing))
@pytest.mark.parametrize("size", [3, 1000])
def test_the_pages_together_are_the_listings_of_the_queues(valkey, hosts, standing, size):
    before, whole = everything(valkey), listed(valkey, standing)
    pages = [
        select(valkey, QUEUES, standing, offset=offset, limit=size) for offset in range(0, len(whole), size)
    ]

    found = [one for page in pages for one in ids(page.found)]

    assert (sorted(found) if standing is Standing.RUNNING else found) == (
        sorted(whole) if standing is Standing.RUNNING else whole
    )
    assert {page.matching for page in pages} == {len(whole)}
    assert [page.is_cut for page in pages] == [False] * len(pages)
    assert ids(select(valkey, QUEUES, standing, offset=len(whole) + 5, limit=3).found) == []
    assert everything(valkey) == before


def test_every_queue_is_counted_whatever_section_is_asked_for(valkey, hosts):
    found = select(valkey, QUEUES, Standing.WAITING)

    counts = dict(zip(Standing, (3, 6, 4, 2), strict=True))
    assert found.totals == dict.fromkeys(QUEUES, counts)
    assert [found.total(one) for one in Standing] == [6, 12, 8, 4]
    assert list(found.beats[OTHER]) == [hosts[1].owner.boot]
    assert found.found == ()


@pytest.mark.parametrize(
    ("beginning", "standing", "matching"),
    [
        pytest.param("repeat:", Standing.WAITING, 10, id="a colon is written otherwise in Valkey"),
        pytest.param("repeat:21", Standing.WAITING, 4, id="of one queue"),
        pytest.param("repeat:2", Standing.DEFERRED, 4, id="asleep"),
        pytest.param("repeat:10", Standing.RUNNING, 3, id="running"),
        pytest.param("repeat:1", Standing.HELD, 2, id="held"),
        pytest.param("epeat", Standing.WAITING, 0, id="not within"),
        pytest.param("repeat_3a", Standing.WAITING, 0, id="not as Valkey has it"),
        pytest.param("x" * 201, Standing.WAITING, 0, id="longer than an id"),
        pytest.param("\udcff", Standing.WAITING, 0, id="no text"),
    ],
)
def test_jobs_are_found_by_what_their_ids_begin_with(valkey, hosts, beginning, standing, matching):
    found = select(valkey, QUEUES, standing, beginning=beginning, offset=2, limit=1000)

    assert found.matching == matching
    assert ids(found.found) == (
        [one for one in listed(valkey, standing) if one[1].startswith(rq_id(beginning))][2:]
        if matching and standing is not Standing.RUNNING
        else ids(found.found)
    )
    assert len(found.found) == max(matching - 2, 0)


def test_a_place_in_line_is_told_on_every_page(valkey, hosts):
    found = select(valkey, QUEUES, Standing.WAITING, beginning="local", limit=5)
    later = select(valkey, QUEUES, Standing.WAITING, offset=4, limit=3)

    assert [(one.raw_id, one.place) for one in found.found] == [(b"local-100", 6), (b"local-200", 6)]
    assert [(one.queue, one.place) for one in later.found] == [(QUEUE, 5), (QUEUE, 6), (OTHER, 1)]


@pytest.mark.parametrize("name", ["jobs", "scheduled", "started", "takers", "waiters"])
def test_a_key_of_another_type_costs_its_queue_only(valkey, hosts, name):
    key = keys.waiters(OTHER, "wait") if name == "waiters" else getattr(keys.queue_keys(OTHER), name)
    valkey.delete(key)
    valkey.hset(key, "x", "y")

    found = select(valkey, QUEUES, Standing.WAITING, limit=1000)

    assert (list(found.totals), list(found.unreadable)) == ([QUEUE], [OTHER])
    assert {one.queue for one in found.found} == {QUEUE}


def test_who_stands_nowhere_any_more_and_foreign_hashes_do_not_run(valkey, hosts):
    valkey.delete(keys.job(rq_id("repeat:100").encode()))
    valkey.delete(keys.job(rq_id("repeat:101").encode()))
    valkey.set(keys.job(rq_id("repeat:101").encode()), "x")

    in_hand = valkey.lindex(keys.queue_keys(QUEUE).taken(hosts[0].owner.boot), 0)
    valkey.rpush(keys.queue_keys(QUEUE).taken(hosts[0].owner.boot), in_hand)

    found = select(valkey, (QUEUE,), Standing.RUNNING, limit=9)

    assert (found.totals[QUEUE][Standing.RUNNING], ids(found.found)) == (1, [(QUEUE, in_hand.decode())])


def test_of_too_many_not_all_are_looked_at_and_that_is_said(valkey):
    valkey.rpush(keys.queue_keys(QUEUE).jobs, *(f"a{number}" for number in range(50_600)))

    by_name = select(valkey, QUEUES, Standing.WAITING, beginning="a", limit=1)
    by_place = select(valkey, QUEUES, Standing.WAITING, offset=50_599, limit=1)

    assert (by_name.is_cut, by_name.matching) == (True, 50_000)
    assert (by_place.is_cut, by_place.matching, by_place.found[0].place) == (False, 50_600, 50_600)
