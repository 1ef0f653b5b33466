"""What `doctor` says of triggers: the file, what its schedules ask for, and whether they keep their word."""

from __future__ import annotations

import os
import subprocess

import pytest

from dispatch.console.findings import Mark
from dispatch.console.schedule_facts import LastRun
from dispatch.doctor import configuration, trigger_images, trigger_keys, trigger_parts, triggers
from dispatch.doctor.examination import examine
from dispatch.schedules.table import Table
from hosts import keys as hosts_keys
from tests.dispatch.schedulekit import ALPHA, BRAVO, MINUTE_MS, Bench, entry, hourly, schedule

CLOSE = {"type": "issue", "action": ["closed"], "number": 7, "once": True}
FORGE = {"kind": "github", "flow": "fix", "instructions": "be kind"}
PLAIN = {"PI_EGRESS": "0", "PI_BACKEND": "process", "TZ": "UTC"}
SHOTS = [
    {"on": CLOSE, "run": FORGE},
    {"on": {**CLOSE, "number": 8}, "run": FORGE},
    {"on": {**CLOSE, "disarmed": {"at": "2026-01-01T00:00:00Z"}}, "run": FORGE},
]


@pytest.fixture
def bench(valkey, tmp_path):
    return Bench(valkey, tmp_path)


def known(bench, **variables):
    values = {
        **PLAIN,
        "PI_STATE_DIR": str(bench.folder / "state"),
        "TZ": "UTC",
    }
    return configuration.read({**values, **variables})


def told(bench, *, fleet_mode=True, asked=True, **variables):
    """What is said of the bench's file: token, mark and text of each finding."""
    names = {"PI_WORKER_NAME": "alpha"} if fleet_mode else {}
    found = known(bench, PI_TRIGGERS_FILE=str(bench.file.path), **names, **variables)
    file = triggers.file_of(found)
    overview = bench.look(file=file) if asked else None
    findings = [
        *triggers.look(found, bench.folder, overview, file),
        *trigger_parts.look(found, file),
        *trigger_images.look(found, file, seconds=30),
    ]
    return [(one.check, one.mark, one.text) for one in findings]


def has(found, check, mark, part):
    return any((one[0], one[1]) == (check, mark) and part in one[2] for one in found)


def test_of_a_file_that_loads_is_told_what_stands_in_it(bench):
    hourly(bench)
    bench.entries += SHOTS
    bench.host()
    bench.entries += [entry("far", folder="/nowhere")]
    bench.host()

    found = told(bench)

    assert has(found, "loads", Mark.OK, "loads: 2 schedules, 3 rules for forges")
    assert has(found, "one-shots", Mark.OK, "2 armed, 1 spent")
    assert has(found, "instructions", Mark.OK, "3 rules have standing instructions")
    assert has(found, "served", Mark.OK, "1 schedule is for other hosts: far")
    assert has(found, "unserved", Mark.WARNING, "schedule far: unserved: its folder is not here, and no")


def test_a_single_host_has_to_serve_all_of_it_and_that_is_said_once(bench):
    bench.entries = [entry("far", folder="/nowhere")]
    bench.host()

    found = told(bench, fleet_mode=False)

    assert has(found, "served", Mark.FAILED, "schedule far cannot be served by this host (folder-absent)")
    assert not any(check == "unserved" for check, _, _ in found)


def test_every_problem_of_a_file_is_a_failure(bench):
    bench.entries = [{"on": {"type": "cron"}, "run": {}}, 5]

    found = told(bench, asked=False)

    assert {(check, mark) for check, mark, _ in found} == {("loads", Mark.FAILED)}
    assert len(found) > 2


@pytest.mark.parametrize(
    ("makes", "mark", "part"),
    [
        (False, Mark.OK, "no file of triggers is configured"),
        (True, Mark.WARNING, "is not read: PI_TRIGGERS_FILE is not set, and 2 one-shots are armed in it"),
    ],
)
def test_without_the_variable_a_file_that_lies_here_is_told(makes, mark, part, bench):
    bench.entries = SHOTS if makes else ()
    path = bench.file.path
    if not makes:
        path.unlink()
    found = known(bench)

    (one,) = triggers.look(found, bench.folder, None, triggers.file_of(found))

    assert (one.check, one.mark) == ("loads", mark)
    assert part in one.text


def torn(bench, due):
    assert Table(bench.client, ALPHA).tear_down("nightly", stalls=4, at_ms=due - MINUTE_MS)


