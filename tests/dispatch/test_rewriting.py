"""Pause windows and scoped limits rewritten: judged first, whole, as the file is kept, whoever else edits."""

from __future__ import annotations

import json
import os
import stat
import threading

import pytest

from dispatch.console.limit_rules import LIMIT_RULES
from dispatch.console.window_rules import WINDOW_RULES
from dispatch.operator_files.problems import OperatorFileError
from dispatch.operator_files.rewriting import Rewriter
from pidispatch_site.errors import OperationalError
from tests.harness.editing import in_place, replaced

NIGHT = {"scope": "*", "from": "22:00", "to": "06:00"}
WINDOWS = Rewriter(parse=WINDOW_RULES.parse, empty=WINDOW_RULES.empty)
LIMITS = Rewriter(parse=LIMIT_RULES.parse, empty=LIMIT_RULES.empty)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "windows.json"


def adding(*rows):
    return lambda document: {**document, "windows": [*document["windows"], *rows]}


def rows_in(path):
    return json.loads(path.read_text())["windows"]


def listed(path):
    return sorted(item.name for item in path.parent.iterdir())


def test_a_file_keeps_its_mode_and_a_link_its_target(path, tmp_path):
    target = tmp_path / "kept" / "real.json"
    target.parent.mkdir()
    target.write_text('{"note": "é", "windows": []}')
    target.chmod(0o640)
    path.symlink_to("kept/real.json")

    written = WINDOWS.rewrite(path, adding(NIGHT))

    assert written.after == target.read_bytes()
    assert json.loads(target.read_text()) == {"note": "é", "windows": [NIGHT]}
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert path.readlink().as_posix() == "kept/real.json"
    assert listed(target) == [".real.json.lock", "real.json"]


def test_a_first_row_makes_the_file_its_owners_alone_and_no_row_makes_none(path):
    assert WINDOWS.rewrite(path, lambda document: document).after is None
    assert WINDOWS.rewrite(path, lambda _: None).after is None
    assert not path.exists()

    assert WINDOWS.rewrite(path, adding(NIGHT)).before is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("rewriter", "content", "change", "says"),
    [
        (WINDOWS, '{"windows": []}', adding({"scope": "*"}), r"windows\[0\].from is missing"),
        (WINDOWS, '{"windows": [3]}', adding(NIGHT), r"windows\[0\] is 3"),
        (WINDOWS, '{"windows": []', adding(NIGHT), "is not JSON"),
        (WINDOWS, '{"windows": [], "windows": []}', adding(NIGHT), "twice"),
        (LIMITS, '{"version": 2, "limits": []}', lambda document: {**document}, "install a newer"),
        (LIMITS, '{"version": 1, "limits": []}', lambda _: {"version": 1}, "limits is missing"),
    ],
)
def test_what_does_not_load_is_not_written(path, rewriter, content, change, says):
    path.write_text(content)

    for work in (rewriter.preview, rewriter.rewrite):
        with pytest.raises(OperatorFileError, match=says):
            work(path, change)

    assert path.read_text() == content


def test_a_preview_is_what_is_written_and_writes_nothing(path):
    path.write_text('{"windows": []}')
    shown = WINDOWS.preview(path, adding(NIGHT))

    assert path.read_text() == '{"windows": []}'
    assert listed(path) == ["windows.json"]
    assert WINDOWS.rewrite(path, adding(NIGHT)) == shown


@pytest.mark.parametrize("edit", [in_place, replaced])
@pytest.mark.parametrize(("times", "is_kept"), [(1, True), (99, False)])
def test_an_editor_that_knows_no_lock_loses_nothing(path, edit, times, is_kept):
    path.write_text('{"windows": []}')
    theirs, left = {**NIGHT, "scope": "theirs"}, iter(range(times))

    def meanwhile():
        if (number := next(left, None)) is not None:
            # Another size each time: within a tick of the clock nothing else tells.
            edit(path, json.dumps({"windows": [theirs]}) + " " * number)

    if is_kept:
        WINDOWS.rewrite(path, adding(NIGHT), before_rename=meanwhile)
        assert rows_in(path) == [theirs, NIGHT]
    else:
        with pytest.raises(OperationalError, match="again and again"):
            WINDOWS.rewrite(path, adding(NIGHT), before_rename=meanwhile)
        assert rows_in(path) == [theirs]
    assert listed(path) == [".windows.json.lock", "windows.json"]


def test_a_link_that_points_elsewhere_meanwhile_is_followed_by_nobody(path, tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).write_text('{"windows": []}')
    path.symlink_to("one")

    def meanwhile():
        path.unlink()
        path.symlink_to("other")

    with pytest.raises(OperationalError, match="again and again"):
        WINDOWS.rewrite(path, adding(NIGHT), before_rename=meanwhile)
    assert rows_in(tmp_path / "one") == rows_in(tmp_path / "other") == []


def test_of_several_writers_none_overwrites_another(path):
    path.write_text('{"windows": []}')
    writers = [
        threading.Thread(target=lambda n=n: WINDOWS.rewrite(path, adding({**NIGHT, "scope": str(n)})))
        for n in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert sorted(row["scope"] for row in rows_in(path)) == [str(n) for n in range(8)]


def test_what_cannot_be_read_or_written_is_said_in_words(path, tmp_path):
    os.mkfifo(path)
    with pytest.raises(OperatorFileError, match="no regular file"):
        WINDOWS.rewrite(path, adding(NIGHT))
    with pytest.raises(OperationalError, match=r"cannot be written: No such file.*Nothing was changed"):
        WINDOWS.rewrite(tmp_path / "no" / "file.json", adding(NIGHT))
