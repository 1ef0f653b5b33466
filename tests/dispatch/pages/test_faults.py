"""Check 4 of the console: every address of the real web process while something that it needs is at fault."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from hosts import switches
from pidispatch_site.webserver import THREADS
from tests.dispatch.consolekit import be_humble
from tests.dispatch.fleetkit import appear
from tests.dispatch.queuekit import Host
from tests.dispatch.test_web_security import addresses
from tests.harness.valkey_server import ValkeyServer
from tests.harness.way import Manner, Way
from tests.harness.web_process import WebProcess

MOST_SECONDS = 3.0
# What shows something of Valkey, and so has to say that it does not.
LOOKS = re.compile(
    r"/admin/(?:|banner/|overview/(?:now|care)/|fleet/.*|switch/.*|queue/(?!cancel|rerun).*"
    r"|dispatch/schedule/(?:|live/|run/.*|restore/.*))\Z"
)
SAYS = re.compile(
    r"does not answer|too slowly|no Valkey|refused the user or password|cannot be seen|not seen"
)
# All but Django's own pages for people and groups.
OURS = re.compile(r"/(?!admin/(?:auth|logout|password|jsi18n|autocomplete))")
OF_FILES = re.compile(r"/admin/(?:\Z|overview/|settings/|dispatch/)")
FOR_PROGRAMS = {"/api/status", "/api/fleet", "/api/queue"}
TOKEN = "t" * 32
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
SCORES = (float("inf"), float("-inf"), -1, 1e300)


@dataclass(frozen=True)
class Answer:
    path: str
    status: int
    text: str
    seconds: float


class Site:
    """The web process of a host, a way to its Valkey, and what a fleet keeps there."""

    def __init__(self, home: Path) -> None:
        self._told = ""
        self.state = home / "state"
        self.state.mkdir(mode=0o700)
        self.server = ValkeyServer(home / "v")
        self.server.start()
        self.client = self.server.client()
        self.way = Way(home, self.server.url)
        self.files = {name: home / f"{name}.json" for name in ("triggers", "settings", "limits", "windows")}
        run = {"kind": "local", "folder": str(home), "flow": "nightly", "task": "tidy up"}
        entry = {"on": {"type": "cron", "id": "nightly", "pattern": "30 2 * * *"}, "run": run}
        self.files["triggers"].write_text(json.dumps({"triggers": [entry]}))
        (home / "env").touch()
        self.web = WebProcess(
            {
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "DJANGO_SETTINGS_MODULE": "pidispatch_site.settings",
                "PI_ENV_FILE": str(home / "env"),
                "PI_STATE_DIR": str(self.state),
                "PI_WORKER_NAME": "alpha",
                "PI_EGRESS": "0",
                "PI_DAILY_CAP": "10",
                "PI_TRIGGERS_FILE": str(self.files["triggers"]),
                "PI_SETTINGS_FILE": str(self.files["settings"]),
                "VALKEY_URL": self.way.url,
            },
            home,
        )

    def fill(self) -> None:
        self.client.flushall()
        appear(self.client, "alpha")
        appear(self.client, "beta", age_ms=60_000)
        host = Host(self.client, host_id="a" * 16)
        host.enqueue("job-1", "job-2", "job-3")
        host.start()
        host.put_off(host.claim(), 4_000_000_000_000)

    def ask(self, path: str, form: dict[str, str] | None = None) -> Answer:
        """Ask as somebody of the group admin."""
        place = urlsplit(self.web.url)
        cookies = {**self.web.cookies("admin"), "pidispatch_csrf": TOKEN, "messages": self._told}
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
        method, body = "GET", None
        if form is not None:
            method, body = "POST", urlencode({"csrfmiddlewaretoken": TOKEN, **form})
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(HTTPConnection(place.hostname, place.port, timeout=60)) as connection:
            began = time.monotonic()
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = re.sub(r"<[^>]+>", " ", answer.read().decode())
            # What the next page is to say is in a cookie until then.
            told = SimpleCookie(answer.headers.get("Set-Cookie", "")).get("messages")
            self._told = told.value if told else ""
            return Answer(path, answer.status, " ".join(text.split()), time.monotonic() - began)

    def walk(self, over: re.Pattern[str] = OURS, *, at_once: int = THREADS) -> list[Answer]:
        """Ask for everything of ours, as many at a time as the process has threads."""
        with ThreadPoolExecutor(at_once) as browsers:
            return list(browsers.map(self.ask, filter(over.match, addresses())))

    def pause(self) -> Answer:
        return self.ask("/admin/switch/pause/", {"reason": "x", "which": "all", "confirm": "1"})


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    """The process is humble also where root runs the tests, so that modes of files count."""
    home = Path(tempfile.mkdtemp(prefix="pd-f-"))
    site = Site(home)
    try:
        with site.way, ThreadPoolExecutor(1, initializer=be_humble) as starter:
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
    yield
    site.way.manner = Manner.OPEN


@contextmanager
def with_password(site: Site) -> Iterator[None]:
    site.client.config_set("requirepass", "s3cret")
    yield
    site.client.config_set("requirepass", "")


@contextmanager
def as_replica(site: Site) -> Iterator[None]:
    site.client.replicaof("127.0.0.1", "1")
    yield
    site.client.replicaof("NO", "ONE")


@contextmanager
def without_memory(site: Site) -> Iterator[None]:
    site.client.config_set("maxmemory", "1")
    yield
    site.client.config_set("maxmemory", "0")


@contextmanager
def locked(site: Site) -> Iterator[None]:
    with closing(sqlite3.connect(site.state / "db.sqlite3", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def read_only(site: Site) -> Iterator[None]:
    modes = [(path, path.stat().st_mode) for path in (*site.state.glob("db.sqlite3*"), site.state)]
    for path, mode in modes:
        path.chmod(mode & 0o555)
    yield
    for path, mode in reversed(modes):
        path.chmod(mode)


@contextmanager
def without_tables(site: Site) -> Iterator[None]:
    there = site.state / "db.sqlite3"
    there.rename(site.state / "aside")
    yield
    (site.state / "aside").rename(there)


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
    "locked": locked,
    "read-only": read_only,
}


def assert_fine(answers: list[Answer], *, may_503: frozenset[str] | set[str] = frozenset()) -> None:
    bad = [(one.path, one.status, one.text[-200:]) for one in answers if one.status >= 500]
    assert {path for path, status, _ in bad if status == 503} <= set(may_503), bad
    assert all(status == 503 for _, status, _ in bad), bad
    slow = [(one.path, one.seconds) for one in answers if one.seconds > MOST_SECONDS]
    assert not slow


def assert_not_confirmed(said: Answer) -> None:
    assert said.status == 200
    assert "Not confirmed as paused: the whole fleet." in said.text
    assert "(a path)(" not in said.text


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


@pytest.mark.parametrize("name", UNSEEN)
def test_without_sight_of_valkey_each_page_says_so_in_time_and_the_kill_switch_at_last(site, name):
    # The switch waits longer than a page: meanwhile the pages are asked.
    with UNSEEN[name](site), ThreadPoolExecutor(1) as hand:
        # On the slow way it is thrown all the same.
        thrown = None if name == Manner.SLOW else hand.submit(site.pause)
        answers = site.walk(at_once=THREADS - 1)
        assert_fine(answers, may_503=FOR_PROGRAMS)
        looking = [one for one in answers if LOOKS.match(one.path) and one.status == 200]
        assert [one.path for one in looking if not SAYS.search(one.text)] == []
        assert "pidispatch_valkey_up 0" in site.ask("/metrics").text
    if thrown:
        assert_not_confirmed(thrown.result())


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_what_others_wrote_costs_no_page(site, spoil):
    spoil(site)
    assert_fine(site.walk())


@pytest.mark.parametrize("fault", UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_takes_no_writes_is_read(site, fault):
    with fault(site):
        assert_fine(site.walk())


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


def test_without_its_tables_it_says_so(site):
    with without_tables(site):
        answers = [site.ask(path) for path in ("/admin/", "/admin/switch/", "/api/status", "/metrics")]
        (site.state / "db.sqlite3").unlink(missing_ok=True)
    assert {one.status for one in answers} == {503}
    assert all("The database of this host cannot be used" in one.text for one in answers)


def test_the_kill_switch_is_thrown_and_says_what_is_not_confirmed(site):
    with locked(site):
        thrown = site.pause()
    # Two seconds are the wait for its entry in the log.
    assert (thrown.status, thrown.seconds < MOST_SECONDS + 2) == (302, True)
    assert switches.read(site.client, ()).fleet
    assert "did not take this action&#x27;s entry of the log" in site.ask("/admin/switch/").text

    with as_replica(site):
        assert_not_confirmed(site.pause())


def test_twenty_open_tabs_on_a_slow_valkey_leave_room_for_the_kill_switch(site):
    tabs = ("/admin/banner/", "/admin/overview/now/", "/admin/overview/care/", "/admin/fleet/live/")
    with on_the_way(Manner.SLOW, site), ThreadPoolExecutor(20) as browsers:
        site.ask("/admin/banner/")
        asked = [browsers.submit(site.ask, tabs[number % len(tabs)]) for number in range(80)]
        took = [site.ask("/admin/switch/pause/") for _ in range(5)]
        assert_fine([*took, *(one.result() for one in asked)])
        # No thread goes on with a question that nobody waits for any more.
        ends = time.monotonic() + 10
        while site.way.callers > 2 and time.monotonic() < ends:
            time.sleep(0.05)
        assert site.way.callers <= 2
