from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.outcome import InfraFault, Reason, Refusal
from runs.workspace.git import Git
from runs.workspace.materialise import Entry, PlannedFile, materialise, parse_listing, plan
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]

OID = "a" * 40
MIB = 1024 * 1024


def file(path: str | bytes, *, size: int | None = 1, mode: bytes = b"100644") -> Entry:
    return Entry(mode, OID, size, path.encode() if isinstance(path, str) else path)


def skill(name: str, *others: str, size: int = 1) -> list[Entry]:
    return [file(f".pi/skills/{name}/{part}", size=size) for part in ("SKILL.md", *others)]


def paths(entries: list[Entry]) -> list[str]:
    planned = plan(entries)
    assert not isinstance(planned, Refusal)
    return [planned_file.path for planned_file in planned]


# What is written


def test_the_persona_and_whole_skills_are_written() -> None:
    entries = [file(".pi/APPEND_SYSTEM.md"), *skill("fix", "ref/a/b/deep.md", "run.SH")]

    assert paths(entries) == [
        "APPEND_SYSTEM.md",
        "skills/fix/SKILL.md",
        "skills/fix/ref/a/b/deep.md",
        "skills/fix/run.SH",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "APPEND_SYSTEM.md",
        "x/.pi/APPEND_SYSTEM.md",
        ".pi/append_system.md",
        ".PI/APPEND_SYSTEM.md",
        ".pi/SYSTEM.md",
        ".pi/settings.json",
        ".pi/extensions/a.ts",
        ".pi/skills/SKILL.md",
        ".pi/skills/fix/a/b/c/d/five.md",
        ".pi/skills/fix/",
        ".pi/skills/fix//x.md",
        ".pi/skills/fix/../x.md",
        ".pi/skills/../skills/fix/x.md",
        ".pi/skills/fix/.hidden",
        ".pi/skills/fix/-x",
        ".pi/skills/fix/x-",
        ".pi/skills/fix/x.",
        ".pi/skills/fix/a b",
        ".pi/skills/fix/x\n",
        ".pi/skills/fix/a\\b",
        ".pi/skills/fix/NUL",
        ".pi/skills/fix/nul.md",
        ".pi/skills/fix/com1.tar.gz",
        ".pi/skills/fix/aux/x.md",
        ".pi/skills/fix/é.md",
        ".pi/skills/fix/\u017fkill.md",
        ".pi/skills/fix/\u212aelvin.md",
        ".pi/skills/fix/" + "x" * 65,
        ".pi/skills/fix/" + "/".join(["x" * 64] * 3),
        b".pi/skills/fix/\xff.md",
    ],
)
def test_another_path_is_left_out(path: str | bytes) -> None:
    assert paths([*skill("fix"), file(path)]) == ["skills/fix/SKILL.md"]


@pytest.mark.parametrize(
    "name", ["Fix", "-fix", "fix-", "_", "f.x", "f x", "", "x" * 65, "..", "\u017f", "fix\n"]
)
def test_a_skill_of_another_name_is_left_out(name: str) -> None:
    assert paths(skill(name)) == []


@pytest.mark.parametrize("name", ["f", "9", "bug-fix_2", "x" * 64])
def test_a_skill_of_this_name_is_kept(name: str) -> None:
    assert paths(skill(name)) == [f"skills/{name}/SKILL.md"]


@pytest.mark.parametrize(
    ("mode", "size"),
    [
        pytest.param(b"100755", 1, id="executable"),
        pytest.param(b"120000", 1, id="symbolic link"),
        pytest.param(b"160000", None, id="submodule"),
        pytest.param(b"100664", 1, id="an odd old mode"),
    ],
)
def test_only_plain_files_are_written(mode: bytes, size: int | None) -> None:
    persona = file(".pi/APPEND_SYSTEM.md", mode=mode, size=size)

    assert paths([persona, *skill("fix"), file(".pi/skills/fix/x", mode=mode, size=size)]) == [
        "skills/fix/SKILL.md"
    ]


