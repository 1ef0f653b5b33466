from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from runs.outcome import InfraFault
from runs.workspace.git import Git, GitOutputTooLargeError
from tests.runs.accounts import ORDINARY, OTHER, needs_root
from tests.runs.repositories import Repo

pytest_plugins = ["tests.runs.grounds"]

QUICK = Git(time_limit=timedelta(seconds=0.5))


@pytest.fixture
def canary(ground: Path) -> Path:
    """The file that a hostile program makes when it runs; `trap(canary)` is such a program."""
    return ground / "canary"


def trap(canary: Path) -> str:
    """A program that leaves the canary and ends."""
    return a_script(canary.parent / "trap", f"echo >> '{canary}'")


def a_script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


# Each: what a repository brings along, and the command that falls for it (with its stdin).


def external_diff(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("diff.external", trap(canary))
    repo.write("README.md", "changed\n")
    return ["diff"], b""


def credential_helper(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("credential.helper", trap(canary))
    return ["credential", "fill"], b"protocol=https\nhost=example.org\n\n"


def password_prompt(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("core.askPass", trap(canary))
    return ["credential", "fill"], b"protocol=https\nhost=example.org\n\n"


def signature_check(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("gpg.program", trap(canary))
    head, _, message = repo.git("cat-file", "commit", "HEAD").partition("\n\n")
    signed = (
        f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}\n"
    )
    sha = repo.git("hash-object", "-t", "commit", "-w", "--stdin", given=signed.encode())
    repo.git("update-ref", "HEAD", sha)
    return ["verify-commit", "HEAD"], b""


def file_system_monitor(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("core.fsmonitor", trap(canary))
    return ["status"], b""


def index_hook(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    (repo.path / ".git/hooks").mkdir(exist_ok=True)
    Path(trap(canary)).rename(repo.path / ".git/hooks/post-index-change")
    os.utime(repo.path / "README.md", (1, 1))
    return ["update-index", "--refresh"], b""


def hooks_elsewhere(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    folder = canary.parent / "hooks"
    folder.mkdir()
    Path(trap(canary)).rename(folder / "reference-transaction")
    repo.config("core.hooksPath", str(folder))
    return ["update-ref", "refs/heads/other", "HEAD"], b""


def alternates_command(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    other = Repo.make(canary.parent / "other")
    other.commit()
    repo.write(".git/objects/info/alternates", str(other.path / ".git/objects"))
    repo.config("core.alternateRefsCommand", trap(canary))
    return ["rev-list", "--alternate-refs"], b""


def ssh_command(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("core.sshCommand", trap(canary))
    repo.config("remote.origin.url", "ssh://example.org/x")
    return ["fetch", "origin"], b""


def git_proxy(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("core.gitProxy", trap(canary))
    repo.config("remote.origin.url", "git://127.0.0.1:1/x")
    return ["fetch", "origin"], b""


def ext_transport(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("protocol.ext.allow", "always")
    repo.config("remote.origin.url", f"ext::{trap(canary)}")
    return ["fetch", "origin"], b""


def upload_pack(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    repo.config("remote.origin.url", str(repo.path))
    repo.config("remote.origin.uploadpack", trap(canary))
    return ["fetch", "origin"], b""


def lazy_fetch(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    missing = "1" * 40
    repo.config("core.repositoryformatversion", "1")
    repo.config("extensions.partialClone", "origin")
    repo.config("remote.origin.promisor", "true")
    repo.config("remote.origin.url", str(repo.path))
    repo.config("remote.origin.uploadpack", trap(canary))
    return ["cat-file", "--batch"], f"{missing}\n".encode()


def lazy_fetch_over_ext(repo: Repo, canary: Path) -> tuple[list[str], bytes]:
    command = lazy_fetch(repo, canary)
    repo.config("protocol.ext.allow", "always")
    repo.config("remote.origin.url", f"ext::{trap(canary)}")
    return command


TRAPS: list[Callable[[Repo, Path], tuple[list[str], bytes]]] = [
    external_diff,
    credential_helper,
    password_prompt,
    signature_check,
    file_system_monitor,
    index_hook,
    hooks_elsewhere,
    alternates_command,
    ssh_command,
    git_proxy,
    ext_transport,
    upload_pack,
    lazy_fetch,
    lazy_fetch_over_ext,
]


@pytest.mark.parametrize("lay", TRAPS, ids=lambda lay: lay.__name__)
def test_what_a_repository_configures_runs_under_plain_git_and_not_under_ours(
    lay: Callable[[Repo, Path], tuple[list[str], bytes]], repo: Repo, canary: Path
) -> None:
    command, given = lay(repo, canary)
    repo.git(*command, given=given, check=False)
    assert canary.exists(), "the trap does not work, so the test would prove nothing"
    canary.unlink()
    os.utime(repo.path / "README.md", (2, 2))

    Git().ask(*command, cwd=repo.path, given=given)

    assert not canary.exists()


@pytest.mark.parametrize(
    ("lay", "opened"),
    [
        pytest.param(ssh_command, {"GIT_ALLOW_PROTOCOL": "ssh"}, id="ssh's command, ssh allowed"),
        pytest.param(git_proxy, {"GIT_ALLOW_PROTOCOL": "git"}, id="git's proxy, git allowed"),
        pytest.param(lazy_fetch, {"GIT_ALLOW_PROTOCOL": "file"}, id="a missing object, files allowed"),
        pytest.param(
            lazy_fetch_over_ext, {"GIT_NO_LAZY_FETCH": "0"}, id="a missing object, for a git before 2.39.4"
        ),
    ],
)
def test_where_two_locks_hold_each_holds_alone(
    lay: Callable[[Repo, Path], tuple[list[str], bytes]], opened: dict[str, str], repo: Repo, canary: Path
) -> None:
    command, given = lay(repo, canary)

    Git().ask(*command, cwd=repo.path, given=given, environment=opened)

    assert not canary.exists()


def test_attributes_of_a_file_that_the_settings_name_do_not_count(repo: Repo) -> None:
    repo.write("elsewhere", "* filter=evil\n")
    repo.config("core.attributesFile", str(repo.path / "elsewhere"))

    assert b"unspecified" in Git().tell("check-attr", "filter", "README.md", cwd=repo.path)


def test_the_workers_environment_does_not_reach_git(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE", "GIT_EXEC_PATH"):
        monkeypatch.setenv(name, "/nonexistent/elsewhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")

    assert Git().tell("rev-parse", "--is-bare-repository", cwd=repo.path) == b"false\n"


def test_a_replaced_object_is_read_as_it_was_committed(repo: Repo) -> None:
    blob = repo.git("rev-parse", "HEAD:README.md")
    repo.git("replace", blob, repo.blob(b"forged\n"))
    assert repo.git("cat-file", "blob", blob) == "forged"

    assert Git().tell("cat-file", "blob", blob, cwd=repo.path) == b"hello\n"


def test_only_the_folders_own_git_counts(repo: Repo) -> None:
    inner = repo.path / "inner"
    (inner / ".git").mkdir(parents=True)

    assert Git().ask("rev-parse", "HEAD", cwd=inner).code == 128


def test_a_configuration_that_speaks_of_a_home_is_read(repo: Repo) -> None:
    repo.config("core.excludesFile", "~/ignored")

    assert Git().ask("status", cwd=repo.path).code == 0


def test_an_exit_code_is_an_answer_and_a_failed_must_is_a_fault(repo: Repo) -> None:
    assert Git().ask("rev-parse", "--quiet", "--verify", "nothing", cwd=repo.path).code == 1

    with pytest.raises(InfraFault) as fault:
        Git().tell("rev-parse", "--verify", "nothing", cwd=repo.path)

    assert (fault.value.reason, fault.value.detail) == (None, "git-rev-parse-failed")


def test_what_is_given_on_stdin_is_read(repo: Repo) -> None:
    assert Git().tell("hash-object", "--stdin", cwd=repo.path, given=b"x" * 300_000).endswith(b"\n")


def test_too_much_output_ends_git(repo: Repo) -> None:
    blob = repo.blob(b"x" * 2_000_000)

    with pytest.raises(GitOutputTooLargeError):
        Git(output_limit_bytes=1_000_000).tell("cat-file", "blob", blob, cwd=repo.path)


def test_errors_are_cut_but_read_to_their_end(ground: Path) -> None:
    noisy = a_script(ground / "git", "yes error | head -c 1000000 >&2; echo done")

    answer = Git(program=noisy).ask("x", cwd=ground)

    assert answer.output == b"done\n"
    assert len(answer.errors) == 64 * 1024


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param("sleep 60", id="hangs"),
        pytest.param("trap '' TERM; sleep 60", id="ignores SIGTERM"),
        pytest.param("sleep 60 & echo $! > child; exit 0", id="leaves a child that holds the pipe"),
        pytest.param("exec >&- 2>&-; sleep 60", id="closes its output and stays"),
    ],
)
def test_a_git_that_does_not_end_is_killed_with_its_children(ground: Path, behaviour: str) -> None:
    # The marker is the process's own: nobody else's sleep is looked for.
    slow = a_script(ground / "git", f"echo $$ > leader\n{behaviour}")
    begun = time.monotonic()

    with pytest.raises(InfraFault) as fault:
        Git(program=slow, time_limit=timedelta(seconds=0.5)).ask("x", cwd=ground)

    assert fault.value.detail == "git-timeout"
    assert time.monotonic() - begun < 4
    for name in ("leader", "child"):
        if (ground / name).exists():
            assert _is_gone(int((ground / name).read_text()))


def _is_gone(pid: int) -> bool:
    """Gone, or dead and only not yet collected by whoever inherited it."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_pipe_in_the_place_of_a_git_file_costs_only_the_time_limit(repo: Repo) -> None:
    (repo.path / ".git/HEAD").unlink()
    os.mkfifo(repo.path / ".git/HEAD")

    with pytest.raises(InfraFault, match="git-timeout"):
        QUICK.ask("rev-parse", "HEAD", cwd=repo.path)


def test_a_killed_git_is_a_fault(ground: Path) -> None:
    program = a_script(ground / "git", "kill -9 $$")

    with pytest.raises(InfraFault, match="git-killed"):
        Git(program=program).ask("x", cwd=ground)


@pytest.mark.parametrize(
    ("git", "cwd", "token"),
    [
        pytest.param(Git(program="no-such-git"), "/", "git-missing", id="git is not installed"),
        pytest.param(Git(), "/nonexistent", "git-unstartable", id="the folder went away"),
    ],
)
def test_a_git_that_cannot_start_is_a_fault(git: Git, cwd: str, token: str) -> None:
    with pytest.raises(InfraFault) as fault:
        git.ask("version", cwd=Path(cwd))

    assert fault.value.detail == token


@pytest.mark.parametrize(
    "switch",
    [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "protocol.ext.allow=never",
        "credential.helper=",
        "safe.directory=*",
    ],
)
def test_the_switches_that_are_promised_stand_before_every_command(ground: Path, switch: str) -> None:
    program = a_script(ground / "git", 'for word in "$@"; do echo "$word"; done')

    words = Git(program=program).tell("status", cwd=ground).decode().split("\n")

    assert words[words.index(switch) - 1] == "-c"
    assert words[-3:-1] == ["--no-pager", "status"]


def test_no_path_and_nothing_inherited_stands_in_the_arguments(ground: Path, repo: Repo) -> None:
    program = a_script(ground / "git", 'for word in "$@"; do echo "$word"; done; env')

    words = Git(program=program).tell("status", cwd=repo.path).decode()

    assert str(repo.path) not in words.replace(f"PWD={repo.path}", "")
    assert "PYTEST" not in words


@needs_root
def test_git_runs_as_the_account_it_is_given(ground: Path) -> None:
    program = a_script(ground / "git", "id -u; id -g; id -G")

    groups = os.getgroups()
    os.setgroups([OTHER.gid])
    try:
        said = Git(program=program, account=ORDINARY).tell("x", cwd=ground).split()
    finally:
        os.setgroups(groups)

    assert said == [str(ORDINARY.uid).encode(), str(ORDINARY.gid).encode(), str(ORDINARY.gid).encode()]
