"""`manage.py run --trigger`: a schedule's own job by hand, where the schedule is served, or words."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from dispatch.console import by_hand
from dispatch.ids import occurrence_of
from dispatch.jobdata import CronTrigger, JobData
from dispatch.jobs import Kind
from dispatch.management.commands import run
from dispatch.schedules import definition
from dispatch.schedules import keys as schedule_keys
from dispatch.triggers import parse
from hosts import keys as host_keys
from hosts import switches
from pidispatch_site import conf
from pidispatch_site.errors import ConfigurationError, OperationalError
from runs.workspace.scope import hash16
from tests.dispatch.consolekit import Console, read_until
from tests.dispatch.queuekit import QUEUE, Host, hash_of
from tests.dispatch.test_console_queues import register
from tests.harness.standing_work import TriggersFile, cron

HERE, THERE = "pi-jobs@here", "pi-jobs@there"
NOW = datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)
LABEL = {"on": {"type": "label", "any": ["pi"]}, "run": {"kind": "github", "flow": "fix"}}
NO_OPTIONS = {
    **dict.fromkeys(["folder", "task", "task_file", "flow", "command"]),
    **dict.fromkeys(["provider", "model", "max_turns", "image"]),
    "after": [],
    "wait_for": [],
    "needs": [],
    "force": False,
    "trigger": "nightly",
}


@pytest.fixture
def file(tmp_path) -> TriggersFile:
    (tmp_path / "site").mkdir()
    file = TriggersFile(tmp_path / "triggers.json")
    file.write(
        LABEL,
        cron("nightly", "0 3 * * *", tmp_path / "site", model="gpt", provider="openai", maxTurns=3),
        cron("away", "@daily", tmp_path / "away"),
    )
    return file


def ask(file: TriggersFile, *, environment: dict[str, str] | None = None, **options: object) -> by_hand.Asked:
    base = {
        "HOME": "/h",
        "PI_EGRESS": "0",
        "PI_WORKER_NAME": "here",
        "TZ": "Europe/Paris",
        **file.environment,
    }
    merged = {**base, **(environment or {})}
    given = {name: value for name, value in merged.items() if value}
    return by_hand.asked(conf.load(given), {**NO_OPTIONS, **options}, now=NOW)


def test_the_job_is_the_entrys_own_under_an_id_that_is_no_occurrence(file, tmp_path):
    asked = ask(file)

    assert asked.job == JobData(
        kind=Kind.LOCAL,
        folder=str(tmp_path / "site"),
        flow="nightly",
        task="Do as you are told.",
        provider="openai",
        model="gpt",
        max_turns=3,
        trigger=CronTrigger(id="nightly", pattern="0 3 * * *"),
    )
    assert asked.job_id == "manual:nightly:1767323045006"
    assert occurrence_of(asked.job_id) is None
    assert asked.job.scope_hash == hash16(str(tmp_path / "site"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"trigger": "nope"}, r"has no schedule 'nope'; schedules are nightly, away\."),
        ({"trigger": ""}, "has no schedule ''"),
        ({"trigger": "0"}, r"--trigger 0 is the place of an entry of type label, .*; schedules are nightly"),
        ({"trigger": "1"}, "is the place of a schedule; give its id, nightly;"),
        ({"trigger": "9"}, "has no schedule '9'"),
        ({"folder": "."}, "^FOLDER cannot be given with --trigger"),
        ({"folder": ""}, "^FOLDER cannot"),
        ({"task": "x", "max_turns": 0, "force": True}, "^--task, --max-turns, --force cannot"),
        ({"after": ["x"], "wait_for": ["a"], "needs": ["s:a"]}, "^--after, --wait-for, --needs "),
        ({"environment": {"PI_TRIGGERS_FILE": ""}}, "^PI_TRIGGERS_FILE is not set"),
        ({"trigger": "away", "environment": {"PI_WORKER_NAME": ""}}, "run.folder is .*away', which is no"),
    ],
)  # fmt: skip
def test_what_cannot_be_started_is_refused_in_words(file, options, says):
    with pytest.raises(ConfigurationError, match=says):
        ask(file, **options)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ('{"triggers": [{"on": {"type": "cron"}, "run": {"kind": "local"}}]}', "(?s)on.id.*run.folder"),
        ('{"triggers": []}', "has no schedule 'nightly'; the file has no schedule"),
        (None, "triggers.json"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_load_is_refused_with_its_problems(file, content, says):
    file.path.unlink()
    if content is not None:
        file.path.write_text(content)

    with pytest.raises(ConfigurationError, match=says):
        ask(file)


def test_a_person_is_shown_only_so_many_schedules(file, tmp_path):
    file.write(*(cron(f"s{number}", "@daily", tmp_path) for number in range(25)))

    with pytest.raises(ConfigurationError, match=r"s19 and 5 more\."):
        ask(file, trigger="nope")


def serve(valkey, file: TriggersFile, host: str, *, name: str = "away", **changes: str) -> None:
    """What the table of this host's queue has: the file's own schedule, or one that says something else."""
    triggers = parse.parse(file.path.read_bytes(), name="")
    (entry,) = (one for one in triggers.cron if one.on.id == name)
    # Another host goes by another zone.
    text = json.loads(definition.of_trigger(entry, host_zone="Asia/Tokyo").text())
    text["run"] |= changes
    valkey.hset(schedule_keys.definitions(f"pi-jobs@{host}"), name, json.dumps(text))


def test_a_schedule_whose_folder_is_here_runs_here_whoever_else_has_it(file, valkey):
    register(valkey, "there")
    serve(valkey, file, "there", name="nightly")

    goes = ask(file).destination(valkey)

    assert (goes.queue, goes.note) == (HERE, None)


def test_another_schedule_runs_on_a_live_host_that_keeps_it(file, valkey):
    for name, fields in (
        ("there", {}),
        ("elder", {}),
        ("gone", {"beatAt": 1}),
        ("shared", {"routes": "false"}),
    ):
        register(valkey, name, **fields)
        serve(valkey, file, name)
    switches.drain(valkey, "elder", by="me", reason="")

    goes = ask(file, trigger="away").destination(valkey)

    assert goes.queue == THERE
    assert goes.note == (
        f"The job goes to {THERE}: host there serves the schedule, this host does not (folder-absent)."
    )


def test_a_drained_host_is_better_than_none_and_told(file, valkey):
    register(valkey, "there")
    serve(valkey, file, "there")
    switches.drain(valkey, "there", by="me", reason="")

    goes = ask(file, trigger="away").destination(valkey)

    assert (goes.queue, "until `manage.py undrain there`" in goes.note) == (THERE, True)


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        pytest.param({}, r"No live host serves .* cannot \(folder-absent\); nothing was enq", id="nobody"),
        pytest.param({"there": None}, "No live host serves", id="without the schedule"),
        pytest.param({"there": {"task": "Else."}}, "there keeps a schedule of that id that says", id="other"),
        pytest.param({"there": b"{"}, "there keeps a schedule of that id", id="unreadable"),
        pytest.param({"there": 7}, "No live host serves", id="a table of another type"),
    ],
)  # fmt: skip
def test_a_schedule_that_nobody_serves_as_the_file_has_it_starts_nowhere(file, valkey, hosts, says):
    for name, table in hosts.items():
        register(valkey, name)
        key = schedule_keys.definitions(f"pi-jobs@{name}")
        if isinstance(table, dict):
            serve(valkey, file, name, **table)
        elif isinstance(table, bytes):
            valkey.hset(key, "away", table)
        elif table is not None:
            valkey.set(key, table)

    with pytest.raises(OperationalError, match=says):
        ask(file, trigger="away").destination(valkey)


def test_a_registry_that_cannot_be_read_is_told(file, valkey):
    valkey.set(host_keys.HOSTS_LIVE, "x")

    with pytest.raises(OperationalError, match=r"registry of hosts cannot be read \(.*try again"):
        ask(file, trigger="away").destination(valkey)


def test_a_single_host_uses_the_shared_queue_and_says_who_else_takes_from_it(file, valkey):
    register(valkey, "there")

    goes = ask(file, environment={"PI_WORKER_NAME": ""}).destination(valkey)

    assert (goes.queue, "other hosts take from it too: there" in goes.note) == (QUEUE, True)


def test_the_command_enqueues_it_also_under_a_pause_and_follows_it(file, valkey, valkey_url, tmp_path):
    console = Console(tmp_path, valkey_url, variables=file.environment)
    switches.pause(valkey, [HERE], by="me@here", reason="lunch")
    with console.running("run", "--trigger", "nightly", "--wait") as process:
        job_id = process.stdout.readline().decode().strip()
        read_until(process.stderr, "paused by me@here: lunch")
        stored = hash_of(valkey, job_id)
        switches.resume_all(valkey)
        host = Host(valkey, name="there", queue=HERE)
        claimed = host.start()
        read_until(process.stderr, "running on there")
        host.end(claimed)

        assert process.wait(timeout=20) == 0
    assert re.fullmatch(r"manual:nightly:\d{13}", job_id)
    assert (claimed.job_id, claimed.job) == (job_id, ask(file).job)
    assert (stored["attempts"], stored["scope"]) == ("2", hash16(str(tmp_path / "site")))


def test_without_a_folder_and_a_schedule_there_is_nothing_to_run():
    with pytest.raises(ConfigurationError, match=r"name the FOLDER .*, or a schedule by --trigger ID"):
        run._on_folder(conf.load({"HOME": "/h"}), {**NO_OPTIONS, "task": "x"}, now=NOW)
