"""`manage.py web` and `loginlink` as processes, the way an operator meets them."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path):
    """A fresh machine: nothing but a state directory that does not exist yet."""
    (tmp_path / "empty.env").touch()
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PI_ENV_FILE": str(tmp_path / "empty.env"),
        "PI_STATE_DIR": str(tmp_path / "state"),
    }


def manage(environment, *arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def web(environment):
    """The served admin on a free port: the process and its address."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "web", "--bind", "127.0.0.1:0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    found = re.match(r"Console: (http://127\.0\.0\.1:(\d+))/admin/", line)
    assert found, line + process.stderr.read()
    yield process, found[1], int(found[2])
    process.terminate()
    process.communicate(timeout=20)


def ask(port, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def cookies(answer):
    return "; ".join(value.partition(";")[0] for name, value in answer.getheaders() if name == "Set-Cookie")


def test_an_operator_gets_from_a_fresh_machine_into_the_admin(web, environment):
    process, address, port = web

    link = manage(environment, "loginlink", "--base-url", address + "/")
    assert link.returncode == 0, link.stderr
    assert link.stdout.startswith(f"{address}/login/")
    path = link.stdout.strip().removeprefix(address)

    page, text = ask(port, "GET", path)
    assert page.status == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', text)[1]
    form = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookies(page)}
    pressed, _ = ask(port, "POST", path, f"csrfmiddlewaretoken={token}", **form)
    assert pressed.status == 302

    index, text = ask(port, "GET", "/admin/", Cookie=cookies(pressed))
    assert index.status == 200
    assert "operator" in text.lower()
    again, _ = ask(port, "POST", path, f"csrfmiddlewaretoken={token}", **form)
    assert again.status == 410

    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, json.loads(out)["event"]) == (0, "logged_in")
    assert "Traceback" not in err
    assert path.removeprefix("/login/") not in err


def test_static_files_are_served_without_any_step_and_nothing_is_left_in_the_home(web, environment):
    _, _, port = web

    answer, text = ask(port, "GET", "/static/admin/css/base.css")

    assert (answer.status, answer.getheader("Content-Type")) == (200, 'text/css; charset="utf-8"')
    assert "body" in text
    assert {path.name for path in Path(environment["HOME"]).iterdir()} == {"empty.env", "state"}
    assert all(path.stat().st_mode & 0o022 == 0 for path in Path(environment["PI_STATE_DIR"]).iterdir())


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "said"),
    [
        pytest.param(["--bind", "0.0.0.0:0"], {}, 2, "add --open-to-network", id="open to the network"),
        pytest.param(["--bind", "nowhere"], {}, 2, "expected HOST:PORT", id="no address"),
        pytest.param(
            [], {"PI_CONCURRENCY": "x", "PI_EGRESS": "y"}, 2, "PI_EGRESS is 'y'", id="wrong configuration"
        ),
    ],
)
def test_what_cannot_be_served_ends_with_a_sentence(environment, arguments, variables, code, said):
    answer = manage(environment | variables, "web", *arguments)

    assert answer.returncode == code
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not Path(environment["PI_STATE_DIR"]).exists()
