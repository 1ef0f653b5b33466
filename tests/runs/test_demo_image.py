from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runs import exitline
from runs.container import build_spec
from runs.demo_image import REPOSITORY, ensure_demo_image
from runs.engine import Engine
from runs.preflight import Needs, check_image
from runs.protocols import EngineAnsweredError, ImageFacts
from runs.request import JobUser, RunRequest
from runs.static_busybox import is_static, static_busybox
from tests.conftest import absent

POINTER = "The context of this job (what started it, on which folder and commit) is in /job/event.json."
UID = 4242


class Counting:
    """An engine whose making of images is counted; what it made it has."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.made: dict[str, bytes] = {}
        self.calls = 0
        self._refuses = refuses

    def image(self, reference: str) -> ImageFacts | None:
        if reference not in self.made:
            return None
        return ImageFacts(id=reference, pi_version=None, forges=None, capabilities=None)

    def import_image(self, layer: bytes, reference: str, changes: Sequence[str]) -> None:
        self._make(layer, reference)

    def build_image(self, context: bytes, reference: str) -> None:
        self._make(context, reference)

    def _make(self, content: bytes, reference: str) -> None:
        self.calls += 1
        if self._refuses:
            raise EngineAnsweredError("image-build-failed")
        self.made[reference] = content


def test_it_is_made_once_and_named_after_its_content():
    engine = Counting()

    first = ensure_demo_image(engine, busybox=lambda: b"one")

    assert first is not None
    assert first.startswith(f"{REPOSITORY}:")
    assert ensure_demo_image(engine, busybox=lambda: b"one") == first
    assert engine.calls == 1
    assert ensure_demo_image(engine, busybox=lambda: b"two") != first


def test_without_a_static_busybox_the_engine_builds_on_its_own():
    engine = Counting()

    reference = ensure_demo_image(engine, busybox=lambda: None, base="busybox:x")

    assert b"FROM busybox:x\n" in engine.made[reference]


@pytest.mark.parametrize("program", [b"one", None])
def test_no_image_to_be_had_is_an_answer(program: bytes | None):
    assert ensure_demo_image(Counting(refuses=True), busybox=lambda: program) is None


@pytest.mark.parametrize("program", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(60)])
def test_what_is_no_program_for_us_is_not_static(program: bytes):
    assert not is_static(program)


def test_the_shell_of_this_machine_is_linked_dynamically_and_busybox_is_not():
    busybox = static_busybox()
    if busybox is None:
        absent("no static busybox is to be had")

    assert is_static(busybox)
    assert not is_static(Path(os.path.realpath("/bin/bash")).read_bytes())


@pytest.fixture(scope="module")
def demo(engine) -> Iterator[tuple[Engine, str]]:
    own = Engine(environment=os.environ)
    before = {tag for image in engine.images.list(REPOSITORY) for tag in image.tags}
    reference = ensure_demo_image(own)
    yield own, reference
    after = {tag for image in engine.images.list(REPOSITORY) for tag in image.tags}
    for tag in sorted(after - before):
        engine.images.remove(tag)
    own.close()


@pytest.fixture
def ground() -> Iterator[Path]:
    """Folders of a job's user, readable on the way there."""
    with tempfile.TemporaryDirectory(prefix="pd-demo-") as name:
        root = Path(name)
        root.chmod(0o755)
        for folder in ("job", "shop", "outbox"):
            (root / folder).mkdir()
            if os.geteuid() == 0:
                os.chown(root / folder, UID, UID)
        (root / "job" / "prompt.md").write_text(f"{POINTER}\n\nAdd a line to notes/today.md, please.\n")
        (root / "job" / "event.json").write_text('{"source":"manual","folder":"shop","sha":"0123456789"}\n')
        yield root


def run(engine: Engine, image: str, ground: Path) -> tuple[int | None, exitline.ExitLine]:
    user = JobUser(UID, UID) if os.geteuid() == 0 else JobUser(os.geteuid(), os.getegid())
    request = RunRequest(
        job_id=f"demo-{os.getpid()}-{time.monotonic_ns()}",
        attempt=0,
        token="",
        boot="test",
        host_id="test-of-the-demo",
        kind="local",
        scope_hash=None,
        image=image,
        provider="scripted",
        model="scripted",
        max_turns=3,
        job_dir=ground / "job",
        workspace=ground / "shop",
        outbox=ground / "outbox",
        user=user,
        deadline=datetime.now(UTC) + timedelta(minutes=5),
    )
    container = engine.create(build_spec(request))
    try:
        engine.start(container)
        deadline = time.monotonic() + 20
        while not engine.inspect(container).ended:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return engine.inspect(container).exit_code, exitline.read(engine.tail(container))
    finally:
        engine.remove(container)


@pytest.mark.docker
def test_the_image_is_small_passes_the_preflight_and_does_the_task_as_any_user(demo, engine, ground: Path):
    own, reference = demo

    facts = check_image(own, reference, Needs(kind="local", commands=True, any_uid=True))
    code, line = run(own, reference, ground)

    assert isinstance(facts, ImageFacts)
    assert check_image(own, reference, Needs(kind="local")) == facts
    assert engine.images.get(reference).attrs["Size"] < 3_000_000
    assert (code, line.turns, line.reason) == (0, 2, "completed")
    text = (ground / "shop" / "notes" / "today.md").read_text()
    assert text.startswith("Add a line to notes/today.md, please.\n")
    assert "in shop at 0123456; no model was asked" in text


@pytest.mark.docker
def test_an_image_built_on_another_one_does_the_same(demo, ground: Path):
    own, reference = demo

    built = ensure_demo_image(own, busybox=lambda: None, base=reference)

    assert built not in {None, reference}
    assert run(own, built, ground)[0] == 0


@pytest.mark.docker
def test_a_base_that_cannot_be_fetched_gives_no_image(demo):
    own, _ = demo

    assert ensure_demo_image(own, busybox=lambda: None, base="127.0.0.1:1/none:none") is None
