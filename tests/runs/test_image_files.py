"""Rules of the files that the job image is built from; no engine is needed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.harness.job_image import IMAGE

RUNNER = IMAGE / "runner"
DOCKERFILES = sorted(IMAGE.glob("*Dockerfile"))
SCRIPTS = sorted([*IMAGE.glob("*.sh"), RUNNER / "test.sh"])
PI = ("@earendil-works/pi-coding-agent", "@earendil-works/pi-ai")


def lockfile() -> dict[str, dict[str, object]]:
    return json.loads((RUNNER / "package-lock.json").read_text())["packages"]


def test_the_lockfile_names_no_host_and_pins_every_package_by_its_hash() -> None:
    packages = {name: package for name, package in lockfile().items() if name}

    assert len(packages) > 50
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert [name for name, package in packages.items() if "integrity" not in package] == []


def test_pi_is_pinned_exactly_and_both_halves_to_one_version() -> None:
    wanted = json.loads((RUNNER / "package.json").read_text())["dependencies"]
    locked = [lockfile()[f"node_modules/{name}"]["version"] for name in PI]

    assert set(wanted) == set(PI)
    assert [wanted[name] for name in PI] == locked
    assert len(set(locked)) == 1
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", str(locked[0]))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_a_dockerfile_needs_nothing_but_the_classic_builder(path: Path) -> None:
    text = path.read_text()

    for later in ("# syntax=", "--mount=", "<<EOF", "--link", "--chmod=", "COPY --parents"):
        assert later not in text
    assert re.search(r"^USER 1001:1001$", text, re.MULTILINE)
    assert not re.search(r"^ENV .*\bHOME\b", text, re.MULTILINE)


def test_the_labels_of_the_dockerfile_are_computed_and_not_typed() -> None:
    text = (IMAGE / "Dockerfile").read_text()

    assert 'dev.pi-dispatch.pi-version="${PI_VERSION}"' in text
    assert 'dev.pi-dispatch.forges="${FORGES}"' in text


def test_what_is_not_of_the_image_stays_out_of_its_context() -> None:
    lines = (IMAGE / ".dockerignore").read_text().split()

    assert lines[0] == "*"
    assert {"runner/node_modules", "runner/test"} <= set(lines)
    assert (IMAGE / "ca" / ".gitkeep").exists()  # COPY ca/ fails without the folder


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_read_by_its_shell(path: Path) -> None:
    shell = "sh" if path.read_text().startswith("#!/bin/sh") else "bash"

    assert subprocess.run([shell, "-n", str(path)], capture_output=True, check=False).returncode == 0


def test_the_runner_gets_signals_itself() -> None:
    last = (IMAGE / "entry.sh").read_text().rstrip().rsplit("\n", 1)[-1]

    assert last == "exec node /opt/pi-dispatch/runner/src/main.mjs"
