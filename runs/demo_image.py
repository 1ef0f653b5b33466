"""The image of the demo: some 2 MB, a static busybox and the scripted agent, made on the spot.

Its tag is a hash of what is in it, so it is made once and again after a change. Without a static busybox on
this machine or in its distribution, the engine builds on a `busybox` image, fetching it if it has none.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from runs.protocols import EngineAnsweredError, ImageFacts
from runs.scripted import AGENT

REPOSITORY = "pi-dispatch-demo"
BASE = "busybox:latest"

_INSTRUCTIONS = (
    "USER 1001:1001",
    "WORKDIR /workspace",
    "ENV PATH=/usr/local/bin:/usr/bin:/bin",
    'ENTRYPOINT ["/bin/sh", "/opt/pi-dispatch/agent.sh"]',
    'LABEL dev.pi-dispatch.capabilities="anyUid,commands"',
)
_APPLETS = (
    *("cat", "cut", "date", "echo", "env", "false", "grep", "head", "id", "kill", "ls", "mkdir", "mv"),
    *("printf", "rm", "sed", "sh", "sleep", "tail", "test", "touch", "tr", "true", "wc"),
)
_FOLDERS = (
    *(("bin", 0o755), ("etc", 0o755), ("home", 0o755), ("home/pi", 0o777), ("job", 0o755), ("opt", 0o755)),
    *(("opt/pi-dispatch", 0o755), ("outbox", 0o777), ("tmp", 0o1777), ("workspace", 0o777)),
)
_INTERPRETER = 3  # PT_INTERP: a dynamically linked program names its linker by it.


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


def static_busybox() -> bytes | None:
    """Take this machine's busybox if it is linked statically, else the one of Debian's busybox-static."""
    found = shutil.which("busybox")
    with suppress(OSError):
        if found and is_static(program := Path(found).read_bytes()):
            return program
    with (
        tempfile.TemporaryDirectory(prefix="pi-dispatch-") as folder,
        suppress(OSError, subprocess.SubprocessError),
    ):
        _run(folder, "apt-get", "-qq", "download", "busybox-static")
        for package in Path(folder).glob("busybox-static_*.deb"):
            _run(folder, "dpkg-deb", "-x", package.name, "root")
        for path in Path(folder, "root").rglob("busybox"):
            return path.read_bytes()
    return None


def ensure_demo_image(
    engine: ImageMaker, *, busybox: Callable[[], bytes | None] = static_busybox, base: str = BASE
) -> str | None:
    """Return the reference of the image, made if it is not there; None when none is to be had.

    Raises EngineSilentError when the engine gives no answer.
    """
    program = busybox()
    with suppress(EngineAnsweredError):
        if program is not None:
            layer = _layer(program)
            reference = _reference(layer, *_INSTRUCTIONS)
            if engine.image(reference) is None:
                engine.import_image(layer, reference, _INSTRUCTIONS)
        else:
            # The base's own files stay below ours; what it fetches for is the engine's to answer.
            dockerfile = "\n".join((f"FROM {base}", "COPY root/ /", *_INSTRUCTIONS, ""))
            context = _tar([("Dockerfile", dockerfile.encode(), 0o644), *_agent("root/")], _under("root/"))
            reference = _reference(context)
            if engine.image(reference) is None:
                engine.build_image(context, reference)
        if engine.image(reference) is not None:
            return reference
    return None


def is_static(program: bytes) -> bool:
    """Whether an ELF program (64 bits, little endian) names no dynamic linker."""
    if program[:6] != b"\x7fELF\x02\x01":
        return False
    table, size, count = (int.from_bytes(program[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    headers = range(table, table + size * count, size or 1)
    return all(int.from_bytes(program[at : at + 4], "little") != _INTERPRETER for at in headers)


def _run(folder: str, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)  # noqa: S603 - fixed words


def _reference(*parts: bytes | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"


def _layer(program: bytes) -> bytes:
    files = [
        ("bin/busybox", program, 0o755),
        ("etc/passwd", b"pi:x:1001:1001:pi:/home/pi:/bin/sh\n", 0o644),
        ("etc/group", b"pi:x:1001:\n", 0o644),
        *_agent(""),
    ]
    return _tar(files, _under(""), [(f"bin/{applet}", "busybox") for applet in _APPLETS])


def _agent(prefix: str) -> list[tuple[str, bytes, int]]:
    return [(f"{prefix}opt/pi-dispatch/agent.sh", AGENT.read_bytes(), 0o755)]


def _under(prefix: str) -> list[tuple[str, int]]:
    return [(prefix + name, mode) for name, mode in _FOLDERS]


def _tar(
    files: Iterable[tuple[str, bytes, int]],
    folders: Iterable[tuple[str, int]],
    links: Iterable[tuple[str, str]] = (),
) -> bytes:
    """Pack, the same bytes for the same content: no owner, no time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            archive.addfile(entry)
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
        for name, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()
