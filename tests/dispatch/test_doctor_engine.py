"""The container engine as `doctor` asks it: there or not, silent, with and without the image."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress

import pytest

from dispatch.console.findings import Mark
from dispatch.doctor import configuration, engine
from dispatch.doctor.bounded import within

FINE = {"PI_STATE_DIR": "/srv/state", "PI_EGRESS": "0"}


def look(seconds=5.0, **variables):
    return list(engine.look(configuration.read({**FINE, **variables}), seconds=seconds))


def test_an_engine_that_nobody_runs(tmp_path):
    (found,) = look(DOCKER_HOST=f"unix://{tmp_path}/none")

    assert (found.mark, found.check) == (Mark.FAILED, "engine")
    assert "answers at DOCKER_HOST (engine-unreachable)" in found.text


def test_certificates_that_cannot_be_used():
    (found,) = look(DOCKER_HOST="tcp://127.0.0.1:1", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH="/nothing")

    assert found.mark is Mark.FAILED
    assert "DOCKER_CERT_PATH cannot be used: there are no certificates" in found.text


def drip(listening):
    """Answer a byte now and then, each soon enough for a socket's own patience."""
    with suppress(OSError), listening.accept()[0] as connection:
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100:
            connection.send(bytes([byte]))
            time.sleep(0.05)


@pytest.mark.parametrize("answer", [lambda listening: None, drip], ids=["silent", "dripping"])
def test_an_engine_that_does_not_come_to_an_end_is_not_waited_for(tmp_path, answer):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        began = time.monotonic()
        (found,) = look(0.3, DOCKER_HOST=f"unix://{tmp_path}/s")

    assert found.mark is Mark.FAILED
    assert "(engine-timeout)" in found.text
    assert time.monotonic() - began < 3


def test_a_question_that_takes_too_long_is_left_alone():
    with pytest.raises(TimeoutError):
        within(0.01, lambda: time.sleep(0.5))
    with pytest.raises(LookupError):
        within(5, lambda: {}["x"])
    assert within(5, lambda: 3) == 3


def test_what_needs_no_engine_asks_none():
    (found,) = look(PI_BACKEND="process")
    assert (found.mark, "without any isolation" in found.text) == (Mark.WARNING, True)
    (found,) = look(PI_BACKEND="vm")
    assert (found.mark, found.text) == (Mark.WARNING, "not looked at: PI_BACKEND cannot be used as it stands")


@pytest.mark.docker
def test_an_engine_that_is_there(engine, fake_image):
    where = {name: os.environ[name] for name in ("DOCKER_HOST",) if name in os.environ}

    there, image = look(PI_JOB_IMAGE=fake_image, **where)
    _, missing = look(PI_JOB_IMAGE="pi-dispatch-no-such-image:never", **where)
    _, wrong = look(PI_JOB_IMAGE="no image", **where)

    assert (there.mark, image.mark) == (Mark.OK, Mark.OK)
    digest = engine.images.get(fake_image).id.removeprefix("sha256:")[:12]
    assert image.text.startswith(f"the job image {fake_image} is {digest}")
    assert (missing.mark, "is not on this host" in missing.text) == (Mark.FAILED, True)
    assert "`make image`" in missing.fix
    assert (wrong.mark, wrong.check) == (Mark.WARNING, "image")
