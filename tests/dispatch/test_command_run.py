"""`manage.py run` as a process: what it refuses and how it says so, what it prints, how it follows."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time

import pytest

from dispatch.queue import keys
from dispatch.queue.producer import Producer
from dispatch.queue.states import look
from hosts import switches
from hosts.keys import FLEET
from tests.dispatch.consolekit import Case, Console, read_until, run_all
from tests.dispatch.queuekit import JOB, QUEUE, Host, hash_of, listed
from tests.dispatch.test_console_queues import register
from tests.harness.ground import Ground

LONG = 256 * 1024
# The person's host has a declared name (see Console), so that its jobs stay on its own queue.
HERE = "pi-jobs@here"
USAGE = "usage: manage.py run"
EXCLUSIVE = f"{USAGE}(?s:.*)not allowed with"


@pytest.fixture(scope="module")
def console(tmp_path_factory, valkey_server_url):
    home = tmp_path_factory.mktemp("run")
    home.chmod(0o755)
    # pytest's own folders keep the job's user out.
    for above in home.parents[:2]:
        above.chmod(0o755)
    ground = Ground(home)
    for name in ("good", "dirty", "closed"):
        ground.folder(name)
        (home / name / ".git" / "info").mkdir(exist_ok=True)
        (home / name / ".git" / "info" / "exclude").write_text(".fake\n")
    (home / "dirty" / "README.md").write_text("changed\n")
    (home / "dirty" / "new.txt").write_text("new\n")
    (home / "good" / "sub").mkdir()
    (home / "plain").mkdir()
    (home / "bare" / "refs").mkdir(parents=True)
    (home / "bare" / "objects").mkdir()
    (home / "bare" / "HEAD").write_text("ref: refs/heads/main\n")
    (home / "file").write_text("x")
    (home / "link").symlink_to(home / "good")
    (home / "outside").symlink_to("/etc")
    (home / "dangling").symlink_to(home / "nothing")
    (home / "long.txt").write_bytes(b"x" * 1024 * 1024)
    (home / "latin.txt").write_bytes(b"d\xe9j\xe0 vu")
    (home / "closed").chmod(0)
    return Console(home, valkey_server_url)


TASK = ("--task", "tidy up")
REFUSED = {
    "missing": Case(words=["nothing", *TASK], code=2, says="nothing does not exist"),
    "no repository": Case(words=["plain", *TASK], code=2, says="plain is not a git repository"),
    "bare": Case(words=["bare", *TASK], code=2, says="bare is a bare repository"),
    "inside one": Case(words=["good/sub", *TASK], code=2, says="a folder inside the repository"),
    "dirty": Case(words=["dirty", *TASK], code=2, says=r"uncommitted changes \(1 changed, 1 untracked"),
    "a file": Case(words=["file", *TASK], code=2, says="file is a file"),
    "unreadable": Case(words=["closed", *TASK], code=2, says="closed cannot be read", humble=True),
    "link to outside": Case(words=["outside", *TASK], code=2, says="/etc is not a git repository"),
    "link to nothing": Case(words=["dangling", *TASK], code=2, says="dangling does not exist"),
    "name that is no text": Case(words=[b"\xff", *TASK], code=2, says="is not valid UTF-8"),
    "no task": Case(words=["good"], code=2, says="the task is empty"),
    "empty task": Case(words=["good", "--task", ""], code=2, says="the task is empty"),
    "task that is no text": Case(words=["good", "--task", b"\xff"], code=2, says="pass it as UTF-8"),
    "1 MB from a file": Case(
        words=["good", "--task-file", "long.txt"], code=2, says=f"long.txt has more than {LONG} bytes"
    ),
    "1 MB from a pipe": Case(
        words=["good", "--task-file", "-"], given=b"x" * 2**20, code=2, says=f"has more than {LONG} bytes"
    ),
    "file that is no text": Case(
        words=["good", "--task-file", "latin.txt"], code=2, says="is not UTF-8 text"
    ),
    "file that is a folder": Case(words=["good", "--task-file", "good"], code=2, says="Is a directory"),
    "task and file": Case(words=["good", *TASK, "--task-file", "-"], code=2, says=EXCLUSIVE),
    "flow and command": Case(words=["good", "--flow", "fix", "--command", "fix"], code=2, says=EXCLUSIVE),
    "task and command": Case(
        words=["good", *TASK, "--command", "fix"], code=2, says="a command takes no task"
    ),
    "unknown option": Case(
        words=["good", *TASK, "--modell", "m"], code=2, says=f"{USAGE}(?s:.*)unrecognized arguments: --modell"
    ),
    "turns that are no number": Case(
        words=["good", *TASK, "--max-turns", "many"], code=2, says="argument --max-turns: invalid int value"
    ),
    "instants and checks that are none": Case(
        words=[
            "good",
            *TASK,
            "--wait-for",
            "a b",
            *("--after", "tomorrow", "--after", "2026-09-01T09:00:00"),
        ],
        code=2,
        says=r"(?s)^--after 'tomorrow' .* with its own zone.*--after .*09:00:00'.*--wait-for 'a b' cannot",
    ),
    "two instants, a check twice": Case(
        words=["good", *TASK, *("--after", "2026-09-01T09:00Z") * 2, *("--wait-for", "a") * 2],
        code=2,
        says=r"(?s)--after '2026.*' is one too many; .*--wait-for 'a' is given twice; allowed is one",
    ),
    "five conditions": Case(
        words=["good", *TASK, *("--wait-for", "a") * 5],
        code=2,
        says="^--after and --wait-for are given 5 times together; allowed are 4",
    ),
    "what this host cannot keep": Case(
        words=["good", *TASK, "--after", "2999-01-01T00:00Z", "--wait-for", "lint"],
        changes={"PI_WORKER_NAME": None, "PI_WAIT_PROFILES": "tests:/opt/t"},
        code=2,
        says=r"(?s)is \d+ d( \d+ h)? away; allowed are 30 d, up to .*'lint' is not .*; declared are tests",
    ),
    "several at once": Case(
        words=[
            "good",
            *("--task", "", "--image", "", "--max-turns", "-1", "--after", "tomorrow"),
            *("--needs", "prod", "--needs", "s:ok"),
        ],
        code=2,
        says="(?s)task is empty.*image reference.*max turns is -1.*--after 'tomorrow' cannot be used"
        ".*\n--needs 'prod' is no capability; allowed is s:NAME[^\n]*\n$",
    ),
    "broken settings": Case(
        words=["good", *TASK],
        changes={"PI_CONCURRENCY": "0", "PI_MAX_TURNS": "x"},
        code=2,
        says="(?s)PI_CONCURRENCY.*PI_MAX_TURNS",
    ),
    "no server": Case(
        words=["good", *TASK],
        changes={"VALKEY_URL": "redis://u:hidden@127.0.0.1:1"},
        code=1,
        says="^Valkey at redis://127.0.0.1:1 does not answer",
    ),
    "state directory that is a file": Case(
        words=["good", *TASK],
        changes={"VALKEY_URL": "embedded", "PI_WORKER_NAME": None, "PI_STATE_DIR": "/dev/null/x"},
        code=1,
        says="cannot be made private",
    ),
}


@pytest.fixture(scope="module")
def answers(console):
    return run_all(
        console,
        {name: Case(**{**vars(case), "words": ["run", *case.words]}) for name, case in REFUSED.items()},
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_job_is_refused_in_words(answers, name):
    said, case = answers[name], REFUSED[name]

    assert (said.code, said.out) == (case.code, ""), said
    assert re.search(case.says, said.err), said.err
    assert said.is_plain


def test_no_refusal_shows_a_password(answers):
    assert not any("hidden" in said.err + said.out for said in answers.values())


@pytest.mark.parametrize("folder", ["link", "good/", "link/", "good/sub/..", "./good//"])
def test_a_job_is_enqueued_for_the_real_folder_under_the_id_that_is_printed(console, valkey, folder):
    said = console.run("run", folder, "--task-file", "-", given=b"tidy up\n\n")
    claimed = Host(valkey, queue=HERE).claim()

    assert said.code == 0, said.err
    assert re.fullmatch(r"local-[0-9a-f]{16}\n", said.out)
    assert (f"the job works on {console.home / 'good'}" in said.err) is folder.startswith("link")
    assert claimed.job_id == said.out.strip()
    assert (claimed.job.folder, claimed.job.task) == (str(console.home / "good"), "tidy up")


def test_a_task_as_long_as_allowed_goes_through_a_pipe_and_uncommitted_changes_by_force(console, valkey):
    said = console.run("run", "dirty", "--force", "--task-file", "-", given=b"x" * LONG)

    assert said.code == 0, said.err
    assert look(valkey, said.out.strip()) is not None


def test_a_job_waits_for_the_clock_first_and_then_for_the_checks_in_their_order(console, valkey):
    said = console.run(
        *("run", "good", *TASK, "--wait-for", "tests", "--after", "2020-01-01T00:00Z", "--wait-for", "lint"),
        PI_WAIT_PROFILES="tests:/opt/t,lint:/opt/l",
    )

    assert said.code == 0, said.err
    assert Host(valkey, queue=HERE).claim().job.wait_for == (
        {"after": "2020-01-01T00:00Z"},
        {"profile": "tests"},
        {"profile": "lint"},
    )
    assert re.search("^--after has passed by", said.err, re.MULTILINE)


def test_a_host_without_a_declared_name_uses_the_shared_queue(console, valkey):
    said = console.run("run", "good", *TASK, PI_WORKER_NAME=None)

    assert said.code == 0, said.err
    assert listed(valkey, QUEUE) == [said.out.strip()]
    assert said.err.startswith("The job waits: no worker is there to take jobs from pi-jobs;")


def test_without_a_declared_name_it_is_told_which_other_hosts_may_take_the_job(console, valkey):
    register(valkey, "there")

    said = console.run("run", "good", *TASK, PI_WORKER_NAME=None)

    assert (said.code, listed(valkey, QUEUE)) == (0, [said.out.strip()]), said.err
    assert said.err.startswith(
        "The job goes to the shared queue pi-jobs, and other hosts take from it too: there;"
    )


def test_a_job_goes_to_a_host_that_has_all_it_needs_or_nowhere(console, valkey):
    register(valkey, "here", caps="s:prod")
    register(valkey, "there", caps="s:prod,w:lint")

    words = ("run", "good", *TASK, "--needs", "s:prod", "--wait-for")
    sent, refused = console.run(*words, "lint"), console.run(*words, "tests")

    assert (sent.code, refused.code, refused.out) == (0, 1, ""), (sent, refused)
    assert listed(valkey, "pi-jobs@there") == [sent.out.strip()]
    assert hash_of(valkey, sent.out.strip())["needs"] == "s:prod"
    assert sent.err.startswith(
        "The job goes to pi-jobs@there: host there has s:prod, w:lint; the folder must"
    )
    assert re.search("^The job waits: .*pi-jobs@there", sent.err, re.MULTILINE), sent.err
    assert "No live host has s:prod, w:tests; nothing was enqueued.\nLive hosts: here has" in refused.err
    assert listed(valkey, HERE) == listed(valkey, QUEUE) == []


def test_who_does_not_wait_hears_what_keeps_the_job_from_being_taken(console, valkey):
    alone = console.run("run", "good", "--task", "one")
    Host(valkey, queue=HERE).beats.register()
    served = console.run("run", "good", "--task", "two")
    switches.pause(valkey, [FLEET], by="me@here", reason="lunch")
    paused = console.run("run", "good", "--task", "three")

    assert [said.code for said in (alone, served, paused)] == [0, 0, 0]
    assert re.match(f"The job waits: .*{HERE}.* is not there;", alone.err), alone.err
    assert served.err == ""
    assert paused.err.startswith("The job waits: the whole fleet is paused by me@here: lunch")


def until_early_in_a_minute():
    """The id of a job changes with the minute: a test that needs one id begins where the minute is long."""
    if time.time() % 60 > 45:
        time.sleep(60 - time.time() % 60)


def test_the_same_words_are_one_job_while_it_waits_and_an_error_once_it_runs(console, valkey):
    until_early_in_a_minute()
    job_id = console.run("run", "good", *TASK).out.strip()

    again = console.run("run", "good", *TASK, "--wait-for", "tests", PI_WAIT_PROFILES="tests:/opt/t")
    Host(valkey, queue=HERE).start()
    running = console.run("run", "good", *TASK)

    assert (again.code, again.out) == (0, f"exists {job_id} queued\n")
    assert "as it was first asked for; --after and --wait-for change nothing" in again.err
    assert (running.code, running.out) == (1, "")
    assert running.err.startswith(f"exists {job_id} started, on queue {HERE}\n")


def test_an_id_that_waits_on_another_queue_is_an_error_that_names_it(console, valkey):
    until_early_in_a_minute()
    job_id = console.run("run", "good", *TASK).out.strip()
    valkey.delete(keys.job(job_id.encode()), keys.queue_keys(HERE).jobs)
    Producer(valkey).enqueue("pi-jobs@there", job_id, JOB)

    said = console.run("run", "good", *TASK)

    assert said.code == 1
    assert f"exists {job_id} queued, on queue pi-jobs@there" in said.err


@pytest.fixture(scope="module")
def start_seconds(console):
    """What Python and Django cost on this machine, before anything is asked of a server."""
    return console.run("run", "nothing", *TASK).seconds


def test_a_server_that_hangs_is_reported_within_five_seconds(console, start_seconds):
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        said = console.run("run", "good", *TASK, VALKEY_URL=f"redis://127.0.0.1:{deaf.getsockname()[1]}")

    assert said.code == 1
    assert "does not answer (TimeoutError)" in said.err
    assert said.seconds - start_seconds < 4


def test_a_program_that_is_no_valkey_is_reported_as_that(console):
    with socket.create_server(("127.0.0.1", 0)) as other:
        thread = threading.Thread(target=answer_as_a_web_server, args=(other,))
        thread.start()
        said = console.run("run", "good", *TASK, VALKEY_URL=f"redis://127.0.0.1:{other.getsockname()[1]}")
        thread.join(timeout=10)

    assert said.code == 2
    assert "is no Valkey or Redis" in said.err


def answer_as_a_web_server(listener):
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_waiting_follows_the_job_and_ends_as_it_did(console, valkey):
    host = Host(valkey, name="there", queue=HERE)
    with console.running("run", "good", "--wait", *TASK) as process:
        job_id = process.stdout.readline().decode().strip()
        claimed = host.start()
        said = read_until(process.stderr, "running on there")
        host.end(claimed)
        rest = process.stderr.read().decode()
        code = process.wait(timeout=10)

    assert job_id == claimed.job_id
    assert code == 0
    assert re.search(r"^ +\d+\.\d s  running on there$", said, re.MULTILINE)
    assert re.search(r"^ +\d+\.\d s  completed$", rest, re.MULTILINE)


def test_waiting_for_what_is_refused_exits_2_and_says_why(console, valkey):
    host = Host(valkey, name="there", queue=HERE)
    with console.running("run", "good", "--wait", *TASK) as process:
        process.stdout.readline()
        claimed = host.claim()
        read_until(process.stderr, "taken by there")
        host.refuse(claimed)
        rest = process.stderr.read().decode()
        code = process.wait(timeout=10)

    assert code == 2
    assert "policy (over-budget)" in rest
    assert "The cap on job starts was reached. `manage.py budget` shows what is used up" in rest
    assert "With PI_CAP_ACTION=park such a job sleeps instead." in rest


def test_an_interrupt_ends_the_watching_and_leaves_the_job(console, valkey):
    with console.running("run", "good", "--wait", *TASK) as process:
        job_id = process.stdout.readline().decode().strip()
        read_until(process.stderr, "queued")
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stderr.read().decode()
        code = process.wait(timeout=10)

    assert code == 130
    assert f"Job {job_id} stays in the queue" in rest
    assert "Traceback" not in rest
    assert listed(valkey, HERE) == [job_id]
    assert hash_of(valkey, job_id)["status"] == "queued"
