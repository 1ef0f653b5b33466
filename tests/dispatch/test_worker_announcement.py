"""The line at the end of a boot: what it says, and that no engine keeps it waiting."""

from __future__ import annotations

import threading
import time

import pytest

from dispatch.worker.announcement import announce
from dispatch.worker.default_image import DefaultImage
from pidispatch_site import conf
from runs.protocols import EngineSilentError
from tests.dispatch.workerkit import IMAGE, Bench
from tests.harness.null_runs import NullBackend

URL = "redis://user:canary@127.0.0.1:6379"


class Engine(NullBackend):
    """Shows an image after a while, or is silent, or has none."""

    def __init__(self, answer):
        self.answer, self.go_on = answer, threading.Event()

    def image(self, reference):
        if self.answer == "hangs":
            self.go_on.wait(20)
        if isinstance(self.answer, Exception):
            raise self.answer
        return None if self.answer == "hangs" else self.answer


@pytest.fixture
def config(state_dir):
    return conf.load(
        {
            "PI_STATE_DIR": str(state_dir),
            "VALKEY_URL": URL,
            "PI_EGRESS": "0",
            "PI_WORKER_NAME": "alpha",
            "ANTHROPIC_API_KEY": "canary",
        }
    )


def test_it_says_once_who_serves_and_that_the_network_is_open(valkey, config, events):
    announce(config, Bench(valkey).host, DefaultImage(Engine(IMAGE), config.job_image), URL)

    (line,) = events()
    assert line["event"] == "worker_started"
    assert (line["queue"], line["imageDigest"], line["egress"]) == ("pi-jobs", "sha256:1", False)
    assert "worker" not in line
    assert "canary" not in str(line)


@pytest.mark.parametrize("answer", [None, EngineSilentError("engine-timeout")])
def test_an_image_that_cannot_be_shown_leaves_its_digest_out(valkey, config, events, answer):
    announce(config, Bench(valkey).host, DefaultImage(Engine(answer), config.job_image), URL)

    assert "imageDigest" not in events()[0]


def test_an_engine_that_hangs_holds_it_up_for_the_given_time_only(valkey, config, events):
    engine = Engine("hangs")
    began = time.monotonic()

    announce(config, Bench(valkey).host, DefaultImage(engine, "i"), URL, image_seconds=0.2)
    took = time.monotonic() - began
    engine.go_on.set()

    assert 0.2 <= took < 2
    assert "imageDigest" not in events()[0]
