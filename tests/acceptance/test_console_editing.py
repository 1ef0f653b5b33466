"""What admins write: triggers, settings, pause windows, limits and users, in a real browser.

Real workers on two hosts take each version over. The last test says what nobody has done: it goes with the
others.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from tests.harness import console_kinds
from tests.harness.by_words import control
from tests.harness.console_posts import USERS
from tests.harness.web_process import PASSWORD

pytestmark = pytest.mark.chromium
JUDGED_ELSEWHERE = console_kinds.CRAWLED


def test_an_admin_adds_edits_and_removes_an_entry_of_the_triggers_file(stage):
    stage.enter("admin")
    stage.goes("dispatch/schedule/")
    stage.follows("Add an entry …")
    stage.fills(Id="weekly", When="0 5 * * 8", Folder="/srv/weekly", Flow="audit", Task="Look.")
    stage.follows("Show before and after")
    stage.says("It has '8' in its day-of-week field")
    stage.fills(When="0 5 * * 1")
    stage.follows("Show before and after")
    stage.says("Before and after", "/srv/weekly")
    assert len(stage.file("triggers")["triggers"]) == 2
    stage.fills(Reason="every Monday")
    stage.follows("Write it")
    added = stage.file("triggers")["triggers"][2]
    assert (added["on"]["id"], added["on"]["pattern"]) == ("weekly", "0 5 * * 1")
    stage.until_says("Every worker (2) has taken this version over.", again=True)
    stage.logs("admin", "trigger-added", 'trigger at index 2 (cron trigger "weekly")', "every Monday")

    stage.goes("dispatch/schedule/")
    stage.follows("Edit weekly")
    stage.fills(Most_turns="9")
    stage.follows("Show before and after")
    stage.follows("Change it again")
    stage.follows("Show before and after", within="The common fields of a schedule")
    stage.follows("Write it")
    changed = {**added, "run": {**added["run"], "maxTurns": 9}}
    assert stage.file("triggers")["triggers"][2] == changed
    stage.logs("admin", "trigger-changed", 'trigger at index 2 (cron trigger "weekly")', "")

    stage.goes("dispatch/schedule/")
    stage.follows("Edit weekly")
    as_json = "The whole entry as JSON"
    stage.page.click(control(as_json))
    stage.fills(Entry='{"on": {}, "on": {}}')
    stage.follows("Show before and after", within=as_json)
    stage.says("on")
    changed["run"]["flow"] = "look"
    stage.fills(Entry=json.dumps(changed))
    stage.follows("Show before and after", within=as_json)
    stage.follows("Write it")
    assert stage.file("triggers")["triggers"][2] == changed

    stage.goes("dispatch/schedule/")
    stage.follows("Remove weekly")
    stage.fills(Reason="no more")
    stage.follows("Remove it")
    assert [one["on"]["id"] for one in stage.file("triggers")["triggers"]] == ["nightly", "tidy"]
    stage.logs("admin", "trigger-removed", 'trigger at index 2 (cron trigger "weekly")', "no more")
    stage.end()


def test_an_admin_sets_and_unsets_a_setting(stage):
    stage.enter("admin")
    stage.goes("settings/")
    stage.follows("Edit the settings …")
    stage.fills(dailyCap="39")
    stage.follows("Show before and after")
    stage.follows("Change it again")
    stage.follows("Show before and after")
    stage.fills(Reason="thrift")
    stage.follows("Write it")
    stage.says("is 39")
    stage.until_says("Every worker (2) has taken this version over.", again=True)
    assert stage.file("settings") == {"dailyCap": 39}
    stage.logs("admin", "settings-changed", "settings file", "thrift")

    stage.goes("settings/overlay/")
    stage.ticks("Take it out: dailyCap")
    stage.follows("Show before and after")
    stage.follows("Write it")
    stage.says("Now dailyCap is 90 (from: environment).")
    assert stage.file("settings") == {}

    stage.end()


@pytest.mark.parametrize(
    ("noun", "words", "part", "added", "changed", "as_json"),
    [
        (
            *("window", "pause window", "windows"),
            {"Scope": "*", "From": "01:00", "To": "02:00", "Last_date": "2020-01-31"},
            {"To": "03:00"},
            {"to": "03:00"},
        ),
        (
            *("limit", "scoped limit", "limits"),
            {"Scope": "owner/repository", "Starts_a_day": "5"},
            {"Containers_at_once": "3"},
            {"concurrent": 3},
        ),
    ],
)
def test_an_admin_adds_edits_and_removes_a_row(stage, noun, words, part, added, changed, as_json):
    def writes(reason):
        before = stage.file(part)[part]
        stage.says("Before and after")
        stage.fills(Reason=reason)
        stage.follows("Write it")
        assert stage.file(part)[part] != before
        (row,) = stage.file(part)[part]
        return row

    stage.enter("admin")
    stage.goes(f"settings/{part}/")
    stage.follows(f"Add a {words} …")
    stage.fills(**added)
    stage.follows("Show before and after")
    assert stage.file(part)[part] == []
    first = writes("as agreed")
    assert first["scope"] == added["Scope"]
    stage.until_says("Every worker (2) has taken this version over.", again=True)
    stage.logs("admin", f"{noun}-added", f"{words} {part}[0]", "as agreed")

    stage.goes(f"settings/{part}/")
    stage.follows(f"Edit {part}[0]")
    stage.fills(**changed)
    stage.follows("Show before and after")
    stage.follows("Change it again")
    stage.follows("Show before and after")
    assert writes("longer") == {**first, **as_json}
    stage.logs("admin", f"{noun}-changed", f"{words} {part}[0]", "longer")

    stage.goes(f"settings/{part}/")
    stage.follows(f"Edit {part}[0]")
    stage.page.click(control(f"The {words} as JSON"))
    stage.fills(Row=json.dumps({**first, "scope": "other/repository"}))
    stage.follows("Show before and after", within=f"The {words} as JSON")
    assert writes("of another") == {**first, "scope": "other/repository"}

    stage.goes(f"settings/{part}/")
    stage.fills(Scope_has_in_it="nothing")
    stage.follows("Filter")
    stage.says("None of the 1 has that in its scope.")
    stage.follows("Show all")
    stage.follows(f"Remove {part}[0]")
    stage.follows("Remove it")
    assert stage.file(part)[part] == []
    stage.logs("admin", f"{noun}-removed", f"{words} {part}[0]", "")
    stage.end()


def test_an_admin_manages_a_user_who_changes_their_own_password(stage):
    stage.enter("admin")
    stage.goes("auth/user/")
    stage.looks()
    stage.follows("Add user")
    stage.fills(**{"Username:": "ann", "Password:": PASSWORD, "Password confirmation:": PASSWORD[1:]})
    stage.ticks("viewer")
    stage.follows("Save")
    stage.says("Please correct the error below.")
    stage.fills(**{"Password:": PASSWORD, "Password confirmation:": PASSWORD})
    stage.follows("Save")
    stage.says("was added successfully")
    stage.logs("admin", "user-added", "ann")
    stage.goes("auth/user/")
    assert "ann viewer" in stage.says()

    stage.follows("ann")
    stage.ticks("viewer", "operator")
    stage.follows("Save")
    assert "ann operator" in stage.says()
    stage.logs("admin", "user-changed", "ann")

    own, given = PASSWORD.upper(), PASSWORD.title()
    stage.logs_in("ann", PASSWORD)
    stage.goes("switch/")
    stage.says("Pause everything…")
    stage.follows("Change password")
    stage.fills(**{"Old password:": PASSWORD, "New password:": own, "New password confirmation:": own})
    stage.follows("Change my password")
    stage.says("Your password was changed.")

    stage.enter("admin")
    stage.goes("auth/user/")
    stage.follows("ann")
    stage.follows("Reset password")
    stage.fills(**{"Password:": given, "Password confirmation:": given})
    # The frame has a link of the same name.
    stage.page.follow("main input[name=set-password]")
    stage.logs("admin", "user-changed", "ann")
    for password, is_in in ((own, False), (given, True)):
        stage.logs_in("ann", password)
        assert (urlsplit(stage.page.url).path == "/admin/") is is_in
    # Who gives somebody a password has another session from then on.
    stage.logs_in("admin", PASSWORD)
    _deletes(stage, "ann")
    assert "ann" not in [name for _, name, *_ in stage.users()]
    stage.end()


def _deletes(stage, name):
    """Look at what a user was, shrink back from their deletion, for which no script is needed, and do it."""
    stage.goes("auth/user/")
    stage.follows(name)
    stage.follows("History")
    stage.says("Changed Groups.")
    stage.page.runs_scripts(is_on=False)
    stage.goes("auth/user/")
    for word in (name, "Delete", "No, take me back"):
        stage.page.follow(control(word))
    stage.page.runs_scripts(is_on=True)
    stage.follows("Delete")
    stage.follows("Yes, I’m sure")  # noqa: RUF001 - as Django has it
    stage.logs("admin", "user-deleted", name)


def test_an_admin_has_done_all_that_only_an_admin_may_do(stage):
    stage.enter("operator")
    stage.goes("queue/")
    of_operators = stage.actions()
    stage.logs_in("admin", PASSWORD)
    actions = stage.actions() - of_operators
    stage.end()
    assert (actions | USERS) - stage.done_by("admin") == set()
    assert "password_change" in stage.done_by("ann")
    assert len(actions) >= 10
