"""The files in the image of the demo, packed: as its only layer, or as what an engine builds it of."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable

from runs.scripted import AGENT

_APPLETS = (
    *("cat", "cut", "date", "echo", "env", "false", "grep", "head", "id", "kill", "ls", "mkdir", "mv"),
    *("printf", "rm", "sed", "sh", "sleep", "tail", "test", "touch", "tr", "true", "wc"),
)
_FOLDERS = (
    *(("bin", 0o755), ("etc", 0o755), ("home", 0o755), ("home/pi", 0o777), ("job", 0o755), ("opt", 0o755)),
    *(("opt/pi-dispatch", 0o755), ("outbox", 0o777), ("tmp", 0o1777), ("workspace", 0o777)),
)


def layer(program: bytes) -> bytes:
    """Pack the layer with this busybox in it."""
    files = [
        ("bin/busybox", program, 0o755),
        ("etc/passwd", b"pi:x:1001:1001:pi:/home/pi:/bin/sh\n", 0o644),
        ("etc/group", b"pi:x:1001:\n", 0o644),
        *_agent(""),
    ]
    return _tar(files, _under(""), [(f"bin/{applet}", "busybox") for applet in _APPLETS])


def build_context(dockerfile: bytes) -> bytes:
    """Pack a Dockerfile, and what it copies beside it below `root/`."""
    return _tar([("Dockerfile", dockerfile, 0o644), *_agent("root/")], _under("root/"))


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
