"""The fake runner's image (image/fake), made in a fraction of a second from a static busybox."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "image" / "fake"
REPOSITORY = "pi-dispatch-fake"

CHANGES = (
    'ENTRYPOINT ["/opt/pi-dispatch/runner.sh"]',
    "USER 1001:1001",
    "WORKDIR /workspace",
    "ENV PATH=/bin",
    "LABEL dev.pi-dispatch.pi-version=fake",
    'LABEL dev.pi-dispatch.capabilities="commands,replicas,anyUid"',
)

APPLETS = (
    *(
        "cat",
        "chmod",
        "cp",
        "date",
        "df",
        "env",
        "grep",
        "head",
        "id",
        "kill",
        "ls",
        "mkdir",
        "mount",
        "nproc",
    ),
    *(
        "printf",
        "ps",
        "rm",
        "sed",
        "seq",
        "setsid",
        "sh",
        "sleep",
        "stat",
        "tail",
        "touch",
        "tr",
        "true",
        "wc",
    ),
    *("wget", "yes"),
)

_INTERPRETER = 3  # PT_INTERP: what a dynamically linked program names


def build_fake_image(engine: Any) -> str:
    """Build the image unless its tag is there, and return the tag.

    `engine` is a docker-py client (`docker.DockerClient`). The tag is a hash of everything in the image, so
    a changed runner is a new image. Raises RuntimeError when no static busybox is to be had.
    """
    content = _root(busybox())
    digest = hashlib.sha256(content + "\n".join(CHANGES).encode()).hexdigest()[:12]
    tag = f"{REPOSITORY}:{digest}"
    if not engine.api.images(name=tag):
        engine.api.import_image_from_data(content, repository=REPOSITORY, tag=digest, changes=list(CHANGES))
    return tag


def busybox() -> bytes:
    """The machine's busybox if it is linked statically, else the one of Debian's package busybox-static."""
    found = shutil.which("busybox")
    if found and is_static(program := Path(found).read_bytes()):
        return program
    with tempfile.TemporaryDirectory(prefix="pd-busybox-") as folder:
        try:
            _run(folder, "apt-get", "download", "busybox-static")
            package = next(Path(folder).glob("busybox-static_*.deb"))
            _run(folder, "dpkg-deb", "-x", package.name, "root")
            return next(Path(folder, "root").rglob("busybox")).read_bytes()
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise RuntimeError(
                "no statically linked busybox: install one (Debian: apt-get install busybox-static)"
            ) from error


def is_static(program: bytes) -> bool:
    """Whether an ELF program (64 bits, little endian) names no dynamic linker."""
    if program[:6] != b"\x7fELF\x02\x01":
        return False
    offset, size, count = (
        int.from_bytes(program[start:end], "little") for start, end in ((32, 40), (54, 56), (56, 58))
    )
    kinds = (
        int.from_bytes(program[start : start + 4], "little")
        for start in range(offset, offset + size * count, size)
    )
    return _INTERPRETER not in kinds


def _run(folder: str, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)


def _root(program: bytes) -> bytes:
    """The image's only layer, the same bytes for the same content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder, mode in (
            *(("bin", 0o755), ("etc", 0o755), ("home", 0o755), ("home/pi", 0o777), ("job", 0o755)),
            *(("opt", 0o755), ("opt/pi-dispatch", 0o755), ("tmp", 0o1777)),
            ("workspace", 0o777),
        ):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            layer.addfile(entry)
        for name, data, mode in (
            ("bin/busybox", program, 0o755),
            ("etc/passwd", b"pi:x:1001:1001:pi:/home/pi:/bin/sh\n", 0o644),
            ("etc/group", b"pi:x:1001:\n", 0o644),
            ("opt/pi-dispatch/runner.sh", (SOURCE / "runner.sh").read_bytes(), 0o755),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            layer.addfile(entry, io.BytesIO(data))
        for applet in APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(entry)
    return buffer.getvalue()
