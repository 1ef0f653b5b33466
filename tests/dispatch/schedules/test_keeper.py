"""Keeping a host's table as its file says: agreement, edits, folders, other names, a server that is away."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dispatch.instants import epoch_ms
from dispatch.operator_files.live import LiveFile
from dispatch.queue.owner import Owner
from dispatch.schedules import keys
from dispatch.schedules.definition import Schedule, read
from dispatch.schedules.keeper import Keeper
from dispatch.schedules.opinion import Opinion
from dispatch.schedules.other_tables import OWNERS
from dispatch.schedules.table import Table
from dispatch.schedules.ticker import Ticker
from dispatch.triggers.parse import parse
from hosts import keys as hosts_keys
from hosts.names import SHARED_QUEUE, host_queue
from hosts.registry import Registry
from pidispatch_site import clients
from pidispatch_site.clients import VALKEY_FAULTS
from tests.dispatch.fleetkit import host_id
from tests.dispatch.schedules.schedulekit import end_all, instants
from tests.harness.standing_work import TriggersFile, cron
from tests.harness.valkey_server import ValkeyServer

NOW = datetime(2026, 3, 2, tzinfo=UTC)
RETRY, REVIEW = 5.0, 30.0


class Host:
    """One host without its threads: `edit` is what its thread of files sees, `look` what its keeper does."""

    boots = itertools.count(1)

    def __init__(self, client, home, name="alpha", *, fleet_mode=True, state="", entries=("old",)):
        self.client, self.home, self.now = client, home, 0.0
        self.triggers = TriggersFile(home / f"{state or name}.json")
        self.queue = host_queue(name) if fleet_mode else SHARED_QUEUE
        of = host_id(state or name)
        self.owner = Owner(boot=f"{of}-{next(self.boots):08x}", host_id=of, host=name)
        self.write(*entries)
        self.file = LiveFile(
            self.triggers.path, lambda text: parse(text, name="f"), label="triggers", count=len
        )
        self.file.load()
        self.opinion = Opinion(self.file, zone="UTC")
        self.registry = Registry(
            client,
            name=name,
            host_id=of,
            boot=self.owner.boot,
            queues=[self.queue],
            facts={"fpCron": self.opinion.fingerprint, "cronCount": self.opinion.count},
        )
        self.keeper = Keeper(
            client=client,
            registry=self.registry,
            file=self.file,
            opinion=self.opinion,
            owner=self.owner,
            queue=self.queue,
            zone="UTC",
            fleet_mode=fleet_mode,
            clock_ms=lambda: epoch_ms(NOW),
            retry=RETRY,
            review=REVIEW,
            clock=lambda: self.now,
        )

    def cron(self, name, folder="here", pattern="0 3 * * *"):
        (self.home / "here").mkdir(exist_ok=True)
        return cron(name, pattern, self.home / folder)

    def write(self, *entries):
        """By their names, or with arguments of `cron`."""
        self.triggers.write(*(self.cron(*([one] if isinstance(one, str) else one)) for one in entries))

    def boot(self):
        self.registry.register()
        self.keeper.at_boot()
        self.file.poll()
        return self

    def edit(self, *entries):
        self.write(*entries)
        self.look()

    def look(self, *, after=0.0):
        self.now += after
        for _ in range(2):
            self.file.poll()
        self.keeper.look()

    def resident(self, queue=None):
        return sorted(Table(self.client, queue or self.queue).resident())

    def row(self):
        return {
            field: self.client.hget(hosts_keys.host_row(self.owner.host), field)
            for field in ("fpCron", "cronCount")
        }

    def ages(self, seconds):
        """Let its last beat have been so long ago."""
        row = hosts_keys.host_row(self.owner.host)
        self.client.hincrby(row, "beatAt", -seconds * 1000)


@pytest.fixture
def make(valkey, tmp_path):
    return lambda *names, **options: Host(valkey, tmp_path, *names, **options)


@pytest.fixture
def said(events):
    """What was said since it was last asked, of schedules."""
    seen = 0

    def news():
        nonlocal seen
        lines = events()[seen:]
        seen += len(lines)
        return [line for line in lines if line["event"] != "triggers_watching"]

    return news


def names(lines):
    return [line["event"] for line in lines]


def test_the_first_to_be_edited_waits_for_the_second_and_then_follows_by_itself(make, said):
    alpha, beta = make("alpha").boot(), make("beta").boot()
    alpha.look()
    assert said() == [
        {"event": "schedules_installed", "installed": 1, "removed": 0},
        {"event": "cron_agreement", "peers": 1},
        {"event": "schedules_installed", "installed": 1, "removed": 0},
    ]
    before = beta.opinion.fingerprint()

    alpha.edit("new", "more")
    for _ in range(3):
        alpha.look(after=RETRY)
    assert alpha.resident() == beta.resident() == ["old"]
    peer = {"host": "beta", "fpCron": before, "cronCount": 1}
    assert said() == [
        {
            "event": "cron_divergence_refused",
            "mine": alpha.opinion.fingerprint(),
            "cronCount": 2,
            "peers": [peer],
        }
    ]

    beta.edit("new", "more")
    assert (alpha.resident(), beta.resident()) == (["old"], ["more", "new"])
    alpha.look(after=RETRY - 0.1)
    assert alpha.resident() == ["old"]
    alpha.look(after=0.1)
    assert alpha.resident() == ["more", "new"]
    followed = ["scheduler_removed_orphan", "cron_agreement", "schedules_reloaded"]
    news = said()
    assert names(news) == followed * 2
    assert news[-1] == {"event": "schedules_reloaded", "installed": 2, "removed": 1}


def test_a_refusal_is_said_again_when_it_is_another(make, said):
    alpha, beta, gamma = (make(name).boot() for name in ("alpha", "beta", "gamma"))
    said()
    alpha.edit("new")
    beta.edit("new")
    alpha.look(after=RETRY)
    gamma.edit("other")
    alpha.look(after=RETRY)

    told = [[peer["host"] for peer in line["peers"]] for line in said()]
    assert told == [["beta", "gamma"], ["gamma"], ["gamma"], ["alpha", "beta"], ["gamma"]]


@pytest.mark.parametrize("fleet_mode", [True, False])
def test_a_stale_host_never_prunes_and_starts_all_the_same(make, said, fleet_mode):
    alpha = make("alpha", fleet_mode=fleet_mode, entries=[]).boot()
    alpha.edit("new", "more")
    stale = make("stale", fleet_mode=fleet_mode)
    left_behind = Schedule("mine", "0 3 * * *", "UTC", stale.cron("mine")["run"])
    if fleet_mode:
        Table(stale.client, stale.queue).reconcile([left_behind], now=NOW)
    said()
    stale.boot()

    for age in (0, 60, 29):
        alpha.ages(age)
        stale.look(after=RETRY)
        assert alpha.resident() == ["more", "new"]
        assert stale.resident() == (["mine"] if fleet_mode else ["more", "new"])
    assert names(said()) == ["cron_divergence_refused"]
    # Nobody else is there now.
    alpha.ages(3)
    stale.look(after=RETRY)
    assert stale.resident() == ["old"]
    assert "schedules_installed" in names(said())


def deleted(path):
    path.unlink()


def a_directory(path):
    path.unlink()
    path.mkdir()


BAD = {
    "deleted": (deleted, "missing"),
    "emptied": (lambda path: path.write_text(""), "file"),
    "malformed": (lambda path: path.write_text('{"triggers": ['), "file"),
    "wrong": (
        lambda path: path.write_text('{"triggers": [{"on": {"type": "cron"}, "run": {}}]}'),
        "trigger at index 0: run.kind, trigger at index 0: on.id",
    ),
    "a directory": (a_directory, "not-a-file"),
}


@pytest.mark.parametrize(("spoil", "reason"), BAD.values(), ids=BAD)
def test_a_file_that_cannot_be_taken_changes_nothing_and_is_no_opinion(make, said, spoil, reason):
    alpha, beta = make("alpha").boot(), make("beta").boot()
    said()
    path = alpha.triggers.path

    spoil(path)
    alpha.look()
    alpha.look(after=REVIEW)
    alpha.registry.publish()
    (line,) = said()
    assert line["event"] == "schedules_reload_invalid"
    assert line["kept"] is True
    assert line["reason"].startswith(reason)
    assert alpha.resident() == ["old"]
    assert alpha.row() == {"fpCron": b"", "cronCount": b""}

    # Beta is free to go on, and what it has now is what alpha has to agree to.
    beta.edit("new")
    assert beta.resident() == ["new"]
    if path.is_dir():
        path.rmdir()
    said()
    alpha.edit("old")
    assert (alpha.resident(), names(said())) == (["old"], ["cron_divergence_refused"])
    alpha.edit("new")
    assert (alpha.resident(), names(said())[-1]) == (["new"], "schedules_reloaded")


def test_what_is_refused_while_its_file_is_gone_is_own_triggers_unreadable(make, said):
    alpha, _ = make("alpha").boot(), make("beta").boot()
    alpha.edit("new")
    said()

    alpha.triggers.path.unlink()
    alpha.look(after=RETRY)
    said_of = [line for line in said() if line["event"] == "cron_divergence_refused"]
    assert [(line["reason"], "mine" in line, "cronCount" in line) for line in said_of] == [
        ("own-triggers-unreadable", False, False)
    ]
    assert alpha.resident() == ["old"]


def test_no_schedules_are_an_opinion(make, said):
    alpha = make("alpha").boot()
    alpha.edit()
    assert alpha.resident() == []
    assert alpha.row()["cronCount"] == b"0"
    beta = make("beta").boot()
    assert beta.resident() == []
    assert names(said())[-1] == "cron_divergence_refused"


def test_what_the_file_lost_while_no_worker_lived_is_gone_after_the_boot(make, said):
    make("alpha", state="one").boot()
    said()
    alpha = make("alpha", state="one", entries=[]).boot()

    assert alpha.resident() == []
    assert said() == [
        {"event": "scheduler_removed_orphan", "schedulerId": "old"},
        {"event": "schedules_installed", "installed": 0, "removed": 1},
    ]


@pytest.fixture
def server():
    """A server of the test's own; a short path, for its socket."""
    home = Path(tempfile.mkdtemp(prefix="pd-vk-"))
    server = ValkeyServer(home)
    server.start()
    yield server
    server.close()
    shutil.rmtree(home)


