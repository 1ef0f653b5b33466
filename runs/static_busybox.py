"""A busybox that is linked statically: this machine's, or that of its distribution."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

_INTERPRETER = 3  # PT_INTERP: a dynamically linked program names its linker by it.


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


def is_static(program: bytes) -> bool:
    """Whether an ELF program (64 bits, little endian) names no dynamic linker."""
    if program[:6] != b"\x7fELF\x02\x01":
        return False
    table, size, count = (int.from_bytes(program[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
    headers = range(table, table + size * count, size or 1)
    return all(int.from_bytes(program[at : at + 4], "little") != _INTERPRETER for at in headers)


def _run(folder: str, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)  # noqa: S603 - fixed words
