"""A demo that was kept: what runs, and how it is ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dispatch.demo.stage import MANAGE, Stage, tear_down
from dispatch.demo.telling import told_image
from pidispatch_site.errors import ConfigurationError, OperationalError

_FILE = "kept.json"
_END_SECONDS = 20


def remember(stage: Stage) -> None:
    """Keep what `end` needs, beside everything else of the demo; from here on the stage stays."""
    pids = [process.pid for process in stage.started]
    temporary = stage.folder / f"{_FILE}.new"
    temporary.write_text(json.dumps({"v": 1, "pids": pids, "environment": dict(stage.environment)}))
    temporary.rename(stage.folder / _FILE)


def web_address(stage: Stage) -> str:
    """Read the console's address off what the web process said, and keep it for the stage's own commands."""
    found = re.search(r"https?://\S+?(?=/admin/)", stage.log("web").read_text(errors="replace"))
    if found is None:
        raise OperationalError("The console did not say where it listens.")
    with stage.variables.open("a") as variables:
        variables.write(f"PI_WEB_ORIGINS={found[0]}\n")
    return found[0]


def end(folder: str) -> str:
    """End the processes of a kept demo and remove it; `ConfigurationError` for a folder that is none."""
    path = Path(folder)
    try:
        kept = json.loads((path / _FILE).read_text())
        pids, environment = [int(pid) for pid in kept["pids"]], dict(kept["environment"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{folder} is no folder of a demo that was kept.") from error
    for pid in reversed(pids):
        if _is_of(pid, path):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
    _wait_until_gone(pids, path)
    warnings: list[str] = []
    tear_down(Stage(path, environment), warn=warnings.append)
    images = [told_image(image) for image in [environment.get("PI_JOB_IMAGE")] if image]
    return "\n".join([*warnings, f"The demo in {folder} was ended.", *images])


def _is_of(pid: int, folder: Path) -> bool:
    """Whether the process still is one of the demo's: its number may belong to somebody else by now."""
    try:
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) == folder.resolve()
    except OSError:
        return not Path("/proc/self").exists() and _is_a_command_of_ours(pid)


def _is_a_command_of_ours(pid: int) -> bool:
    """Ask `ps`, where there is no /proc."""
    words = ("ps", "-o", "command=", "-p", str(pid))
    return str(MANAGE) in subprocess.run(words, capture_output=True, text=True).stdout  # noqa: S603


def _wait_until_gone(pids: Sequence[int], folder: Path) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while left := [pid for pid in pids if _is_of(pid, folder)]:
        if time.monotonic() > deadline:
            raise OperationalError(
                f"Processes of the demo do not end: {', '.join(map(str, left))}; see {folder}."
            )
        time.sleep(0.1)