def bravo_gone(bench, due):
    bench.install(schedule("other", "5 * * * *"), queue=BRAVO)


def no_file(bench, due):
    bench.client.hdel(hosts_keys.host_row("alpha"), "fpTriggers")


def spoilt(bench, due):
    bench.client.set(f"sched:{BRAVO}:def", "x")
    bench.client.sadd(hosts_keys.QUEUES_KNOWN, BRAVO)


def edited(bench, due):
    bench.host(fpTriggers="0" * 16)


STANDING = {
    "missed": (lambda *_: None, "missed", Mark.WARNING, "schedule nightly: missed "),
    "torn down": (torn, "missed", Mark.FAILED, "torn down on pi-jobs@alpha"),
    "a table whose host is gone": (
        bravo_gone,
        "host-gone",
        Mark.WARNING,
        "1 schedule stands in pi-jobs@bravo, and the worker bravo is not there to start them",
    ),
    "a host without a file": (no_file, "no-triggers-file", Mark.WARNING, "alpha has no triggers file"),
    "a table of another type": (
        spoilt,
        "unreadable",
        Mark.WARNING,
        "schedules of pi-jobs@bravo cannot be",
    ),
    "an edit that is not taken over": (edited, "taken-over", Mark.WARNING, "has loaded another version"),
}


@pytest.mark.parametrize("case", STANDING.values(), ids=list(STANDING))
def test_what_is_wrong_with_schedules_is_told(case, bench):
    happened, check, mark, part = case
    happened(bench, hourly(bench))

    assert has(told(bench), check, mark, part), told(bench)


def test_schedules_that_keep_their_word_are_one_line(bench):
    bench.entries = [entry(pattern="5 * * * *")]
    bench.host()
    bench.install(schedule(pattern="5 * * * *"), age_ms=0)

    assert has(told(bench, PI_GLOBAL_PI_DIR="/"), "standing", Mark.OK, "1 schedule keeps its word")


def test_without_any_worker_nothing_keeps_its_word(bench):
    bench.entries = [entry(pattern="5 * * * *")]
    bench.install(schedule(pattern="5 * * * *"), age_ms=0)

    found = told(bench)

    assert [check for check, _, _ in found if check in {"host-gone", "standing"}] == ["host-gone"]
    assert has(
        found, "host-gone", Mark.WARNING, "1 schedule stands in pi-jobs@alpha, and the worker alpha is"
    )


def test_a_last_run_that_was_refused_is_told(bench):
    due = hourly(bench)
    run = LastRun(job_id="x", instant_ms=due, outcome="policy", reason="provider-unconfigured")
    bench.runs = {"nightly": [run]}

    found = told(bench)

    assert has(found, "policy", Mark.WARNING, "nightly: its last run was refused, provider-unconfigured")
    assert not any(check == "standing" for check, _, _ in found)


def test_of_many_the_first_are_told_and_how_many_there_are(bench):
    bench.entries = [entry(f"s{number}", folder="/nowhere") for number in range(50)]
    bench.host()

    found = told(bench)

    assert sum(check == "unserved" for check, _, _ in found) == 20
    assert has(found, "more", Mark.WARNING, "30 more are like that")


def test_what_schedules_ask_for_and_is_not_there_is_told(bench):
    folder = bench.folder / "site"
    skill = folder / ".pi/skills/there"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("x")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    overlay = bench.folder / "pi"
    (overlay / "skills/mine").mkdir(parents=True)
    (overlay / "skills/mine/SKILL.md").write_text("x")
    flows = {"a": "there", "b": "gone", "c": "mine", "d": "No Name", "e": "gone"}
    bench.entries = [entry(one, folder=str(folder), flow=flow) for one, flow in flows.items()]
    bench.entries += [entry("f", folder="/nowhere"), entry("g", skillsDir="/", github=True)]

    found = told(bench, asked=False, PI_GLOBAL_PI_DIR=str(overlay))

    assert has(found, "flow", Mark.WARNING, "flow gone of b, e is no skill")
    assert has(found, "flow", Mark.WARNING, "of d can be no skill's name")
    assert has(found, "not-available", Mark.WARNING, "is set in g")
    assert sum(check == "flow" for check, _, _ in found) == 2