def test_a_server_that_is_away_is_said_once_and_asked_until_it_is_back(server, tmp_path, said):
    client = clients.state_client(server.url)
    alpha = Host(client, tmp_path).boot()
    said()

    server.terminate()
    alpha.edit("new")
    alpha.look(after=RETRY)
    # The boot waits for it instead.
    with pytest.raises(VALKEY_FAULTS):
        alpha.keeper.at_boot()
    (line,) = (line for line in said() if line["event"].startswith("sched"))
    assert line == {"event": "schedules_reload_failed", "reason": "no-connection"}

    server.start()
    alpha.look(after=RETRY)
    assert (alpha.resident(), names(said())[-1]) == (["new"], "schedules_reloaded")
    client.close()


def test_a_table_that_is_none_is_said_once_and_mended_by_itself(valkey, make, said):
    valkey.set(keys.definitions("pi-jobs@alpha"), "no hash")
    alpha = make("alpha").boot()
    alpha.look(after=RETRY)
    assert names(said()) == ["schedules_reload_failed"]

    valkey.delete(keys.definitions("pi-jobs@alpha"))
    alpha.look(after=RETRY)
    assert names(said()) == ["schedules_installed"]
    # It may become so later, too.
    valkey.set(keys.torn("pi-jobs@alpha"), "no hash")
    alpha.look(after=REVIEW)
    assert names(said()) == ["schedules_reload_failed"]


