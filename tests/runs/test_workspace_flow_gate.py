"""E 9.4 row 36: a job starts only flows that the repository opted in before the job had it in its hands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from runs.workspace.flow_gate import allows, allows_as_owner, opts_in
from runs.workspace.git import Git, GitTimeoutError
from runs.workspace.jobuser import Account
from tests.runs.accounts import ORDINARY, current, needs_root
from tests.runs.repositories import Repo

SKILL = ".pi/skills/tidy/SKILL.md"
OPTED_IN = "---\nname: tidy\nai-trigger: allow\n---\nTidy up.\n"
OPTED_OUT = OPTED_IN.replace("allow", "deny")
GIT = Git()


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
        ("---\nname: tidy\n---\nai-trigger: allow\n---\n", False),
        ("ai-trigger: allow\n", False),
        ("\n" + OPTED_IN, False),
        ("\ufeff\ufeff" + OPTED_IN, False),
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
        ("", False),
        ("---\n---\n", False),
    ],
)
def test_which_frontmatter_opts_in(text, allowed):
    assert opts_in(text.encode()) is allowed


@pytest.mark.parametrize(
    ("files", "allowed"),
    [
        ({SKILL: OPTED_IN, ".pi/skills/a/SKILL.md": "x"}, True),
        ({SKILL: OPTED_OUT}, False),
        ({".pi/skills/other/SKILL.md": OPTED_IN}, False),
        ({".pi/skills/tidy/skill.md": OPTED_IN}, False),
        ({f"{SKILL}/SKILL.md": OPTED_IN}, False),
        ({".pi/skills/tidy": OPTED_IN}, False),
        ({"README.md": "x"}, False),
    ],
)
@pytest.mark.parametrize("hashed", ["sha1", "sha256"])
def test_what_stands_at_the_commit_decides(tmp_path, files, allowed, hashed):
    repo = Repo.make(tmp_path / "repo", f"--object-format={hashed}")
    sha = repo.commit(files)

    assert allows(repo.path, "tidy", sha=sha, git=GIT) is allowed


@pytest.mark.parametrize(
    "flow",
    [
        *("", ".", "..", "../tidy", "tidy/", "/tidy", "Tidy", "tidy\n", "tidy\nHEAD:x", "*", "tid?", "-tidy"),
        *("t\xefdy", "tidy\0", "\ud800", "t" * 65, ":(glob)tidy"),
    ],
)
def test_a_bad_name_is_denied(tmp_path, flow):
    repo = Repo.make(tmp_path / "repo")

    assert not allows(repo.path, flow, sha=repo.commit({SKILL: OPTED_IN}), git=GIT)


@pytest.mark.parametrize("sha", [None, "", "HEAD", "main", "0" * 40, "f" * 39, "F" * 40, "HEAD\n"])
def test_without_a_commit_there_is_no_answer_and_head_is_never_asked(tmp_path, sha):
    repo = Repo.make(tmp_path / "repo")
    repo.commit({SKILL: OPTED_IN})

    assert not allows(repo.path, "tidy", sha=sha, git=GIT)


@pytest.mark.parametrize("mode", ["100644", "100755", "120000", "100664", "160000"])
def test_only_a_plain_file_in_plain_folders_counts(tmp_path, mode):
    repo = Repo.make(tmp_path / "repo")
    tree = repo.tree((mode, repo.blob(OPTED_IN.encode()), b"SKILL.md"))
    for name in (b"tidy", b"skills", b".pi"):
        tree = repo.tree(("40000", tree, name))
    sha = repo.commit_tree(tree)

    assert allows(repo.path, "tidy", sha=sha, git=GIT) is (mode == "100644")


def test_a_link_on_the_way_is_not_followed(tmp_path):
    repo = Repo.make(tmp_path / "repo")
    repo.write("real/tidy/SKILL.md", OPTED_IN)
    (repo.path / ".pi").mkdir()
    (repo.path / ".pi/skills").symlink_to("../real")

    assert not allows(repo.path, "tidy", sha=repo.commit(), git=GIT)


def replaced(repo: Repo) -> None:
    before = repo.git("rev-parse", "HEAD")
    repo.git("replace", before, repo.commit({SKILL: OPTED_IN}))


def forged(place: str) -> Callable[[Repo], None]:
    """What a job does that knows git: another object below the name of one of the commit's own."""

    def forge(repo: Repo) -> None:
        before = repo.git("rev-parse", "HEAD")
        after = repo.commit({SKILL: OPTED_IN})
        names = [repo.git("rev-parse", place.replace("@", sha)) for sha in (before, after)]
        old, new = (repo.path / ".git/objects" / name[:2] / name[2:] for name in names)
        old.unlink()
        shutil.copy(new, old)
        # Git itself falls for it.
        assert OPTED_IN.strip() in repo.git("cat-file", "blob", f"{before}:{SKILL}")

    return forge


