"""E 9.4 row 36: a job starts only flows that the repository opted in before the job had it in its hands."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.workspace.flow_gate import allows, allows_as_owner, opts_in
from runs.workspace.git import Git
from runs.workspace.jobuser import Account
from tests.runs.accounts import ORDINARY, current, needs_root
from tests.runs.repositories import Repo

SKILL = ".pi/skills/tidy/SKILL.md"
OPTED_IN = "---\nname: tidy\nai-trigger: allow\n---\nTidy up.\n"
OPTED_OUT = "---\nname: tidy\nai-trigger: deny\n---\nTidy up.\n"
QUICK = replace(Git(), time_limit=timedelta(seconds=5))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (OPTED_IN, True),
        ('---\nai-trigger: "allow"\n---\n', True),
        ("\ufeff" + OPTED_IN, True),
        (OPTED_IN.replace("\n", "\r\n"), True),
        ("---\nai-trigger: allow\n---", True),
        ("---\nai-trigger: allow\nai-trigger: allow\n---\n", True),
        (OPTED_OUT, False),
        ("---\nai-trigger: allow\nai-trigger: deny\n---\n", False),
        ("---\nname: tidy\n---\nai-trigger: allow\n", False),
        ("ai-trigger: allow\n", False),
        ("\n" + OPTED_IN, False),
        ("# x\n" + OPTED_IN, False),
        ("---\nai-trigger: allow\n", False),
        ("--- \nai-trigger: allow\n---\n", False),
        ("----\nai-trigger: allow\n---\n", False),
        ("---\nai-trigger: 'allow'\n---\n", False),
        ('---\n"ai-trigger": allow\n---\n', False),
        ("---\nai-trigger:allow\n---\n", False),
        ("---\nai-trigger: allow \n---\n", False),
        ("---\nai-trigger: allow # yes\n---\n", False),
        ("---\nai-trigger: Allow\n---\n", False),
        ("---\nai-trigger: true\n---\n", False),
        ("---\n ai-trigger: allow\n---\n", False),
        ("---\nx-ai-trigger: allow\n---\n", False),
        ("---\rai-trigger: allow\r---\r", False),
        ("\ufeff\ufeff" + OPTED_IN, False),
        ("", False),
        ("---", False),
        ("---\n---\n", False),
    ],
)
def test_which_frontmatter_opts_in(text, allowed):
    assert opts_in(text.encode()) is allowed


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["---", "ai-trigger: allow", "x: y", "", "\r", "\ufeff"]), max_size=7))
def test_only_a_line_between_the_first_two_marks_opts_in(lines):
    text = "\n".join(lines)

    if opts_in(text.encode()):
        _, head, *_ = [*text.replace("\r\n", "\n").split("---\n", 2), ""]
        assert "ai-trigger: allow" in head.splitlines()


@pytest.mark.parametrize(
    ("files", "flow", "allowed"),
    [
        pytest.param({SKILL: OPTED_IN}, "tidy", True, id="opted in"),
        pytest.param({SKILL: OPTED_OUT}, "tidy", False, id="opted out"),
        pytest.param({SKILL: OPTED_IN}, "other", False, id="another flow"),
        pytest.param({".pi/skills/tidy/skill.md": OPTED_IN}, "tidy", False, id="another name"),
        pytest.param({f"{SKILL}/SKILL.md": OPTED_IN}, "tidy", False, id="a folder"),
        pytest.param({"README.md": "x"}, "tidy", False, id="no skills"),
        pytest.param({".pi/skills/tidy": OPTED_IN}, "tidy", False, id="a file for the skill's folder"),
        pytest.param({SKILL: OPTED_IN, ".pi/skills/a/SKILL.md": "x"}, "tidy", True, id="among others"),
    ],
)
def test_what_stands_at_the_commit_decides(tmp_path, files, flow, allowed):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit(files)

    assert allows(repo.path, flow, sha=sha, git=QUICK) is allowed


@pytest.mark.parametrize(
    "flow",
    ["", ".", "..", "../tidy", "tidy/", "/tidy", "Tidy", "tidy\n", "tidy\nHEAD:x", "*", "tid?", "-tidy",
     "t\xefdy", "tidy\0", "\ud800", "t" * 65, ":(glob)tidy"],
)  # fmt: skip
def test_a_bad_name_is_denied(tmp_path, flow):
    repo = Repo.make(tmp_path / "repo")

    assert not allows(repo.path, flow, sha=repo.commit({SKILL: OPTED_IN}), git=QUICK)


def of_mode(repo: Repo, mode: str, content: bytes = OPTED_IN.encode()) -> str:
    tree = repo.tree((mode, repo.blob(content), b"SKILL.md"))
    for name in (b"tidy", b"skills", b".pi"):
        tree = repo.tree(("40000", tree, name))
    return repo.commit_tree(tree)


@pytest.mark.parametrize(
    ("mode", "allowed"),
    [("100644", True), ("100755", False), ("120000", False), ("100664", False), ("160000", False)],
)
def test_only_a_plain_file_counts(tmp_path, mode, allowed):
    repo = Repo.make(tmp_path / "repo")

    assert allows(repo.path, "tidy", sha=of_mode(repo, mode), git=QUICK) is allowed


def test_a_link_on_the_way_is_not_followed(tmp_path):
    repo = Repo.make(tmp_path / "repo")
    repo.write("real/tidy/SKILL.md", OPTED_IN)
    (repo.path / ".pi").mkdir()
    (repo.path / ".pi/skills").symlink_to("../real")

    assert not allows(repo.path, "tidy", sha=repo.commit(), git=QUICK)


def test_a_repository_of_the_other_hash_is_read_too(tmp_path):
    repo = Repo.make(tmp_path / "repo", "--object-format=sha256")
    sha = repo.commit({SKILL: OPTED_IN})

    assert len(sha) == 64
    assert allows(repo.path, "tidy", sha=sha, git=QUICK)
    assert not allows(repo.path, "other", sha=sha, git=QUICK)


@pytest.mark.parametrize("sha", [None, "", "HEAD", "main", "0" * 40, "f" * 39, "F" * 40, "HEAD\n"])
def test_without_a_commit_there_is_no_answer_and_head_is_never_asked(tmp_path, sha):
    repo = Repo.make(tmp_path / "repo")
    repo.commit({SKILL: OPTED_IN})

    assert not allows(repo.path, "tidy", sha=sha, git=QUICK)


def committed(repo: Repo) -> None:
    repo.commit({SKILL: OPTED_IN})


def amended(repo: Repo) -> None:
    repo.write(SKILL, OPTED_IN)
    repo.git("commit", "-q", "-a", "--amend", "--no-edit")


def replaced(repo: Repo) -> None:
    before = repo.git("rev-parse", "HEAD")
    after = repo.commit({SKILL: OPTED_IN})
    repo.git("replace", before, after)


def forged(place: str) -> Callable[[Repo], None]:
    """What a job does that knows git: another object below the name of one of the commit's own."""

    def forge(repo: Repo) -> None:
        before = repo.git("rev-parse", "HEAD")
        after = repo.commit({SKILL: OPTED_IN})
        names = [repo.git("rev-parse", place.replace("@", sha)) for sha in (before, after)]
        old, new = (repo.path / ".git/objects" / name[:2] / name[2:] for name in names)
        old.unlink()
        shutil.copy(new, old)
        assert OPTED_IN.strip() in repo.git("cat-file", "blob", f"{before}:{SKILL}")

    return forge