@pytest.mark.parametrize(
    "lose",
    [
        lambda alpha: alpha.client.flushall(),
        lambda alpha: Table(alpha.client, alpha.queue).remove(["old"]),
        lambda alpha: alpha.client.hset(keys.definitions(alpha.queue), "old", "something else"),
        lambda alpha: alpha.client.hset(keys.definitions(alpha.queue), "planted", "{}"),
    ],
    ids=["all", "removed", "changed", "planted"],
)
def test_what_the_server_lost_comes_back(make, said, lose):
    alpha = make("alpha").boot()
    before = alpha.client.hgetall(keys.definitions(alpha.queue))
    said()

    lose(alpha)
    alpha.look(after=REVIEW - 1)
    assert said() == []
    alpha.look(after=1)
    assert alpha.client.hgetall(keys.definitions(alpha.queue)) == before
    assert names(said())[-1] == "schedules_reloaded"
    alpha.look(after=REVIEW)
    assert said() == []


@pytest.mark.parametrize(
    "lose",
    [
        lambda alpha: alpha.client.delete(keys.upcoming(alpha.queue)),
        lambda alpha: alpha.client.zadd(keys.upcoming(alpha.queue), {"old": 9e15}),
    ],
    ids=["lost", "far away"],
)
def test_a_schedule_whose_next_instant_went_does_not_stand_still(make, said, lose):
    alpha = make("alpha").boot()
    before = alpha.client.zrange(keys.upcoming(alpha.queue), 0, -1, withscores=True)
    said()

    lose(alpha)
    alpha.look(after=REVIEW)
    assert alpha.client.zrange(keys.upcoming(alpha.queue), 0, -1, withscores=True) == before
    assert names(said()) == ["schedules_reloaded"]
    alpha.look(after=REVIEW)
    assert said() == []