def test_a_skill_needs_a_skill_file_that_is_written_itself_at_any_depth() -> None:
    entries = [
        file(".pi/skills/none/a.md"),
        file(".pi/skills/lower/skill.md"),
        file(".pi/skills/link/SKILL.md", mode=b"120000"),
        file(".pi/skills/link/a.md"),
        file(".pi/skills/deep/x/SKILL.md"),
        file(".pi/skills/deep/a.md"),
    ]

    assert paths(entries) == ["skills/deep/x/SKILL.md", "skills/deep/a.md"]


# Caps


def many(skills: int, files: int) -> list[Entry]:
    return [
        entry
        for number in range(skills)
        for entry in skill(f"s{number}", *(f"f{i}" for i in range(files - 1)))
    ]


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(many(4, 64), id="256 files, 64 in each skill"),
        pytest.param(skill("fix", size=MIB), id="a file of 1 MiB"),
        pytest.param(skill("a", *"bcdefgh", size=MIB), id="8 MiB in all"),
        pytest.param([*many(4, 64), file(".pi/skills/none/x")], id="what is left out does not count"),
        pytest.param([file("huge.bin", size=1000 * MIB), *skill("a")], id="other files of the repository"),
    ],
)
def test_up_to_the_caps_all_is_written(entries: list[Entry]) -> None:
    assert paths(entries)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        pytest.param([*many(4, 64), *skill("more")], Reason.PI_TOO_MANY_FILES, id="257 files"),
        pytest.param(many(1, 65), Reason.PI_TOO_MANY_FILES, id="65 in one skill"),
        pytest.param(skill("a", size=MIB + 1), Reason.PI_FILE_TOO_LARGE, id="a byte over 1 MiB"),
        pytest.param(
            [*skill("a", *"bcdefgh", size=MIB), *skill("b")], Reason.PI_TOO_LARGE, id="a byte over 8 MiB"
        ),
        pytest.param(skill("a", "x.md", "X.md"), Reason.PI_PATH_COLLISION, id="case"),
        pytest.param(skill("a", "x.md", "x.md"), Reason.PI_PATH_COLLISION, id="the same name twice"),
        pytest.param(skill("a", "x", "X/y"), Reason.PI_PATH_COLLISION, id="a file where a folder is"),
    ],
)
def test_beyond_a_cap_nothing_is_written(entries: list[Entry], reason: Reason) -> None:
    assert plan(entries) == Refusal(reason)


SAFE = re.compile(
    r"(APPEND_SYSTEM\.md|skills/[a-z0-9][a-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*){1,4})", re.ASCII
)
PARTS = st.sampled_from(
    [b".pi", b"skills", b"SKILL.md", b"APPEND_SYSTEM.md", b"..", b"", b"a", b"A", b"x.y", b"n\n"]
)
ENTRIES = st.builds(
    Entry,
    st.sampled_from([b"100644", b"100644", b"100755", b"120000"]),
    st.just(OID),
    st.integers(0, 2 * MIB),
    st.one_of(
        st.lists(PARTS | st.binary(max_size=3), max_size=7).map(b"/".join),
        st.lists(PARTS, min_size=1, max_size=4).map(lambda rest: b".pi/skills/a/" + b"/".join(rest)),
    ),
)


@given(st.lists(ENTRIES, max_size=20))
def test_whatever_a_repository_holds_the_plan_is_safe(entries: list[Entry]) -> None:
    planned = plan(entries)

    if isinstance(planned, Refusal):
        return
    names = [planned_file.path for planned_file in planned]
    assert all(SAFE.fullmatch(name) and len(name) <= 200 for name in names)
    assert len({name.lower() for name in names}) == len(names)
    assert sum(planned_file.size_bytes for planned_file in planned) <= 8 * MIB


