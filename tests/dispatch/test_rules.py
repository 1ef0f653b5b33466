"""The operator's files at work: what an attempt finds in them, and who wakes when they change."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from dispatch.gates.scope import SCOPE
from dispatch.ids import Kind
from dispatch.instants import instant_of
from dispatch.money.ledger import Granted, valkey_now
from dispatch.money.windows import Window, counter_key, token_counter_key
from dispatch.operator_files import overlay_file
from dispatch.operator_files.live import LiveFile
from dispatch.operator_files.overlay import EMPTY
from dispatch.operator_files.overlay import parse as parse_overlay
from dispatch.operator_files.pause_windows import parse as parse_windows
from dispatch.operator_files.scoped_limits import parse as parse_limits
from dispatch.queue.delays import no_delay
from dispatch.queue.promote import Promoter
from dispatch.queue.sleepers import Sleepers
from dispatch.queue.waiters import WaitReason
from dispatch.waits.check import CheckResult, Verdict
from dispatch.worker.admission import admit
from dispatch.worker.attempt import attempt
from dispatch.worker.context import begin_context
from dispatch.worker.followed import OperatorFiles, load_operator_files
from dispatch.worker.payment import reserve
from dispatch.worker.waking import Waking
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.variables import CapAction
from runs.abort import Abort
from runs.outcome import InfraFault, Reason
from runs.result import RunResult
from tests.dispatch import queuekit
from tests.dispatch.workerkit import COMPLETED, Bench, Fault, wait_gate
from tests.harness.standing_work import cron

PAUSED = {"windows": [{"scope": "/srv/site", "allDay": True}]}
OPEN = {"windows": []}


class Ground:
    """The three files, and a host that follows them; `look` is what its thread does every 150 ms."""

    def __init__(self, folder, valkey, **bench) -> None:
        self.paths = {name: folder / f"{name}.json" for name in ("windows", "limits", "settings")}
        self.write("windows", OPEN)
        self.write("limits", {"version": 1, "limits": []})
        files = OperatorFiles(
            windows=self._live("windows", "pause_windows", parse_windows),
            limits=self._live("limits", "scoped_limits", parse_limits),
            overlay=self._live("settings", "settings", parse_overlay, missing=EMPTY),
            read_overlay=partial(overlay_file.read, self.paths["settings"]),
        )
        for live in (files.windows, files.limits, files.overlay):
            live.load()
        self.bench = Bench(valkey, files=files, **bench)
        host = self.bench.host
        self.waking = Waking(
            host.queues, waiters=host.waiters, sleepers=Sleepers(valkey), woken=host.job_woken
        )
        self.look()

    def _live(self, name, label, parse, **more):
        path = self.paths[name]
        count = len if name != "settings" else lambda overlay: 0
        return LiveFile(path, partial(parse, name=str(path)), label=label, count=count, **more)

    def write(self, name, content) -> None:
        path = self.paths[name]
        temporary = path.with_suffix(".new")
        temporary.write_text(content if isinstance(content, str) else json.dumps(content))
        temporary.replace(path)

    def look(self) -> None:
        # New content counts once two looks were alike.
        for _ in range(2):
            self.bench.host.rules.look()
            self.bench.host.rules.rouse(self.waking, lambda: self.now)

    def sleeps(self, job_id="local-1"):
        """Reason and wake time (UTC, s) of a sleeping job; None when it sleeps no more."""
        job = queuekit.hash_of(self.bench.client, job_id)
        if job["status"] != "scheduled":
            return None
        return job["reason"], datetime.fromtimestamp(int(job["until"]) / 1000, UTC)

    @property
    def now(self):
        return instant_of(valkey_now(self.bench.client))

    @property
    def midnight(self):
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)

    def is_awake(self, job_id="local-1") -> bool:
        """Whether the sleeper is due: its next promotion brings it back."""
        found = self.sleeps(job_id)
        return found is not None and found[1] <= self.now


@pytest.fixture
def ground(tmp_path, valkey) -> Ground:
    return Ground(tmp_path, valkey)


@pytest.fixture
def events(capsys):
    def read(name):
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == name]

    return read


def test_a_paused_folder_sleeps_to_the_end_and_wakes_when_the_window_goes(ground):
    ground.write("windows", PAUSED)
    ground.look()

    ground.bench.attempt()

    # Every day is paused: how far ahead that is said does not matter, as long as it is a midnight.
    reason, until = ground.sleeps()
    assert (reason, (until.hour, until.minute, until.second)) == ("pause-window", (0, 0, 0))
    assert until >= ground.midnight
    ground.bench.assert_nothing_is_held()
    ground.look()
    assert not ground.is_awake()
    ground.write("windows", OPEN)
    ground.look()
    assert ground.is_awake()


@pytest.mark.parametrize(
    ("name", "before", "after", "more"),
    [
        pytest.param("windows", PAUSED, OPEN, {}, id="window"),
        pytest.param("settings", {"dailyCap": 1}, {"dailyCap": 2}, {"cap_action": CapAction.PARK}, id="cap"),
        pytest.param(
            "limits",
            {"version": 1, "limits": [{"scope": "/srv/site", "day": 1}]},
            {"version": 1, "limits": []},
            {"cap_action": CapAction.PARK},
            id="scoped limit",
        ),
    ],
)
def test_an_edit_between_the_look_and_the_sleep_is_not_missed(tmp_path, valkey, name, before, after, more):
    ground = Ground(tmp_path, valkey, **more)
    ground.write(name, before)
    if more:
        ground.look()
        ground.bench.attempt("local-0")
    ground.look()

    def edit(point):
        if point == "before put off":
            ground.write(name, after)
            ground.look()

    object.__setattr__(ground.bench.host.transitions, "delays", edit)
    ground.bench.attempt()
    assert ground.sleeps() is not None
    assert not ground.is_awake()
    ground.look()

    assert ground.is_awake()


def test_a_cap_that_stood_there_for_a_moment_puts_nobody_to_sleep_for_long(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap_action=CapAction.PARK)
    ground.write("settings", {"dailyCap": 9})
    ground.look()
    ground.bench.attempt("local-0")

    ground.write("settings", {"dailyCap": 1})
    ground.bench.attempt()
    assert ground.sleeps()[0] == "cap"
    ground.write("settings", {"dailyCap": 9})
    ground.look()

    assert ground.is_awake()


def test_a_cap_that_stays_is_looked_at_once(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap_action=CapAction.PARK)
    ground.write("settings", {"dailyCap": 1})
    ground.look()
    ground.bench.attempt("local-0")

    ground.bench.attempt()
    ground.look()

    assert ground.sleeps()[0] == "cap"
    assert not ground.is_awake()


@pytest.mark.parametrize(
    ("settings", "reason", "cause", "said"),
    [
        pytest.param(
            {"dailyCap": 1},
            "over-budget",
            "over_budget",
            {"window": "day", "reserved": 1, "cap": 1},
            id="day",
        ),
        pytest.param(
            {"weeklyCap": 1},
            "over-budget",
            "over_budget",
            {"window": "week", "reserved": 1, "cap": 1},
            id="week",
        ),
        pytest.param(
            {"monthlyCap": 1},
            "over-budget",
            "over_budget",
            {"window": "month", "reserved": 1, "cap": 1},
            id="month",
        ),
        pytest.param(
            {"dailyCap": 3, "softHoldPct": 50},
            "soft-hold",
            "soft_hold",
            {"window": "day", "reserved": 1, "cap": 3, "pct": 50},
            id="soft hold",
        ),
        pytest.param(
            {"dailyTokenCap": 100},
            "daily-token-cap",
            "over_token_budget",
            {"spent": 100, "cap": 100},
            id="tokens",
        ),
    ],
)
@pytest.mark.parametrize("action", list(CapAction))
def test_a_cap_of_the_settings_holds_up_the_next_job(
    tmp_path, valkey, events, settings, reason, cause, said, action
):
    ground = Ground(tmp_path, valkey, cap_action=action)
    # Counted from the first job on, as a cap is set before what it bounds.
    ground.write("settings", {**settings, **({"weeklyCap": 9, "monthlyCap": 9} | settings)})
    ground.bench.attempt("local-0")
    valkey.set(token_counter_key("budget", ground.now), 100)
    spent = ground.bench.spent()

    ground.bench.attempt()

    assert ground.bench.spent() == spent
    ground.bench.assert_nothing_is_held()
    if action is CapAction.REFUSE:
        record = ground.bench.record()
        assert (record["outcome"], record["reason"], record["budgetReserved"]) == ("policy", reason, False)
        assert events(cause) == [{"event": cause, "jobId": "local-1", **said}]
        return
    found, until = ground.sleeps()
    assert found == "cap"
    assert timedelta(seconds=290) < min(until, ground.midnight) - ground.now < timedelta(seconds=302)
    assert [line["cause"] for line in events("cap_deferred")] == [reason]
    assert queuekit.hash_of(valkey, "local-1")["cause"].startswith(f"{reason}:")
    ground.write("settings", {key: 1000 for key in settings if key != "softHoldPct"})
    ground.look()
    assert ground.is_awake()
    Promoter(valkey).promote(ground.bench.host.queues)
    attempt(ground.bench.host, ground.bench.claim())
    assert ground.bench.standing() == "finished"
    assert "cause" not in queuekit.hash_of(valkey, "local-1")


def test_a_scopes_cap_is_asked_before_the_fleets_and_spares_it(ground, events):
    ground.write("limits", {"version": 1, "limits": [{"scope": "/srv/site/", "day": 1, "week": 2}]})
    ground.look()
    ground.bench.attempt("local-0")
    spent = ground.bench.spent()

    ground.bench.attempt()

    assert ground.bench.spent() == spent
    assert ground.bench.record()["reason"] == "scope-cap"
    (line,) = events("over_scope_budget")
    assert line["scopeKey"].startswith("budget:s:")
    assert (line["window"], line["reserved"], line["cap"], line["kind"]) == ("day", 1, 1, "local")
    assert "srv" not in json.dumps(line)


def test_a_refund_wakes_who_is_parked(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    bench = ground.bench

    def meanwhile():
        bench.attempt("local-2", queuekit.jobs.local_job("/srv/other", task="x"))
        assert ground.sleeps("local-2")[0] == "cap"

    bench.containers.meanwhile = meanwhile
    bench.containers.result = RunResult(container="", never_started=True)
    bench.attempt("local-1")
    ground.look()

    assert ground.is_awake("local-2")


def test_a_refund_while_another_falls_asleep_is_not_missed(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    bench = ground.bench
    bench.containers.result = RunResult(container="", never_started=True)
    asks, refunded = threading.Event(), threading.Event()

    def second(point):
        # It was told that the day is full; the start that filled it is paid back before it sleeps.
        if point == "before put off":
            asks.set()
            assert refunded.wait(10)

    def first():
        thread.start()
        assert asks.wait(10)

    bench.enqueue("local-2", queuekit.jobs.local_job("/srv/other", task="x"))
    claimed = bench.claim()
    object.__setattr__(bench.host.transitions, "delays", second)
    thread = threading.Thread(target=attempt, args=(bench.host, claimed))
    bench.containers.meanwhile = first
    bench.attempt("local-1")
    ground.look()
    refunded.set()
    thread.join(10)
    ground.look()

    assert ground.is_awake("local-2")


@pytest.mark.parametrize("breaks", [RuntimeError("a bug"), InfraFault(detail="x")])
def test_a_refund_after_a_fault_wakes_who_is_parked(tmp_path, valkey, breaks):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    bench = ground.bench

    def park_and_break(point):
        if point == "before begin":
            object.__setattr__(bench.host.transitions, "delays", no_delay)
            bench.attempt("local-2", queuekit.jobs.local_job("/srv/other", task="x"))
            assert ground.sleeps("local-2")[0] == "cap"
            ground.look()
            raise breaks

    object.__setattr__(bench.host.transitions, "delays", park_and_break)
    bench.attempt("local-1")
    ground.look()

    assert ground.is_awake("local-2")


def test_settings_that_do_not_load_refuse_every_job(ground):
    ground.write("settings", {"dailyCap": 0, "model": "x"})

    ground.bench.attempt(job=replace(queuekit.JOB, provider="openai", model="m1"))

    record = ground.bench.record()
    assert (record["reason"], record["provider"], record["model"]) == ("settings-overlay-invalid", None, None)
    assert ground.bench.spent() == 0
    ground.bench.assert_nothing_is_held()


def test_settings_count_from_the_next_job_on(ground):
    ground.write("settings", {"model": "other", "maxTurns": 3, "maxTokens": 5})

    ground.bench.attempt()

    (spec,) = ground.bench.containers.specs
    assert {
        "PI_MODEL": "other",
        "PI_MAX_TURNS": "3",
        "PI_MAX_TOKENS": "5",
    }.items() <= spec.environment.items()
    assert ground.bench.record()["model"] == "other"


def test_concurrency_follows_the_file_without_a_job(ground):
    ground.write("settings", {"concurrency": 5})
    ground.look()
    assert ground.bench.host.slots.limit == 5

    ground.write("settings", "{")
    ground.look()
    assert ground.bench.host.slots.limit == 5

    ground.paths["settings"].unlink()
    ground.look()
    assert ground.bench.host.slots.limit == 2


def test_concurrency_of_the_settings_counts_from_the_boot_on(tmp_path, valkey):
    (tmp_path / "settings.json").write_text('{"concurrency": 4}')

    assert Ground(tmp_path, valkey).bench.host.slots.limit == 4


def test_a_repository_runs_as_many_at_once_as_its_limit_says(ground):
    """At the rung: jobs of a forge are refused elsewhere until they are built."""
    ground.write("limits", {"version": 1, "limits": [{"scope": "acme/web", "concurrent": 2}]})
    ground.look()
    job = replace(queuekit.JOB, kind=Kind.GITHUB, folder=None, repo="acme/web")
    ground.bench.enqueue()
    claimed = ground.bench.claim()
    answers = [SCOPE.take(begin_context(ground.bench.host, claimed, job, Abort())) for _ in range(3)]

    assert [type(answer).__name__ for answer in answers] == ["Held", "Held", "Defer"]


def test_settings_that_do_not_load_at_the_boot_are_said(tmp_path, events):
    (tmp_path / "settings.json").write_text('{"dailyCap": 0}')
    config = conf.load({"PI_STATE_DIR": str(tmp_path)})

    files = load_operator_files(config)

    assert files.overlay.current == EMPTY
    assert [line["reason"] for line in events("settings_reload_invalid")] == ["dailyCap"]


def test_a_row_that_names_a_folder_by_another_path_is_said(tmp_path, events):
    (tmp_path / "link").symlink_to(tmp_path)
    good = [str(tmp_path), "acme/web", "*"]
    scopes = [*good, f"{tmp_path}/", f"{tmp_path}/link", f"{tmp_path}/gone", "~/x", "acme", "https://x/y"]
    windows = [{"scope": scope, "from": "1:00", "to": "2:00"} for scope in scopes]
    (tmp_path / "pw.json").write_text(json.dumps({"windows": windows}))
    limits = [{"scope": scope, "day": 1} for scope in (f"{tmp_path}/", f"{tmp_path}/link")]
    (tmp_path / "sl.json").write_text(json.dumps({"version": 1, "limits": limits}))

    load_operator_files(
        conf.load(
            {
                "PI_STATE_DIR": str(tmp_path),
                "PI_PAUSE_WINDOWS_FILE": str(tmp_path / "pw.json"),
                "PI_SCOPED_LIMITS_FILE": str(tmp_path / "sl.json"),
            }
        )
    )

    said = [line["place"] for line in events("scope_matches_no_job")]
    assert said == [f"windows[{index}]" for index in range(3, 9)] + ["limits[1]"]


def test_a_key_of_a_row_that_means_nothing_is_said(tmp_path, events):
    (tmp_path / "pw.json").write_text(
        '{"windows": [{"scope": "*", "from": "1:00", "to": "2:00", "timezone": "UTC", "\\u0007": 1}]}'
    )
    (tmp_path / "sl.json").write_text('{"version": 1, "limits": [{"scope": "a/b", "day": 1, "daily": 9}]}')

    load_operator_files(
        conf.load(
            {
                "PI_STATE_DIR": str(tmp_path),
                "PI_PAUSE_WINDOWS_FILE": str(tmp_path / "pw.json"),
                "PI_SCOPED_LIMITS_FILE": str(tmp_path / "sl.json"),
            }
        )
    )

    said = [line["place"] for line in events("rule_key_unknown")]
    assert said == ["windows[0].timezone", "windows[0].\\x07", "limits[0].daily"]


def test_what_is_wrong_with_all_files_is_told_at_once(tmp_path):
    (tmp_path / "pw.json").write_text('{"windows": [{"scope": "*"}]}')
    (tmp_path / "t.json").write_text(json.dumps({"triggers": [cron("a", "0 3 * * *", tmp_path / "gone")]}))
    environment = {
        "PI_STATE_DIR": str(tmp_path),
        "PI_PAUSE_WINDOWS_FILE": str(tmp_path / "pw.json"),
        "PI_SCOPED_LIMITS_FILE": str(tmp_path / "sl.json"),
        "PI_TRIGGERS_FILE": str(tmp_path / "t.json"),
    }

    with pytest.raises(ConfigurationError) as raised:
        load_operator_files(conf.load(environment))
    told = "\n".join(raised.value.problems)
    for words in (
        "pw.json: windows[0]",
        "sl.json: does not exist",
        "run.folder is",
        "no folder of this host",
    ):
        assert words in told
    # In a fleet another host may have the folder.
    only = {name: environment[name] for name in ("PI_STATE_DIR", "PI_TRIGGERS_FILE")}
    files = load_operator_files(conf.load({**only, "PI_WORKER_NAME": "alpha"}))
    assert len(files.triggers.current) == 1


def test_an_unknown_setting_is_said_and_does_not_matter(ground, events):
    ground.write("settings", {"dailyCaps": 1, "dailyCap": 9})
    ground.look()

    assert [line["key"] for line in events("settings_overlay_unknown_key")] == ["dailyCaps"]


@pytest.mark.parametrize(
    ("name", "before", "after", "more"),
    [
        pytest.param("windows", PAUSED, OPEN, {}, id="paused"),
        pytest.param("settings", {"dailyCap": 1}, {}, {"cap_action": CapAction.PARK}, id="parked"),
    ],
)
def test_a_waking_that_valkey_did_not_take_is_tried_again(tmp_path, valkey, name, before, after, more):
    ground = Ground(tmp_path, valkey, **more)
    ground.write(name, before)
    ground.look()
    if more:
        ground.bench.attempt("local-0")
    ground.bench.attempt()
    ground.write(name, after)
    object.__setattr__(ground.bench.host.waiters, "_delays", Fault("before wake", ConnectionError()))

    with pytest.raises(ConnectionError):
        ground.look()
    ground.look()

    assert ground.is_awake()


def test_of_the_paused_only_those_wake_whom_the_edit_concerns(ground):
    both = {"windows": [*PAUSED["windows"], {"scope": "/srv/other", "allDay": True}]}
    ground.write("windows", both)
    ground.look()
    ground.bench.attempt("local-1")
    ground.bench.attempt("local-2", queuekit.jobs.local_job("/srv/other", task="x"))

    ground.write("windows", {"windows": both["windows"][:1]})
    ground.look()

    assert ground.is_awake("local-2")
    assert not ground.is_awake("local-1")


def test_a_pause_that_ends_sooner_by_now_wakes_who_sleeps_longer(ground):
    ground.write("windows", PAUSED)
    ground.look()
    ground.bench.attempt()
    soon = (ground.now + timedelta(minutes=3)).strftime("%H:%M")
    start = (ground.now - timedelta(minutes=3)).strftime("%H:%M")

    ground.write("windows", {"windows": [{"scope": "/srv/site", "from": start, "to": soon}]})
    ground.look()

    assert ground.is_awake()


def test_the_parked_wake_some_at_a_time_the_oldest_first_until_all_have_looked(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    ground.bench.attempt("local-0")
    names = [f"local-{number}" for number in range(1, 51)]
    for name in names:
        ground.bench.attempt(name, queuekit.jobs.local_job(f"/srv/{name}", task="x"))
    ground.write("settings", {"dailyCap": 2})

    awake = []
    for _ in range(5):
        ground.look()
        awake.append(sum(ground.is_awake(name) for name in names))

    assert awake[0] < 50
    assert awake[-1] == 50
    assert awake == sorted(awake)


def test_who_is_next_to_look_stays_next_however_often_a_cap_is_changed(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    ground.bench.attempt("local-0")
    for number in range(1, 71):
        ground.bench.attempt(f"local-{number}", queuekit.jobs.local_job(f"/srv/{number}", task="x"))
    ground.waking.parked_anew()

    for _ in range(3):
        ground.waking.parked()
        ground.waking.parked_anew()
    ground.waking.parked()

    assert ground.is_awake("local-70")


def test_a_waking_asked_for_while_sleepers_are_read_is_not_lost(ground):
    """Somebody fell asleep under the old windows after the list of sleepers was taken."""
    ground.bench.host.rules.wake({WaitReason.PAUSE_WINDOW})
    looked = []

    def now():
        if not looked:
            ground.bench.host.rules.wake({WaitReason.PAUSE_WINDOW})
        looked.append(ground.now)
        return ground.now

    ground.bench.host.rules.rouse(ground.waking, now)
    ground.bench.host.rules.rouse(ground.waking, now)
    ground.bench.host.rules.rouse(ground.waking, now)

    assert len(looked) == 2


def test_files_are_followed_while_valkey_is_away(ground):
    ground.write("windows", PAUSED)
    for _ in range(2):
        ground.bench.host.rules.look()

    assert len(ground.bench.host.rules.pause_windows()) == 1


def test_settings_that_bound_nothing_else_wake_nobody(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    ground.bench.attempt("local-0")
    ground.bench.attempt()
    ground.look()

    ground.write("settings", {"model": "other", "maxTurns": 3})
    ground.look()

    assert not ground.is_awake()


def left_by_a_killed_pop(ground):
    """A job whose first pop was killed between its reservation and `begin`, and which was put back."""
    bench = ground.bench
    bench.enqueue()
    claimed = bench.claim()
    context = begin_context(bench.host, claimed, claimed.job, Abort())
    context.settle(EMPTY)
    assert isinstance(reserve(context, within_ms=60_000), Granted)
    sweeper = queuekit.Host(bench.client, boot_number=9, name="beta", host_id="bbbb").sweeper
    bench.client.zadd(f"takers:{queuekit.QUEUE}", {bench.host.owner.boot: 0})
    assert sweeper.tick((queuekit.QUEUE,)).put_back
    assert bench.spent() == 1
    return bench.claim()


@pytest.mark.parametrize(
    ("way", "standing"),
    [
        pytest.param("refused", "finished", id="refused"),
        pytest.param("paused", "scheduled", id="put off"),
        pytest.param("silent", "scheduled", id="tried again"),
        pytest.param("broken", "failed", id="our own bug"),
    ],
)
def test_what_a_killed_pop_had_reserved_is_paid_back_when_the_job_leaves_another_way(ground, way, standing):
    claimed = left_by_a_killed_pop(ground)
    match way:
        case "refused":
            ground.write("settings", {"dailyCap": 0})
        case "paused":
            ground.write("windows", PAUSED)
            ground.look()
        case "silent":
            ground.bench.engine.is_clean = False
        case "broken":
            ground.bench.places.answer = RuntimeError("bug")

    attempt(ground.bench.host, claimed)

    assert ground.bench.standing() == standing
    assert ground.bench.spent() == 0
    assert not ground.bench.client.keys("budget:r:*")


def test_what_a_killed_pop_had_reserved_serves_the_next_one(ground):
    attempt(ground.bench.host, left_by_a_killed_pop(ground))

    assert ground.bench.standing() == "finished"
    assert ground.bench.spent() == 1


@pytest.mark.parametrize("key", ["starts", "tokens"])
def test_under_a_counter_that_is_no_number_nothing_starts_and_the_job_is_kept(ground, events, key):
    ground.write("settings", {"dailyTokenCap": 100})
    keys = {
        "starts": counter_key("budget", Window.DAY, ground.now),
        "tokens": token_counter_key("budget", ground.now),
    }
    ground.bench.client.set(keys[key], "x")

    ground.bench.attempt()

    assert ground.sleeps()[0] == "cap"
    assert not ground.bench.containers.specs
    assert [line["cause"] for line in events("cap_deferred")] == ["ledger-refused"]


def test_rules_that_changed_while_the_gates_took_their_time_count(ground):
    def edit():
        ground.write("windows", PAUSED)
        ground.look()

    ground.bench.places.meanwhile = edit
    ground.bench.attempt()

    assert ground.sleeps()[0] == "pause-window"
    assert ground.bench.spent() == 0
    ground.bench.assert_nothing_is_held()


def test_a_start_whose_answer_was_lost_is_paid_back_when_tokens_forbid_it(ground):
    ground.write("settings", {"dailyTokenCap": 100})
    ground.look()
    bench = ground.bench
    bench.enqueue()
    claimed = bench.claim()
    context = begin_context(bench.host, claimed, claimed.job, Abort())
    context.settle(EMPTY)
    reserve(context, within_ms=60_000)
    bench.client.set(token_counter_key("budget", ground.now), 100)
    context.now -= timedelta(seconds=10)

    assert admit(context).reason is Reason.DAILY_TOKEN_CAP
    assert bench.spent() == 0


def test_what_a_killed_pop_left_wakes_who_is_parked_when_it_is_paid_back(tmp_path, valkey):
    ground = Ground(tmp_path, valkey, cap=1, cap_action=CapAction.PARK)
    claimed = left_by_a_killed_pop(ground)
    ground.bench.attempt("local-2", queuekit.jobs.local_job("/srv/other", task="x"))
    ground.look()
    ground.write("settings", {"maxTurns": 0})

    attempt(ground.bench.host, claimed)
    ground.look()

    assert ground.is_awake("local-2")


@pytest.mark.parametrize("landed", [False, True])
def test_after_an_outage_at_the_reservation_the_rules_of_then_count(ground, landed):
    """The claim is a while ago; an asking may have landed though its answer was lost."""
    bench = ground.bench
    bench.enqueue()
    claimed = bench.claim()
    context = begin_context(bench.host, claimed, claimed.job, Abort())
    context.settle(EMPTY)
    if landed:
        reserve(context, within_ms=60_000)
    ground.write("windows", PAUSED)
    ground.look()
    context.rules = bench.host.rules.version
    context.now -= timedelta(seconds=10)

    assert admit(context).reason == "pause-window"
    assert bench.spent() == 0


def test_settings_that_are_gone_for_a_moment_are_not_taken_for_none(ground):
    ground.write("settings", {"dailyCap": 1})
    ground.look()
    path = ground.paths["settings"]
    aside = path.with_suffix(".old")
    path.rename(aside)
    back = threading.Timer(0.3, aside.rename, [path])
    back.start()

    assert ground.bench.host.rules.overlay().daily_cap == 1
    back.join()
    path.unlink()
    ground.look()
    assert ground.bench.host.rules.overlay() == EMPTY


def test_a_waiting_job_that_a_bug_of_ours_ends_leaves_no_hold(tmp_path, valkey):
    answers = iter([CheckResult(Verdict.HOLD, 3, "not-yet", 0, 0)])

    def check(executable, argument, **more):
        return next(answers)

    gate = wait_gate(valkey, profiles={"ci": tmp_path}, check=check)
    bench = Ground(tmp_path, valkey, waits=gate).bench
    bench.attempt(job=replace(queuekit.JOB, wait_for=({"profile": "ci"},)))
    assert valkey.keys("wait:*")
    bench.host.waiters.wake_oldest(bench.host.queues, "wait")
    Promoter(valkey).promote(bench.host.queues)

    attempt(bench.host, bench.claim())

    assert bench.standing() == "failed"
    assert not valkey.keys("wait:*")


@pytest.mark.parametrize(
    ("cap", "reported", "counted"),
    [
        pytest.param(500, {"total": 120}, 120, id="counted"),
        pytest.param(500, {"total": 0}, 0, id="nothing reported"),
        pytest.param(500, None, 0, id="no meter"),
        pytest.param(None, {"total": 120}, 0, id="no cap"),
    ],
)
@pytest.mark.parametrize("exit_code", [0, 1, 2])
def test_tokens_are_counted_on_every_path_that_ran_a_container(ground, cap, reported, counted, exit_code):
    if cap:
        ground.write("settings", {"dailyTokenCap": cap})
    line = json.dumps({"event": "exit", "turns": 1, "tokens": reported and {**reported, "input": 1}}).encode()
    ground.bench.containers.result = replace(COMPLETED, exit_code=exit_code, tail=line + b"\n")

    ground.bench.attempt()

    assert int(ground.bench.client.get(token_counter_key("budget", ground.now)) or 0) == counted
