"""The image of the demo: some 2 MB, a static busybox and the scripted agent, made on the spot.

Its tag is a hash of what is in it, so it is made once and again after a change. Without a static busybox on
this machine or in its distribution, the engine builds on a `busybox` image, fetching it if it has none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from runs import demo_files
from runs.protocols import EngineAnsweredError, ImageFacts
from runs.static_busybox import static_busybox

REPOSITORY = "pi-dispatch-demo"
BASE = "busybox:latest"

_INSTRUCTIONS = (
    "USER 1001:1001",
    "WORKDIR /workspace",
    "ENV PATH=/usr/local/bin:/usr/bin:/bin",
    'ENTRYPOINT ["/bin/sh", "/opt/pi-dispatch/agent.sh"]',
    'LABEL dev.pi-dispatch.capabilities="anyUid,commands"',
)


class ImageMaker(Protocol):
    """What is asked of an engine (see `runs.engine`)."""

    def image(self, reference: str) -> ImageFacts | None:
        """Look it up; None when it is not there."""
        ...

    def import_image(self, layer: bytes, reference: str, changes: Sequence[str]) -> None:
        """Make an image of one layer."""
        ...

    def build_image(self, context: bytes, reference: str) -> None:
        """Build a Dockerfile and what lies beside it."""
        ...


def ensure_demo_image(
    engine: ImageMaker, *, busybox: Callable[[], bytes | None] = static_busybox, base: str = BASE
) -> str | None:
    """Return the reference of the image, made if it is not there; None when none is to be had.

    Raises EngineSilentError when the engine gives no answer.
    """
    program = busybox()
    with suppress(EngineAnsweredError):
        if program is not None:
            layer = demo_files.layer(program)
            reference = _reference(layer, *_INSTRUCTIONS)
            if engine.image(reference) is None:
                engine.import_image(layer, reference, _INSTRUCTIONS)
        else:
            # The base's own files stay below ours; what it fetches for is the engine's to answer.
            dockerfile = "\n".join((f"FROM {base}", "COPY root/ /", *_INSTRUCTIONS, ""))
            context = demo_files.build_context(dockerfile.encode())
            reference = _reference(context)
            if engine.image(reference) is None:
                engine.build_image(context, reference)
        if engine.image(reference) is not None:
            return reference
    return None


def _reference(*parts: bytes | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"
