"""`manage.py triggers`: files judged, edits shown and written, schedules restored; refusals in words."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dispatch.console.trigger_changes import Asked, Kind, difference
from dispatch.console.trigger_check import check
from dispatch.console.trigger_places import Machine
from dispatch.operator_files.problems import OperatorFileError
from dispatch.schedules import keys
from dispatch.schedules.definition import of_trigger
from dispatch.schedules.table import Table
from dispatch.triggers import lock, meant
from dispatch.triggers.parse import parse
from dispatch.triggers.writing import rewrite
from hosts.names import SHARED_QUEUE, host_queue
from pidispatch_site import log
from pidispatch_site.errors import ConfigurationError, OperationalError
from tests.dispatch.consolekit import NOBODY, Console
from tests.dispatch.triggers.one_shots import (
    KEY,
    ONCE,
    SPENT_BY,
    as_it_lies,
    cron,
    entries_of,
    entry,
    written,
)
from tests.harness.records import NOON

ENTRY = json.dumps(cron("b"))
HERE = Machine(in_fleet=True, zone="UTC")
FOLDER = 'trigger at index 0 (cron trigger "a"): run.folder'


@dataclass
class Person:
    """Somebody at a shell of this process: `manage.py` of its own would take a second for each case."""

    home: Path
    environment: dict[str, str]
    monkeypatch: pytest.MonkeyPatch

    def types(
        self, *words: str, given: bytes | None = b"", out: Any = None, **changes: str | None
    ) -> tuple[str, str]:
        """Run the command, `given` None with a closed standard input; what it wrote to both of the others."""
        values = {**self.environment, **changes}
        environment = {name: value for name, value in values.items() if value is not None}
        self.monkeypatch.setattr("django.conf.settings.PIDISPATCH_ENVIRONMENT", environment)
        stdin = None if given is None else io.TextIOWrapper(io.BytesIO(given))
        self.monkeypatch.setattr("sys.stdin", stdin)
        # It sets up the log of its process.
        self.monkeypatch.setattr(log, "_current", log._current)
        plain, err = io.StringIO(), io.StringIO()
        call_command("triggers", *words, stdout=out or plain, stderr=err)
        return plain.getvalue(), err.getvalue()


@pytest.fixture
def person(tmp_path, monkeypatch) -> Person:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "good.json", cron("a"), entry(disarmed=SPENT_BY), {**entry(), "comment": 1})
    written(tmp_path / "bad.json", {**cron("a:b"), "run": {"kind": "local"}}, entry(number=0))
    (tmp_path / "twice.json").write_text('{"triggers": [], "triggers": []}')
    (tmp_path / "large.json").write_bytes(b" " * (9 * 1024 * 1024))
    environment = {
        "PI_TRIGGERS_FILE": str(tmp_path / "good.json"),
        "PI_STATE_DIR": str(tmp_path / "state"),
        "PI_WORKER_NAME": "here",
        "VALKEY_URL": NOBODY,
    }
    return Person(tmp_path, environment, monkeypatch)


def test_a_file_that_loads_is_counted(person):
    out, err = person.types("--check", "good.json")

    assert out == (
        "good.json: loads; 3 entries (1 cron, 1 issue, 1 spent one-shot).\n"
        "triggers[2].comment means nothing: no trigger has such a key.\n"
        f"{FOLDER} is '/srv/site': no such folder on this host: another host serves it.\n"
    )
    assert err == ""
    assert json.loads(person.types("--check", "-", "--json", given=b'{"triggers": []}')[0]) == {
        "file": "standard input",
        "entries": {},
        "unknown": [],
        "relative": [],
        "absent": [],
        "notes": [],
    }


@pytest.mark.parametrize("path", ["~/site", "$HOME/site", "C:\\site", "site", "./site"])
def test_a_folder_that_no_host_can_find_is_said(person, path):
    found = cron("a")
    found["run"] |= {"folder": path, "skillsDir": "/srv/skills"}
    given = json.dumps({"triggers": [found]}).encode()

    out, _ = person.types("--check", "-", given=given)

    place = FOLDER
    assert out.splitlines()[1:] == [f"{place} is {path!r}, which is no absolute path: no host serves it."]
    assert json.loads(person.types("--check", "-", "--json", given=given)[0])["relative"] == [
        f"{place} is {path!r}"
    ]


@pytest.mark.parametrize(
    ("words", "says", "file"),
    [
        (["--check", "bad.json"], r"(?s)index 0: on.id.*index 0: run.folder.*index 1: on.number", None),
        (["--check", "twice.json"], "has the key 'triggers' twice", None),
        (["--check", "large.json"], "large.json: has .* bytes; allowed are", None),
        (["--check", "no.json"], "^no.json: cannot be read: No such file", None),
        (["--check", "/"], "^/: cannot be read: it is no regular file", None),
        (["--check", "a\0b"], "cannot be read: ValueError", None),
        (["--add", ENTRY], "^PI_TRIGGERS_FILE is not set, .*--add --create makes the file", ""),
        (["--add", ENTRY], "no.json, which does not exist.* or make the file with --create", "no.json"),
        (
            ["--remove", "0"],
            "no.json, which does not exist. Nothing was changed. Correct the path.$",
            "no.json",
        ),
        (["--edit", "0", ENTRY, "--create"], "^--create goes with --add", None),
        (["--add", "[1]"], "^ENTRY is no entry; allowed is an object", None),
        (["--add", "{on: 1}"], "^ENTRY: is not JSON", None),
        (["--add", '{"on": {}, "on": {}}'], "^ENTRY: has the key 'on' twice", None),
        (["--add", "-"], "^standard input: is not JSON", None),
        (["--add", "@no.json"], "^no.json: cannot be read", None),
        (["--add", json.dumps(cron("a"))], r"^Nothing was changed(?s:.)*index 3.*on.id is 'a'", None),
        (["--remove", "9"], "^there is no entry '9': the file has 3", None),
        (["--edit", "nightly", ENTRY], "^there is no schedule 'nightly'", None),
        (["--remove", "0"], "^Nothing was changed, and nothing was tried(?s:.)*twice", "twice.json"),
        (["--remove", "7"], "^there is no entry '7': the file has 2", "bad.json"),
        (["--remove", "1"], r"nothing was tried: the file as it stands(?s:.)*index 0: on.id", "bad.json"),
        (["--add", ENTRY], r"nothing was tried: the file as it stands(?s:.)*index 1: on.number", "bad.json"),
        (
            ["--edit", "1", json.dumps(entry(number=0, flow="other"))],
            r"as it would be\.\n.*index 1: on.number is 0.*\nThe file as it stands.*\n.*index 0: on.id",
            "bad.json",
        ),
        (["--dry-run"], "^--dry-run goes with --add, --edit or --remove", None),
        (["--restore", "a:b"], "^an id of a schedule has letters", None),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(person, words, says, file):
    before = {path: path.read_bytes() for path in person.home.iterdir()}
    changes = {} if file is None else {"PI_TRIGGERS_FILE": file or None}

    with pytest.raises(ConfigurationError, match=says) as error:
        person.types(*words, **changes)

    assert error.value.exit_code == 2
    assert {path: path.read_bytes() for path in person.home.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--add", ENTRY, "--remove", "0"], "not allowed with"),
        *(
            (["--next", text], f"{text[:9]}.* expected a whole number from 1 to 100")
            for text in ("0", "101", "x", "-1", "1" * 5000)
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(person, words, says):
    with pytest.raises(CommandError, match=says):
        person.types(*words)


@pytest.mark.parametrize("words", [["--check", "-"], ["--add", "-"], ["--edit", "a", "-"]])
@pytest.mark.parametrize("given", [b"", None])
def test_an_empty_or_closed_standard_input_is_no_entry(person, words, given):
    with pytest.raises(
        ConfigurationError, match=r"standard input: is not JSON: .* \(there is nothing in it\)"
    ):
        person.types(*words, given=given)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_a_terminal_has_not_are_written_in_another_way(person, encoding):
    person.environment["PI_TRIGGERS_FILE"] = str(person.home / "gr\udcff\u2713.json")
    added = json.dumps({**cron("b"), "run": {**cron("b")["run"], "task": "\u2713"}})

    for words in (["--add", added], ["--check", person.environment["PI_TRIGGERS_FILE"]]):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        person.types(*words, *(["--create"] if "--add" in words else []), out=out)
        out.flush()
        said = out.buffer.getvalue().decode(encoding)
        assert ("\u2713" if encoding == "utf-8" else "\\u2713") in said


def test_what_may_work_later_ends_with_one(person):
    with lock.held(person.home / "good.json"):
        _fails(person, "is being rewritten by somebody else", "--add", ENTRY)
    nowhere = str(person.home / "no" / "t.json")
    _fails(person, "cannot be written: No such file", "--add", ENTRY, "--create", PI_TRIGGERS_FILE=nowhere)
    _fails(person, "does not answer", "--restore", "a")


def _fails(person: Person, says: str, *words: str, **changes: str) -> None:
    with pytest.raises(OperationalError, match=says):
        person.types(*words, **changes)


def test_a_file_is_made_edited_and_shown_before_and_after(person):
    path = person.home / "new.json"
    person.environment["PI_TRIGGERS_FILE"] = str(path)
    (person.home / "entry.json").write_text(json.dumps(cron("a", "0 4 * * *")))

    dry, _ = person.types("--add", json.dumps(cron("a")), "--dry-run", "--create")
    assert not path.exists()
    added, _ = person.types("--add", "-", "--create", given=json.dumps(cron("a")).encode())
    changed, _ = person.types("--edit", "a", "@entry.json")
    removed, _ = person.types("--remove", "0", "--json")

    assert "would be added. Nothing was written (--dry-run)." in dry
    assert dry.endswith(f"There was no such file: {path}\n")
    assert added.endswith(f"There was no such file; it was made: {path}\n")
    assert str(path) not in changed
    assert '+        "pattern": "0 3 * * *"' in added
    assert 'Trigger at index 0 (cron trigger "a") was added.' in added
    assert "give the other hosts of the fleet the same change" in added
    assert "no such folder on this host: another host serves it.\n" in added
    assert '-        "pattern": "0 3 * * *"\n+        "pattern": "0 4 * * *"' in changed
    assert json.loads(removed) == {
        "file": str(path),
        "done": "removed",
        "written": True,
        "index": 0,
        "before": cron("a", "0 4 * * *"),
        "after": None,
        "notes": [],
    }
    assert entries_of(path) == []


def at(folder: object, id_: str = "a", **more: Any) -> dict[str, Any]:
    found = cron(id_)
    return {**found, "run": {**found["run"], "folder": str(folder), **more}}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"folder": "{home}/no"}, "run.folder is '.*/no', which is no folder of this host"),
        ({"folder": "site"}, "run.folder is 'site', which is no absolute path"),
        ({"skillsDir": "{home}/no"}, "run.skillsDir is '.*/no', which is no folder of this host"),
    ],
)
def test_a_single_host_refuses_what_its_worker_would(person, wrong, says):
    person.environment.pop("PI_WORKER_NAME")
    path = written(person.home / "good.json", at(person.home, "b"))
    before = path.read_bytes()
    fields = {name: text.format(home=person.home) for name, text in wrong.items()}
    bad = at(**{"folder": person.home, **fields})
    other = written(person.home / "other.json", bad)

    for words in (["--add", json.dumps(bad)], ["--edit", "b", json.dumps(bad), "--dry-run"]):
        with pytest.raises(ConfigurationError, match=f"^Nothing was changed(?s:.)*{says}"):
            person.types(*words)
    checked, _ = person.types("--check", "other.json")
    with pytest.raises(ConfigurationError, match=f"^other.json: trigger at index 0.*{says}"):
        person.types("--check", "other.json", PI_TRIGGERS_FILE=str(other))

    assert path.read_bytes() == before
    assert re.search(says, checked)
    assert "does not start with it" in checked


def test_who_edits_one_entry_is_told_of_others_that_a_worker_refuses(person):
    person.environment.pop("PI_WORKER_NAME")
    path = written(person.home / "good.json", at("/no"), at(person.home, "b"))

    changed, _ = person.types("--edit", "b", json.dumps(at(person.home, "c")))
    assert f"{FOLDER} is '/no', which is no folder of this host" in changed
    assert "does not start with it" in changed
    assert 'index 1 (cron trigger "c"): run.folder is' in changed
    assert "which is no git working tree" in changed
    removed, _ = person.types("--remove", "a")
    assert "does not start" not in removed
    (person.home / ".git").mkdir()
    assert "git" not in person.types("--check", "good.json")[0]
    assert entries_of(path) == [at(person.home, "c")]


def test_keys_that_mean_nothing_are_written_and_told_with_what_may_be_meant(person):
    found = cron("b")
    found = {
        "on": {**found["on"], "timezone": "UTC"},
        "run": {**found["run"], "modle": "m"},
        "enabled": False,
    }

    added, _ = person.types("--add", json.dumps(found))

    assert [line for line in added.splitlines() if line.startswith("triggers[")] == [
        f"triggers[3].enabled means nothing: {meant.explained('enabled', ())}",
        "triggers[3].on.timezone means nothing: did you mean tz?",
        "triggers[3].run.modle means nothing: did you mean model?",
    ]
    assert entries_of(person.home / "good.json")[3] == found


def test_an_entry_that_is_like_that_already_is_not_written_again(person):
    path = person.home / "good.json"
    before = as_it_lies(path)

    said, _ = person.types("--edit", "a", json.dumps(cron("a")))
    as_json, _ = person.types("--edit", "a", json.dumps(cron("a")), "--json")

    assert said == 'Nothing to change: trigger at index 0 (cron trigger "a") is like that already.\n'
    assert json.loads(as_json)["written"] is False
    assert as_it_lies(path) == before


@pytest.mark.parametrize("is_recorded", [True, False])
def test_an_edit_of_an_armed_one_shot_forgets_a_job_that_is_over(person, valkey, valkey_url, is_recorded):
    """What is left where its disarm failed; a job that is on its way keeps its claim."""
    written(person.home / "good.json", entry())
    valkey.hset(KEY, mapping={"job": "gh-9", **({"recorded": "gh-9"} if is_recorded else {})})

    _, said = person.types("--edit", "0", json.dumps(entry()), VALKEY_URL=valkey_url)

    assert valkey.exists(KEY) != is_recorded
    assert ("is forgotten" in said) is is_recorded


def test_what_is_armed_by_the_command_is_armed_for_the_fleet(person, valkey, valkey_url):
    path = written(person.home / "good.json", entry(disarmed=SPENT_BY))
    valkey.hset(KEY, "job", "gh-9")

    _, said = person.types("--edit", "0", json.dumps(entry()), VALKEY_URL=valkey_url)
    assert (valkey.exists(KEY), said) == (0, "")

    written(path, entry(disarmed=SPENT_BY))
    _, said = person.types("--edit", "0", json.dumps(entry()))
    assert "may be refused once" in said
    assert entries_of(path) == [entry()]


def test_a_schedule_is_restored_on_every_queue_that_took_it_down(person, valkey, valkey_url):
    (trigger,) = parse(json.dumps({"triggers": [cron("a")]}).encode(), name="t").entries
    schedule = of_trigger(trigger, host_zone="UTC")
    queues = [SHARED_QUEUE, host_queue("alpha")]
    for queue in queues:
        table = Table(valkey, queue)
        table.reconcile([schedule], now=NOON)
        table.tear_down("a", stalls=3, at_ms=1)
    valkey.sadd("queues:known", host_queue("beta"))
    valkey.set(keys.torn(host_queue("beta")), "rubbish")

    out, err = person.types("--restore", "a", VALKEY_URL=valkey_url)

    assert f"starts again at its next instant: {', '.join(queues)}, on" in out
    assert host_queue("beta") in err
    assert all(Table(valkey, queue).resident()["a"].torn is None for queue in queues)
    _fails(person, "is not taken down on any queue", "--restore", "a", "--json", VALKEY_URL=valkey_url)
    _fails(person, "No queue on .* has a schedule b", "--restore", "b", VALKEY_URL=valkey_url)
    said = Console(person.home / "why", url=valkey_url).run("why", "a")
    assert (said.code, said.out) == (1, "")
    assert "a is a schedule, no job: `manage.py triggers`" in said.err


def test_a_person_at_a_shell_sees_no_traceback(tmp_path):
    written(tmp_path / "bad.json", entry(number=0))
    console = Console(tmp_path, variables={"PI_TRIGGERS_FILE": "bad.json"})

    checked = console.run("triggers", "--check", "bad.json")
    mended = console.run("triggers", "--edit", "0", "-", given=json.dumps(entry()).encode())

    assert (checked.code, checked.out, checked.is_plain) == (2, "", True)
    assert "on.number is 0" in checked.err
    assert (mended.code, mended.is_plain) == (0, True)
    assert entries_of(tmp_path / "bad.json") == [entry()]


# By value


@pytest.mark.parametrize(
    ("asked", "armed"),
    [
        (Asked(Kind.ADDED, None, entry()), ONCE),
        (Asked(Kind.ADDED, None, cron("a")), None),
        (Asked(Kind.ADDED, None, entry(disarmed=SPENT_BY)), None),
    ],
)
def test_an_added_one_shot_is_armed(asked, armed):
    asked.change({"triggers": []})

    assert asked.armed == armed


@pytest.mark.parametrize(
    ("before", "after", "is_armed"),
    [
        (entry(disarmed=SPENT_BY), entry(), True),
        (entry(), entry(labels=1), False),
        (entry(number=8), entry(), True),
        (entry(), cron("a"), False),
    ],
)
def test_only_what_was_not_armed_is_armed_anew(before, after, is_armed):
    """An entry that was armed may have a job on its way, whose claim has to stand."""
    asked = Asked(Kind.CHANGED, "0", after)
    asked.change({"triggers": [before]})

    assert (asked.armed is not None) is is_armed


def test_what_moved_up_is_said():
    asked = Asked(Kind.REMOVED, "a", None)
    asked.change({"triggers": [cron("a"), entry()]})

    assert "moved up by one" in asked.said(is_written=True, in_fleet=False)


def test_the_difference_is_of_what_the_file_means_and_steers_no_terminal(tmp_path):
    path: Path = tmp_path / "t.json"
    path.write_text(json.dumps({"triggers": [{**cron("a"), "note": "\x1b[2J\u202e"}]}))
    asked = Asked(Kind.ADDED, None, {**cron("b"), "note": "\x9b2J\u202e"})

    found = rewrite(path, asked.change)
    shown = difference(found.before, found.after, name="t")

    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert not re.search(r'^[-+].*"a"', shown, re.MULTILINE)
    assert "\\u202e" in shown
    assert shown.endswith("indented by two spaces.")


def test_keys_that_mean_nothing_are_told():
    content = json.dumps({"triggers": [{**cron("a"), "comment": 1}]}).encode()

    assert str(check(content, name="t", this=HERE)).splitlines()[:2] == [
        "t: loads; 1 entry (1 cron).",
        "triggers[0].comment means nothing: no trigger has such a key.",
    ]
    with pytest.raises(OperatorFileError):
        check(b"{}", name="t", this=HERE)