def test_a_folder_in_which_no_job_can_run_is_told_as_run_tells_it(bench):
    plain, repository = bench.folder / "plain", bench.folder / "repository"
    plain.mkdir()
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    bench.entries = [entry("a", folder=str(plain)), entry("b", folder=str(plain))]
    bench.entries += [entry("c", folder=str(repository)), entry("d", folder="/nowhere")]

    found = [text for check, _, text in told(bench, asked=False) if check == "folder"]
    if os.getuid() == 0:
        os.chown(repository, 1001, 0)
    given_away = [text for check, _, text in told(bench, asked=False) if check == "folder"]

    assert f"no job can run in the folder of a, b: {plain} is not a git repository" in found
    if os.getuid() == 0:
        unmappable = "belongs to uid {}, gid 0, and no job runs as root or in root's group"
        assert any("folder of c" in one and unmappable.format(0) in one for one in found)
        # The image's own user does for it, whatever the group.
        assert not any("folder of c" in one for one in given_away)
    assert not any("of d" in one for one in found)


def test_keys_that_mean_nothing_spending_and_commands_are_told(bench):
    cron = entry("a", maxturns=3)
    cron["on"]["patern"] = "x"
    bench.entries = [cron, {"on": {"type": "label", "any": ["x"]}, "run": {**FORGE, "replicas": 3}, "zzz": 1}]
    bench.entries += [{"on": {"type": "comment", "phrase": "/go"}, "run": {"kind": "github", "command": "x"}}]
    file = triggers.file_of(known(bench, PI_TRIGGERS_FILE=str(bench.file.path), PI_WORKER_NAME="alpha"))

    looks = *triggers.look(known(bench), bench.folder, None, file), *trigger_keys.look(file)
    found = {one.text: one for one in looks}
    keys = {text for text, one in found.items() if one.check == "unknown-key"}

    assert keys == {
        "triggers[0].on.patern means nothing: did you mean pattern?",
        "triggers[0].run.maxturns means nothing: did you mean maxTurns?",
        "triggers[1].zzz means nothing: no trigger has such a key.",
    }
    assert found["1 entry runs a command, not a flow"].mark is Mark.OK
    assert found["rule 1 starts 3 jobs each time, and each is paid and counts"].mark is Mark.WARNING


@pytest.mark.docker
def test_the_images_that_entries_name_are_looked_at(bench, engine, fake_image):
    def made(name, *changes):
        engine.api.import_image_from_data(
            b"\0" * 1024, repository="pi-dispatch-doctor", tag=name, changes=changes
        )
        return f"pi-dispatch-doctor:{name}"

    bare = made("bare")
    narrow = made("narrow", "LABEL dev.pi-dispatch.forges=gitlab dev.pi-dispatch.pi-version=1")
    where = {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ}
    bench.entries = [
        *(
            entry("fine", image=fake_image),
            entry("bare", image=bare),
            entry("gone", image="pi-dispatch-none:x"),
        ),
        {"on": {"type": "label", "any": ["x"]}, "run": {**FORGE, "image": narrow}},
    ]
    try:
        found = [one for one in told(bench, asked=False, PI_BACKEND="docker", **where) if one[0] == "image"]
        bench.entries = [entry("bare", image=bare, command="sync")]
        del bench.entries[0]["run"]["flow"], bench.entries[0]["run"]["task"]
        commands = told(bench, asked=False, PI_BACKEND="docker", **where)
    finally:
        for image in (bare, narrow):
            engine.api.remove_image(image)

    assert {mark for _, mark, _ in found} == {Mark.WARNING}
    assert sorted(text for _, _, text in found) == [
        f"the image {bare} of bare does not say that it has the runner, without which no job runs in it",
        f"the image {narrow} of rule 3 cannot do what they need (job-image-forge-unsupported)",
        "the image pi-dispatch-none:x of gone is not on this host, and no job pulls one",
    ]
    assert has(commands, "image", Mark.WARNING, "(job-image-commands-unsupported)")


@pytest.mark.django_db(transaction=True)
def test_doctor_looks_at_triggers_and_goes_on_without_valkey(bench, valkey_url):
    hourly(bench)
    variables = {
        **PLAIN,
        "PI_STATE_DIR": str(bench.folder / "state"),
        "PI_TRIGGERS_FILE": str(bench.file.path),
        "PI_WORKER_NAME": "alpha",
    }

    there = examine({**variables, "VALKEY_URL": valkey_url}, folder=bench.folder)
    away = examine({**variables, "VALKEY_URL": "redis://127.0.0.1:1"}, folder=bench.folder)

    def checks(findings):
        return {one.check for one in findings if one.area == "triggers"}

    assert {"loads", "missed"} <= checks(there)
    assert checks(away) == (checks(there) - {"missed"}) | {"standing"}
    assert not (bench.folder / "state").exists()