# The listing


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.binary(min_size=1).filter(lambda path: b"\0" not in path)))
)
def test_any_listing_is_read_back(files: list[tuple[int, bytes]]) -> None:
    listing = b"".join(b"100644 blob %s %7d\t%s\0" % (OID.encode(), size, path) for size, path in files)

    assert [(entry.size_bytes, entry.path) for entry in parse_listing(listing)] == files


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"100644 blob %s     BAD\tx\0", id="the size of a missing object"),
        pytest.param(b"100644 blob %s       -\tx\0", id="a file without a size"),
        pytest.param(b"100644 blob %s\tx\0", id="no size at all"),
        pytest.param(b"160000 commit %s      12\tx\0", id="a submodule with a size"),
        pytest.param(b"100644 blob %s      12\tx", id="cut off"),
        pytest.param(b"rubbish%.0s\0", id="rubbish"),
    ],
)
def test_a_listing_that_is_not_understood_is_a_fault(line: bytes) -> None:
    with pytest.raises(InfraFault, match="git-listing-unreadable"):
        parse_listing(line % OID.encode())


# With git


PERSONA = ".pi/APPEND_SYSTEM.md"
SKILL = ".pi/skills/fix/SKILL.md"


def read(repo: Repo, sha: str | None = None, *, git: Git | None = None) -> dict[str, bytes] | Refusal:
    return materialise(repo.path, sha=sha or repo.git("rev-parse", "HEAD"), git=git or Git())


def test_the_bytes_are_those_of_the_commit(repo: Repo) -> None:
    odd = bytes(range(256)) + b"\r\n"
    repo.commit({PERSONA: "", SKILL: "use it", ".pi/skills/fix/odd.bin": odd, "other": "x"})

    assert read(repo) == {
        "APPEND_SYSTEM.md": b"",
        "skills/fix/SKILL.md": b"use it",
        "skills/fix/odd.bin": odd,
    }


@pytest.mark.parametrize(
    "prepare", [lambda repo: None, lambda repo: repo.write(".pi", "a file")], ids=["no", "file"]
)
def test_a_repository_without_a_pi_folder_brings_nothing(repo: Repo, prepare) -> None:
    prepare(repo)
    repo.commit()

    assert read(repo) == {}


def test_before_the_first_commit_there_is_nothing(ground) -> None:
    assert materialise(Repo.make(ground / "new").path, sha=None, git=Git()) == {}


def test_sha256_and_packed_objects_are_read(ground) -> None:
    repo = Repo.make(ground / "long", "--object-format=sha256")
    repo.commit({SKILL: "use it"})
    repo.git("gc", "-q")

    assert read(repo) == {"skills/fix/SKILL.md": b"use it"}


def test_only_the_pinned_commit_counts(repo: Repo) -> None:
    pinned = repo.commit({PERSONA: "pinned", SKILL: "pinned"})
    repo.git("checkout", "-q", "-b", "attack")
    repo.commit({PERSONA: "of another branch", ".pi/skills/fix/more.md": "x"})
    repo.write(PERSONA, "dirty")
    repo.write(".pi/skills/new/SKILL.md", "untracked")

    assert read(repo, pinned) == {"APPEND_SYSTEM.md": b"pinned", "skills/fix/SKILL.md": b"pinned"}


def test_neither_links_nor_filters_nor_replacements_change_what_is_read(repo: Repo) -> None:
    repo.commit({PERSONA: "as committed", SKILL: "as committed", "evil": "evil"})
    (repo.path / ".pi/skills/fix/link.md").symlink_to("/etc/passwd")
    repo.commit({".gitattributes": "* filter=evil text eol=crlf ident\n"})
    repo.config("filter.evil.smudge", "echo evil")
    repo.git("replace", repo.git("rev-parse", f"HEAD:{SKILL}"), repo.git("rev-parse", "HEAD:evil"))

    assert read(repo) == {"APPEND_SYSTEM.md": b"as committed", "skills/fix/SKILL.md": b"as committed"}


def test_a_linked_pi_folder_brings_nothing(repo: Repo) -> None:
    repo.commit({"elsewhere/skills/fix/SKILL.md": "x", "elsewhere/APPEND_SYSTEM.md": "x"})
    (repo.path / ".pi").symlink_to("elsewhere")
    repo.commit()

    assert read(repo) == {}