def test_what_was_torn_down_stays_so_until_its_entry_is_another(make, said):
    alpha = make("alpha").boot()
    table = Table(alpha.client, alpha.queue)
    assert table.tear_down("old", stalls=3, at_ms=0)
    said()

    alpha.look(after=REVIEW)
    assert said() == []
    alpha.edit("old", "new")
    assert said() == [{"event": "schedules_reloaded", "installed": 1, "removed": 0, "torn": 1}]
    alpha.edit(("old", "here", "0 4 * * *"))
    assert table.resident()["old"].torn is None


def test_in_a_fleet_schedules_come_and_go_with_their_folders(make, said):
    alpha = make("alpha", entries=("here", ("there", "there"))).boot()
    unserved = {"event": "schedule_unserved", "schedulerId": "there", "reason": "folder-absent"}
    assert said() == [
        unserved,
        {"event": "schedules_installed", "installed": 1, "removed": 0, "unserved": 1},
    ]

    # Two looks have to find it: what is mounted anew is there, away and there again.
    for step in (alpha.home.joinpath("there").mkdir, alpha.home.joinpath("there").rmdir):
        step()
        before = alpha.resident()
        alpha.look(after=REVIEW)
        assert (alpha.resident(), said()) == (before, [])
        alpha.look(after=REVIEW)
        assert alpha.resident() == (["here"] if "there" in before else ["here", "there"])
        news = said()
    assert names(news) == ["schedule_unserved", "scheduler_removed_orphan", "schedules_reloaded"]
    alpha.look(after=REVIEW)
    alpha.edit("here", ("there", "there"), ("too", "there"))
    assert [line.get("schedulerId") for line in said()] == ["too", None]


@pytest.mark.parametrize("fleet_mode", [True, False])
def test_a_link_that_is_switched_is_followed_at_once(make, said, fleet_mode):
    alpha = make("alpha", fleet_mode=fleet_mode, entries=("other", ("linked", "current")))
    (old, new, gone), link = (alpha.home / name for name in ("old", "new", "gone")), alpha.home / "current"
    for folder in (old, new, gone):
        folder.mkdir()
    link.symlink_to(old)
    alpha.write("other", ("linked", "current"), ("far", "gone"))
    alpha.file.load()
    alpha.boot()
    folder = lambda: read(Table(alpha.client, alpha.queue).resident()["linked"].definition).run["folder"]  # noqa: E731
    assert folder() == str(old)

    link.unlink()
    alpha.look(after=1)
    assert folder() == str(old)
    link.symlink_to(new)
    alpha.look(after=1)
    assert folder() == str(new)
    said()
    alpha.look(after=1)
    # What goes meanwhile is seen twice all the same.
    gone.rmdir()
    link.unlink()
    link.symlink_to(old)
    alpha.look(after=1)
    assert (folder(), said()) == (str(new), [])


def test_a_single_host_keeps_what_it_has_until_it_has_every_folder(make, said):
    alpha = make("alpha", fleet_mode=False).boot()
    said()
    alpha.edit("old", ("there", "there"))
    alpha.look(after=RETRY)
    reason = 'trigger at index 1 (cron trigger "there"): run.folder'
    assert said() == [{"event": "schedules_reload_invalid", "reason": reason, "kept": True}]
    assert alpha.resident() == ["old"]

    (alpha.home / "there").mkdir()
    alpha.look(after=RETRY)
    assert alpha.resident() == ["old", "there"]
    said()
    # Its jobs are refused meanwhile, and seen.
    (alpha.home / "there").rmdir()
    for _ in range(3):
        alpha.look(after=REVIEW)
    assert (alpha.resident(), said()) == (["old", "there"], [])


def test_a_host_that_gets_a_name_takes_its_schedules_along(make, said):
    first = make("machine", state="one", fleet_mode=False, entries=("old", "gone")).boot()
    first.registry.close()
    assert first.resident() == ["gone", "old"]
    said()

    named = make("alpha", state="one").boot()
    assert (named.resident(), named.resident(SHARED_QUEUE)) == (["old"], [])
    assert said()[-1] == {"event": "schedules_installed", "installed": 1, "removed": 2}
    # Under another name, and without one again.
    named.registry.close()
    renamed = make("beta", state="one").boot()
    assert (renamed.resident(), renamed.resident(named.queue)) == (["old"], [])
    renamed.registry.close()
    nameless = make("machine", state="one", fleet_mode=False).boot()
    assert (nameless.resident(), nameless.resident(renamed.queue)) == (["old"], [])
    assert nameless.client.hgetall(OWNERS) == {b"pi-jobs": host_id("one").encode()}


