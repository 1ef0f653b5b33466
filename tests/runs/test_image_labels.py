"""What the job image says of itself, and the script that finds out whether it is so."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runs.engine import Engine
from tests.harness.job_image import IMAGE

pytestmark = [pytest.mark.docker, pytest.mark.real_image]

Verified = dict[str, tuple[int, list[str]]]


def verify(image: str) -> tuple[int, list[str]]:
    """Exit code of the verify script, and what it found wrong."""
    script = ["bash", str(IMAGE / "verify.sh"), image]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    assert lines, done.stderr
    return done.returncode, [line.removeprefix("FAIL  ") for line in lines if line.startswith("FAIL")]


@pytest.fixture(scope="module")
def lying_image(engine: Any, job_image: str) -> Iterator[str]:
    """The job image with claims that are not so, and a baked file that anybody may change."""
    tag = "pi-job:test-lying"
    dockerfile = (
        f"FROM {job_image}\n"
        "USER 0:0\nRUN chmod 0666 /opt/pi-dispatch/OUTBOX_PROTOCOL.md\nUSER 1001:1001\n"
        'LABEL dev.pi-dispatch.pi-version="9.9.9" dev.pi-dispatch.forges="github"\n'
        'LABEL dev.pi-dispatch.capabilities="commands,flying"\n'
    )
    subprocess.run(
        ["docker", "build", "--quiet", "--tag", tag, "-"],
        input=dockerfile,
        text=True,
        check=True,
        capture_output=True,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
    )
    yield tag
    engine.images.remove(tag)


@pytest.fixture(scope="module")
def verified(job_image: str, lying_image: str) -> Verified:
    """What the verify script says of the true image and of the lying one, asked side by side."""
    images = {"true": job_image, "lying": lying_image}
    with ThreadPoolExecutor(len(images)) as pool:
        return dict(zip(images, pool.map(verify, images.values()), strict=True))


def test_the_labels_are_what_the_lockfile_and_the_image_say(docker_backend: Engine, job_image: str) -> None:
    lock = json.loads((IMAGE / "runner" / "package-lock.json").read_text())
    facts = docker_backend.image(job_image)

    assert facts is not None
    assert facts.pi_version == lock["packages"]["node_modules/@earendil-works/pi-coding-agent"]["version"]
    assert facts.forges == frozenset({"none"})
    assert facts.capabilities == frozenset({"replicas", "commands", "anyUid"})


def test_the_verify_script_has_nothing_to_complain_about(verified: Verified) -> None:
    assert verified["true"] == (0, [])


def test_the_verify_script_catches_claims_that_are_not_so(verified: Verified) -> None:
    code, failed = verified["lying"]

    assert code == 1
    assert [line.split(":")[0] for line in failed] == [
        "everything under /opt/pi-dispatch is root's and nobody else can write it",
        "label pi-version is the version that is in it",
        "label forges",
        "capability flying is known",
    ]