def test_a_forged_tree_escapes_nowhere(repo: Repo) -> None:
    evil = repo.blob(b"evil")
    inner = repo.tree(
        ("100644", evil, b"../../../../etc/x"),
        ("100644", evil, b"SKILL.md"),
        ("100644", evil, b"a/b.md"),
        ("100644", evil, b".."),
    )
    skills = repo.tree(("40000", inner, b".."), ("40000", inner, b"fix"))
    pi = repo.tree(("100644", evil, b"APPEND_SYSTEM.md"), ("40000", skills, b"skills"))
    repo.commit_tree(repo.tree(("40000", pi, b".pi")))

    read_files = read(repo)

    assert isinstance(read_files, dict)
    assert set(read_files) == {"APPEND_SYSTEM.md", "skills/fix/SKILL.md", "skills/fix/a/b.md"}


def test_a_tree_that_holds_a_name_twice_is_refused(repo: Repo) -> None:
    one, two = repo.blob(b"one"), repo.blob(b"two")
    pi = repo.tree(("100644", one, b"APPEND_SYSTEM.md"), ("100644", two, b"APPEND_SYSTEM.md"))
    repo.commit_tree(repo.tree(("40000", pi, b".pi")))

    assert read(repo) == Refusal(Reason.PI_PATH_COLLISION)


def test_a_file_too_large_is_refused_before_it_is_read(repo: Repo) -> None:
    repo.commit({PERSONA: b"x" * (MIB + 1)})

    # Its content would break this bound.
    assert read(repo, git=Git(output_limit_bytes=1000)) == Refusal(Reason.PI_FILE_TOO_LARGE)


def test_a_listing_beyond_the_bound_is_too_many_files(repo: Repo) -> None:
    repo.commit({f".pi/skills/fix/{number}": "x" for number in range(20)})

    assert read(repo, git=Git(output_limit_bytes=500)) == Refusal(Reason.PI_TOO_MANY_FILES)


def test_an_object_that_is_missing_is_a_fault(repo: Repo) -> None:
    sha = repo.commit({PERSONA: "x"})
    blob = repo.git("rev-parse", f"HEAD:{PERSONA}")
    (repo.path / ".git/objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(InfraFault, match="git-listing-unreadable"):
        read(repo, sha)


@pytest.mark.parametrize("sha", ["--help", "HEAD", "a" * 39, "a" * 41, "A" * 40, "a" * 40 + "\n", ""])
def test_only_a_commit_id_is_ever_passed_to_git(repo: Repo, sha: str) -> None:
    with pytest.raises(InfraFault, match="git-bad-sha"):
        materialise(repo.path, sha=sha, git=Git())


def test_a_commit_that_is_not_there_is_a_fault(repo: Repo) -> None:
    with pytest.raises(InfraFault, match="git-ls-tree-failed"):
        read(repo, "1" * 40)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="nothing"),
        pytest.param(f"{OID} missing\\n", id="missing"),
        pytest.param(f"{OID} tree 1\\nx\\n", id="no file"),
        pytest.param(f"{OID} blob 2\\nxy\\n", id="another size"),
        pytest.param(f"{'b' * 40} blob 1\\nx\\n", id="another object"),
        pytest.param(f"{OID} blob 1\\nxy", id="no end"),
        pytest.param(f"{OID} blob 1\\nx\\nmore", id="something after the last"),
    ],
)
def test_an_answer_that_is_not_the_plan_is_a_fault(repo: Repo, answer: str) -> None:
    from runs.workspace.materialise import read_contents

    program = repo.path.parent / "git"
    program.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    program.chmod(0o755)

    with pytest.raises(InfraFault, match="git-content-unreadable"):
        read_contents(repo.path, (PlannedFile("APPEND_SYSTEM.md", OID, 1),), git=Git(program=str(program)))