def other_repository(repo: Repo) -> None:
    other = Repo.make(repo.path.with_name("other"))
    other.commit({SKILL: OPTED_IN})
    shutil.rmtree(repo.path / ".git")
    (repo.path / ".git").write_text(f"gitdir: {other.path}/.git\n")


def no_objects(repo: Repo) -> None:
    shutil.rmtree(repo.path / ".git/objects")


def no_repository(repo: Repo) -> None:
    shutil.rmtree(repo.path / ".git")


def damaged(repo: Repo) -> None:
    name = repo.git("rev-parse", f"HEAD:{SKILL}")
    path = repo.path / ".git/objects" / name[:2] / name[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 9\0" + OPTED_IN.encode()))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(committed, id="committed"),
        pytest.param(amended, id="amended"),
        pytest.param(replaced, id="replace ref"),
        pytest.param(forged(f"@:{SKILL}"), id="forged file"),
        pytest.param(forged("@:.pi"), id="forged folder"),
        pytest.param(forged("@^{tree}"), id="forged tree"),
        pytest.param(other_repository, id="another repository"),
        pytest.param(no_objects, id="no objects"),
        pytest.param(no_repository, id="no repository"),
        pytest.param(damaged, id="damaged"),
    ],
)
def test_what_a_job_does_to_the_repository_never_opts_in_for_it(tmp_path, change):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_OUT, "README.md": "x"})
    change(repo)

    assert not allows(repo.path, "tidy", sha=sha, git=QUICK)


def test_what_it_does_later_takes_nothing_back(tmp_path):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_IN})
    repo.commit({SKILL: OPTED_OUT})
    repo.git("gc", "-q")

    assert allows(repo.path, "tidy", sha=sha, git=QUICK)


@pytest.mark.parametrize(
    "git",
    [
        pytest.param(replace(QUICK, program="no-such-git"), id="no git"),
        pytest.param(replace(QUICK, output_limit_bytes=10), id="too much"),
        pytest.param(replace(QUICK, program="false"), id="failing"),
        pytest.param(replace(QUICK, program="true"), id="silent"),
    ],
)
def test_a_git_that_cannot_tell_denies(tmp_path, git):
    repo = Repo.make(tmp_path / "repo")

    assert not allows(repo.path, "tidy", sha=repo.commit({SKILL: OPTED_IN}), git=git)


def test_a_pipe_in_the_place_of_an_object_holds_nobody_up(tmp_path):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_IN})
    path = repo.path / ".git/objects" / sha[:2] / sha[2:]
    path.unlink()
    os.mkfifo(path)

    assert not allows(repo.path, "tidy", sha=sha, git=replace(QUICK, time_limit=timedelta(seconds=0.3)))


def test_a_folder_that_is_gone_is_denied(tmp_path):
    nowhere = tmp_path / "nowhere"

    assert not allows(nowhere, "tidy", sha="f" * 40, git=QUICK)
    assert not allows_as_owner(nowhere, "tidy", "f" * 40, account=current(), git=QUICK)


@needs_root
def test_git_runs_as_the_folders_owner(tmp_path):
    """What only root could read is no part of the owner's repository."""
    for place in (tmp_path, *list(tmp_path.parents)[:3]):
        place.chmod(place.stat().st_mode | 0o011)
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_IN})
    repo.give_to(ORDINARY.uid, ORDINARY.gid)

    def allowed() -> bool:
        return allows_as_owner(Path(repo.path), "tidy", sha, account=Account(0, 0), git=QUICK)

    assert allowed()
    os.chown(repo.path / ".git/objects", 0, 0)
    (repo.path / ".git/objects").chmod(0o700)
    assert not allowed()