def other_repository(repo: Repo) -> None:
    other = Repo.make(repo.path.with_name("other"))
    other.commit({SKILL: OPTED_IN})
    shutil.rmtree(repo.path / ".git")
    (repo.path / ".git").write_text(f"gitdir: {other.path}/.git\n")


CHANGES: dict[str, Callable[[Repo], object]] = {
    "committed": lambda repo: repo.commit({SKILL: OPTED_IN}),
    "replace ref": replaced,
    "forged file": forged(f"@:{SKILL}"),
    "forged folder": forged("@:.pi"),
    "forged tree": forged("@^{tree}"),
    "another repository": other_repository,
    "no objects": lambda repo: shutil.rmtree(repo.path / ".git/objects"),
    "no repository": lambda repo: shutil.rmtree(repo.path / ".git"),
    "no folder": lambda repo: shutil.rmtree(repo.path),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_job_does_to_the_repository_never_opts_in_for_it(tmp_path, change):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_OUT, "README.md": "x"})
    change(repo)

    assert not allows(repo.path, "tidy", sha=sha, git=GIT)
    assert not allows_as_owner(repo.path, "tidy", sha, account=current(), git=GIT)


def test_what_it_does_later_takes_nothing_back(tmp_path):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_IN})
    repo.commit({SKILL: OPTED_OUT})
    repo.git("gc", "-q")

    assert allows(repo.path, "tidy", sha=sha, git=GIT)


@pytest.mark.parametrize(
    "changed",
    [{"program": "no-such-git"}, {"program": "false"}, {"program": "true"}, {"output_limit_bytes": 9}],
)
def test_a_git_that_cannot_tell_denies(tmp_path, changed):
    repo = Repo.make(tmp_path / "repo")

    assert not allows(repo.path, "tidy", sha=repo.commit({SKILL: OPTED_IN}), git=replace(GIT, **changed))


def test_a_pipe_in_the_place_of_an_object_holds_nobody_up(tmp_path):
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_IN})
    path = repo.path / ".git/objects" / sha[:2] / sha[2:]
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(GitTimeoutError):
        allows(repo.path, "tidy", sha=sha, git=GIT.within(timedelta(seconds=0.3)))


@needs_root
def test_git_runs_as_the_folders_owner(tmp_path):
    """What only root could read is no part of the owner's repository."""
    for place in (tmp_path, *list(tmp_path.parents)[:3]):
        place.chmod(place.stat().st_mode | 0o011)
    repo = Repo.make(tmp_path / "repo")
    sha = repo.commit({SKILL: OPTED_IN})
    repo.give_to(ORDINARY.uid, ORDINARY.gid)
    objects = repo.path / ".git/objects"
    said = []
    for mode in (0o755, 0o700):
        os.chown(objects, 0, 0)
        objects.chmod(mode)
        said.append(allows_as_owner(repo.path, "tidy", sha, account=Account(0, 0), git=GIT))

    assert said == [True, False]