def test_under_another_name_nothing_is_lost_and_nothing_piles_up(make, valkey):
    """What was due in between comes once, however often the name goes to and fro while jobs wait."""
    clock = lambda minutes: lambda: epoch_ms(NOW) + minutes * 60_000  # noqa: E731
    every = ("old", "here", "*/5 * * * *")
    for minutes, name in enumerate(("alpha", "beta") * 3):
        host = make(name, state="one", entries=[every])
        host.keeper.clock_ms = clock(minutes * 7)
        host.boot()
        Ticker(valkey, [host.queue], clock_ms=clock(minutes * 7)).tick()
        Ticker(valkey, [host.queue], clock_ms=clock(minutes * 7 + 1)).tick()
        host.registry.close()

    waiting = {name: instants(valkey, host_queue(name)) for name in ("alpha", "beta")}
    # Nothing is due at the first boot; beta is late by its minutes 5 and 7, and so on.
    assert waiting == {"alpha": ["02. 00:10"], "beta": ["02. 00:05"]}
    for name in waiting:
        end_all(valkey, host_queue(name))
    host = make("gamma", state="one", entries=[every]).boot()
    assert {*valkey.hkeys(OWNERS)} == {host.queue.encode()}


def test_what_another_host_has_put_into_the_shared_table_is_left_there(make, said):
    both = ("old", "theirs")
    make("single", fleet_mode=False, entries=both).boot().registry.close()

    # It may be down: only what we serve ourselves leaves its table.
    alpha = make("alpha").boot()
    assert alpha.resident(SHARED_QUEUE) == ["theirs"]
    alpha.registry.close()
    # While it lives it keeps its table itself.
    single = make("single", fleet_mode=False, entries=both).boot()
    beta = make("beta", entries=both).boot()
    assert beta.resident() == single.resident() == ["old", "theirs"]
    said()
    beta.look(after=REVIEW)
    assert (single.resident(), said()) == (["old", "theirs"], [])

    # It never comes back: what we serve would start on the shared queue, for hosts without the folder.
    single.ages(91)
    beta.look(after=REVIEW)
    assert single.resident() == []
    assert names(said()) == ["scheduler_removed_orphan"] * 2 + ["schedules_reloaded"]
    beta.look(after=REVIEW)
    assert said() == []


def test_while_nobody_can_see_who_is_there_other_tables_stay(make, said, valkey):
    single = make("single", fleet_mode=False).boot()
    valkey.rename(hosts_keys.HOSTS_LIVE, "aside")
    valkey.set(hosts_keys.HOSTS_LIVE, "no set")
    alpha = make("alpha")
    alpha.registry.publish = lambda: None
    alpha.keeper.at_boot()
    alpha.look(after=REVIEW)
    assert alpha.resident() == single.resident() == ["old"]

    valkey.rename("aside", hosts_keys.HOSTS_LIVE)
    single.registry.close()
    alpha.look(after=REVIEW)
    assert (alpha.resident(), single.resident()) == (["old"], [])


def test_a_table_of_an_older_name_is_left_while_a_copy_of_the_host_may_live_by_it(make, said):
    copy = make("alpha", state="one").boot()
    beta = make("beta", state="one").boot()
    assert copy.resident() == beta.resident() == ["old"]
    beta.look(after=REVIEW)
    assert copy.resident() == ["old"]

    copy.ages(91)
    beta.look(after=REVIEW)
    assert (copy.resident(), beta.resident()) == ([], ["old"])


def test_a_host_whose_name_or_id_another_has_changes_nothing(make, said):
    alpha = make("alpha", state="one").boot()
    copy = make("alpha", state="one")
    copy.registry.register()
    alpha.registry.publish()
    assert alpha.registry.is_contested
    said()

    alpha.edit("new")
    assert alpha.resident() == ["old"]
    assert [(line["event"], line["reason"]) for line in said()] == [
        ("cron_divergence_refused", "host-contested")
    ]


def test_an_edit_in_the_middle_is_asked_about_anew(make):
    alpha, beta = make("alpha").boot(), make("beta").boot()
    asked = alpha.registry.publish

    def publish():
        asked()
        alpha.registry.publish = asked
        alpha.triggers.write(alpha.cron("old"))
        for _ in range(2):
            alpha.file.poll()

    alpha.registry.publish = publish
    alpha.edit("new")
    assert alpha.resident() == ["old"]
    alpha.look()
    assert alpha.resident() == beta.resident() == ["old"]
