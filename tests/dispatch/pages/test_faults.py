"""Check 4 of the console: every address of the real web process while something that it needs is at fault."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from hosts import switches
from pidispatch_site.webserver import THREADS
from tests.dispatch.consolekit import be_humble
from tests.dispatch.pages.faulty_site import Answer, Site
from tests.dispatch.queuekit import everything
from tests.harness.way import Manner

MOST_SECONDS = 3.0
# What shows something of Valkey, and so has to say that it does not.
LOOKS = re.compile(
    r"/admin/(?:|banner/|overview/(?:now|care)/|fleet/.*|switch/.*|queue/(?!cancel|rerun).*"
    r"|dispatch/schedule/(?:|live/|run/.*|restore/.*))\Z"
)
SAYS = re.compile(
    r"does not answer|too slowly|no Valkey|refused the user or password|cannot be seen|not seen"
)
# What an action says that could not be done, or of which nobody knows.
TOLD = re.compile(rf"{SAYS.pattern}|Not confirmed|refused what was asked")
OF_FILES = re.compile(r"/admin/(?:\Z|overview/|settings/|dispatch/)")
FOR_PROGRAMS = {"/api/status", "/api/fleet", "/api/queue"}
NONSENSE = (
    b"\xff\xfe<b>\0",
    b"",
    b"9" * 5000,
    b"1e400",
    b"nan",
    b"null",
    b'{"beat":1e999}',
    b"x" * 1_000_000,
)
# What an operator does, and with which form.
PAUSE = ("/admin/switch/pause/", {"which": "all"})
RUN = "/admin/dispatch/schedule/run/nightly/"
ACTS = dict(
    (
        PAUSE,
        ("/admin/switch/resume/", {"which": "all"}),
        ("/admin/switch/resume-fleet/", {}),
        ("/admin/switch/stop/", {"seconds": "0"}),
        ("/admin/fleet/host/alpha/drain/", {}),
        ("/admin/fleet/host/alpha/undrain/", {}),
        ("/admin/fleet/host/beta/reroute/", {}),
        ("/admin/queue/cancel/", {"confirmed": "1", "jobs": "job-3"}),
        ("/admin/queue/rerun/", {"confirmed": "1", "job": "job-1"}),
        (RUN, {}),
        ("/admin/dispatch/schedule/restore/nightly/", {}),
    )
)
# Beside the pause, what is thrown while no answer ever comes; nothing of it is done then.
UNANSWERED = ("/admin/switch/resume/", "/admin/fleet/host/alpha/undrain/", RUN)
# Somebody's account, with all that its form has; the first user is the viewer.
ACCOUNT = {"/admin/auth/user/1/change/": {"username": "viewer", "first_name": "Vi", "is_active": "on"}}
FILES = {"triggers", "settings", "windows", "limits"}
WRITES_AT_ONCE = re.compile(r"/admin/(?:switch/(?:pause|resume)|fleet/host/alpha|dispatch/schedule/run)")
UNLOGGED = "did not take this action's entry of the log"
NO_DATABASE = "The database of this host cannot be used"
# These go on in the background.
END_UNLOGGED = "The end of this action is not in the log"
SCORES = (float("inf"), float("-inf"), -1, 1e300)


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    """The process is humble also where root runs the tests, so that modes of files count."""
    home = Path(tempfile.mkdtemp(prefix="pd-f-"))
    site = Site(home)
    try:
        with site.database.running(), site.way, ThreadPoolExecutor(1, initializer=be_humble) as starter:
            starter.submit(site.web.__enter__).result()
            try:
                yield site
            finally:
                site.web.__exit__(None, None, None)
    finally:
        site.server.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def site(running: Site) -> Site:
    running.fill()
    return running


@contextmanager
def on_the_way(manner: Manner, site: Site) -> Iterator[None]:
    site.way.manner = manner
    try:
        yield
    finally:
        site.way.manner = Manner.OPEN


@contextmanager
def with_password(site: Site) -> Iterator[None]:
    site.client.config_set("requirepass", "s3cret")
    try:
        yield
    finally:
        site.client.config_set("requirepass", "")


@contextmanager
def as_replica(site: Site) -> Iterator[None]:
    site.client.replicaof("127.0.0.1", "1")
    try:
        yield
    finally:
        site.client.replicaof("NO", "ONE")


@contextmanager
def without_memory(site: Site) -> Iterator[None]:
    site.client.config_set("maxmemory", "1")
    try:
        yield
    finally:
        site.client.config_set("maxmemory", "0")


def nonsense_rows(site: Site) -> None:
    """Hosts, jobs, switches, schedules and actions in whose every field stands something else."""
    client = site.client
    hashes = (
        "host:h:alpha",
        "rq:job:job-1",
        "rq:job:job-2",
        "pause:pi-jobs",
        "drain:alpha",
        "stop:host:alpha",
    )
    for key in hashes:
        there = client.hkeys(key) or [b"by", b"reason", b"since", b"until", b"id", b"at"]
        client.hset(key, mapping={name: NONSENSE[at % len(NONSENSE)] for at, name in enumerate(there)})
    client.hset("known:hosts", mapping={f"{at:016x}": one for at, one in enumerate(NONSENSE)})
    for key in ("sched:pi-jobs@alpha:def", "sched:pi-jobs:torn", "sched:pi-jobs@alpha:since"):
        client.hset(key, mapping={"nightly": NONSENSE[0], NONSENSE[0]: NONSENSE[6]})
    for at, key in enumerate(
        ("takers:pi-jobs", "takers:pi-jobs@alpha", "sched:pi-jobs@alpha:next", "op:latest")
    ):
        client.zadd(key, {"aaaa-00000001": SCORES[at], NONSENSE[0]: SCORES[0], "0" * 32: SCORES[1]})
    client.hset(f"op:{'0' * 32}", mapping={"head": NONSENSE[6], "beat": NONSENSE[2]})
    client.sadd("queues:known", *NONSENSE[:3])


def wrong_kinds(kind: str, site: Site) -> None:
    """Every key, and those that could be there, with a value of another kind."""
    client = site.client
    absent = (
        "op:latest",
        "runs:index",
        "wait:held",
        "pause:all",
        "stop:all",
        "rq:failed:pi-jobs",
        "drain:alpha",
    )
    put: dict[str, Callable[[bytes | str], object]] = {
        "string": lambda key: client.set(key, NONSENSE[0]),
        "list": lambda key: client.rpush(key, *NONSENSE[:3]),
        "zset": lambda key: client.zadd(key, {NONSENSE[0]: SCORES[0], "job-1": SCORES[3]}),
        "hash": lambda key: client.hset(key, mapping={NONSENSE[0]: NONSENSE[2]}),
    }
    for key in (*client.keys("*"), *absent):
        client.delete(key)
        put[kind](key)


def foreign_keys(site: Site) -> None:
    """A server that others use, too, and a fleet of a hundred."""
    with site.client.pipeline(transaction=False) as pipeline:
        for number in range(10_000):
            pipeline.set(f"foreign:{number}", b"x")
        for number in range(100):
            pipeline.sadd("queues:known", f"pi-jobs@h{number}")
            pipeline.hset("known:hosts", f"{number:016x}", json.dumps({"name": f"h{number}", "beat": 1}))
        pipeline.execute()


Fault = Callable[[Site], AbstractContextManager[None]]
UNSEEN: dict[str, Fault] = {
    **{manner.value: partial(on_the_way, manner) for manner in Manner if manner is not Manner.OPEN},
    "password": with_password,
}
SPOILT: dict[str, Callable[[Site], None]] = {
    "nonsense": nonsense_rows,
    "foreign": foreign_keys,
    **{kind: partial(wrong_kinds, kind) for kind in ("string", "list", "zset", "hash")},
}
UNWRITABLE: dict[str, Fault] = {
    "replica": as_replica,
    "no memory": without_memory,
    "locked": lambda site: site.database.locked(),
    "read-only": lambda site: site.database.read_only(),
}


def on_both(faults: Mapping[str, Fault], *names: str) -> list[ParameterSet]:
    """Name each fault; those of these names are tried on PostgreSQL, too (`python -m tests.postgres`)."""
    return [pytest.param(one, marks=[pytest.mark.database] * (one in names), id=str(one)) for one in faults]


def assert_fine(answers: list[Answer], *, may_503: frozenset[str] | set[str] = frozenset()) -> None:
    bad = [(one.path, one.status, one.text[-200:]) for one in answers if one.status >= 500]
    assert {path for path, status, _ in bad if status == 503} <= set(may_503), bad
    assert all(status == 503 for _, status, _ in bad), bad
    slow = [(one.path, one.seconds) for one in answers if one.seconds > MOST_SECONDS]
    assert not slow


def fleet_of(site: Site) -> dict[str, object]:
    """All that Valkey has, but for what an action of an earlier test still has to say of itself."""
    return {key: value for key, value in everything(site.client).items() if not key.startswith("op:")}


def assert_not_confirmed(said: Answer) -> None:
    assert said.status == 200
    assert "Not confirmed as paused: the whole fleet." in said.text
    assert "(a path)(" not in said.text


@pytest.mark.database
def test_with_nothing_at_fault_every_address_answers(site):
    answers = site.walk()
    assert_fine(answers)
    assert {one.path for one in answers if LOOKS.match(one.path) and one.status == 200} >= {
        *(
            "/admin/",
            "/admin/banner/",
            "/admin/fleet/",
            "/admin/fleet/host/alpha/live/",
            "/admin/switch/state/",
        ),
        *("/admin/queue/lists/", "/admin/queue/job/job-1/", "/admin/dispatch/schedule/"),
    }


@pytest.mark.parametrize("name", on_both(UNSEEN, Manner.SLOW))
def test_without_sight_of_valkey_each_page_says_so_in_time_and_the_kill_switch_at_last(site, name):
    unanswered = UNANSWERED if name == Manner.SILENT else ()
    before = fleet_of(site)
    # The switch waits longer than a page: meanwhile the pages are asked.
    with UNSEEN[name](site), ThreadPoolExecutor(1 + len(UNANSWERED)) as hands:
        # On the slow way it is thrown all the same, as the last test shows.
        thrown = None if name == Manner.SLOW else hands.submit(site.ask, *PAUSE)
        others = [hands.submit(site.do, path, ACTS[path]) for path in unanswered]
        answers = site.walk(at_once=THREADS - 1 - len(others))
        assert_fine(answers, may_503=FOR_PROGRAMS)
        looking = [one for one in answers if LOOKS.match(one.path) and one.status == 200]
        assert [one.path for one in looking if not SAYS.search(one.text)] == []
        assert "pidispatch_valkey_up 0" in site.ask("/metrics").text
    if thrown:
        assert_not_confirmed(thrown.result())
    asked = [one.result() for one in others]
    assert [(done.status, bool(TOLD.search(page.text))) for done, page in asked] == [(200, True)] * len(asked)
    assert fleet_of(site) == before


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_others_wrote_costs_no_page(site, spoil):
    spoil(site)
    assert_fine(site.walk())


@pytest.mark.parametrize("name", on_both(UNWRITABLE, "locked", "read-only"))
def test_what_takes_no_writes_is_read(site, name):
    with UNWRITABLE[name](site):
        assert_fine(site.walk())


@pytest.mark.parametrize("name", ["closed", "http", "password", "replica"])
def test_what_cannot_be_done_is_told_and_loses_nothing(site, name):
    before = fleet_of(site)
    # A copy of another server answers questions, and whoever cancels waits for it to take writes again.
    acts = ACTS if name in UNSEEN else {path: ACTS[path] for path in ACTS if WRITES_AT_ONCE.match(path)}

    with {**UNSEEN, **UNWRITABLE}[name](site):
        done = site.do_all(acts)
        after = fleet_of(site)

    assert {path: one.status for path, (one, _) in done.items() if one.status not in {200, 302}} == {}
    assert [path for path, (_, page) in done.items() if not TOLD.search(page.text)] == []
    assert [(path, one.seconds) for path, (one, _) in done.items() if one.seconds > MOST_SECONDS] == []
    assert after == before


def test_without_memory_all_that_stops_is_done_and_what_adds_a_job_is_refused_in_words(site):
    with without_memory(site):
        done = site.do_all(ACTS)
        # Of those that are done at once nobody knows which was the last.
        thrown, _ = site.do(*PAUSE)

    told = {path for path, (_, page) in done.items() if TOLD.search(page.text)}
    assert told == {path for path, (one, _) in done.items() if one.status != 302} == {RUN}
    assert "OutOfMemoryError" in done[RUN][1].text
    assert [(path, one.seconds) for path, (one, _) in done.items() if one.seconds > MOST_SECONDS] == []
    assert (thrown.status, bool(switches.read(site.client, ()).fleet)) == (302, True)
    assert site.client.llen("rq:queue:pi-jobs") == 0


@pytest.mark.database
@pytest.mark.parametrize("name", ["locked", "read-only"])
def test_what_the_database_does_not_keep_is_done_and_told(site, name):
    acts = {**ACTS, **site.edits()}

    with UNWRITABLE[name](site):
        done = site.do_all({**acts, **ACCOUNT})

    # An account is in the database itself.
    [(account, _)] = [done.pop(path) for path in ACCOUNT]
    assert (account.status, NO_DATABASE in account.text) == (503, True)
    assert {path: one.status for path, (one, _) in done.items() if one.status != 302} == {}
    assert site.edited() == FILES
    # Two seconds are the wait for an entry of the log; the stop has two.
    assert [(path, one.seconds) for path, (one, _) in done.items() if one.seconds > MOST_SECONDS + 4] == []
    # The others found nothing to do.
    unlogged = {path for path, (_, page) in done.items() if UNLOGGED in page.text}
    assert unlogged == {*acts} - {"/admin/queue/rerun/", "/admin/dispatch/schedule/restore/nightly/"}
    assert {path for path, (_, page) in done.items() if END_UNLOGGED in page.text} == {
        path for path, (one, _) in done.items() if "/operations/" in one.leads
    }
    waiting = [
        *site.client.lrange("rq:queue:pi-jobs", 0, -1),
        *site.client.lrange("rq:queue:pi-jobs@alpha", 0, -1),
    ]
    assert [raw_id.partition(b"_")[0] for raw_id in waiting] == [b"manual"]


@pytest.mark.parametrize("spoilt", ["gone", "a directory", "half", "50 MB", "unreadable"])
def test_a_file_of_the_operator_that_cannot_be_read_costs_its_own_page(site, spoilt):
    path = site.files["triggers"]
    before = path.read_bytes()
    path.unlink()
    match spoilt:
        case "a directory":
            path.mkdir()
        case "half":
            path.write_bytes(before[: len(before) // 2])
        case "50 MB":
            path.write_bytes(b'{"triggers":[' + b" " * 50_000_000)
        case "unreadable":
            path.touch(mode=0)
    try:
        answers = site.walk(OF_FILES)
    finally:
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        path.write_bytes(before)
    assert_fine(answers)
    assert len(answers) > 10


@pytest.mark.database
def test_without_its_database_it_says_so_and_does_nothing(site):
    before = fleet_of(site)

    with ThreadPoolExecutor(1) as hand:
        # It goes while it is asked.
        walking = hand.submit(site.walk)
        time.sleep(0.3)
        with site.database.away():
            walked = walking.result()
    with site.database.away():
        answers = [site.ask(path) for path in ("/admin/", "/admin/switch/", "/api/status", "/metrics")]
        done = site.do_all({**ACTS, **site.edits(), **ACCOUNT})
        alive = site.ask("/healthz")

    answers += [one for one, _ in done.values()]
    assert {one.status for one in answers} == {503}
    assert {one.status for one in walked} <= {200, 302, 401, 403, 404, 405, 410, 503}
    assert all(NO_DATABASE in one.text for one in answers)
    assert (fleet_of(site), site.edited()) == (before, set())
    assert alive.status == 200
    assert site.ask("/admin/").status == 200


@pytest.mark.database
def test_the_kill_switch_is_thrown_and_says_what_is_not_confirmed(site):
    with site.database.locked():
        thrown, page = site.do(*PAUSE)
    # Two seconds are the wait for its entry in the log.
    assert (thrown.status, thrown.seconds < MOST_SECONDS + 2) == (302, True)
    assert switches.read(site.client, ()).fleet
    assert UNLOGGED in page.text

    with as_replica(site):
        assert_not_confirmed(site.ask(*PAUSE))


def test_twenty_open_tabs_on_a_slow_valkey_leave_room_for_the_kill_switch(site):
    tabs = ("/admin/banner/", "/admin/overview/now/", "/admin/overview/care/", "/admin/fleet/live/")
    # As the server of a fleet does, this one knows the scripts.
    site.do(*PAUSE)
    site.fill()
    with on_the_way(Manner.SLOW, site), ThreadPoolExecutor(21) as browsers:
        throwing = browsers.submit(site.ask, *PAUSE)
        site.ask("/admin/banner/")
        asked = [browsers.submit(site.ask, tabs[number % len(tabs)]) for number in range(80)]
        took = [site.ask("/admin/switch/pause/") for _ in range(5)]
        assert_fine([*took, *(one.result() for one in asked)])
        # Thrown late, it is thrown: by then each answer that it needs has taken its two seconds.
        thrown = throwing.result()
        assert (thrown.status, thrown.leads, 6 < thrown.seconds < 35) == (302, "/admin/switch/", True)
        assert switches.read(site.client, ()).fleet
        # No thread goes on with a question that nobody waits for any more.
        ends = time.monotonic() + 10
        while site.way.callers > 2 and time.monotonic() < ends:
            time.sleep(0.05)
        assert site.way.callers <= 2
