"""The `process` backend (D12): the shipped scripted agent as a child process, and no isolation at all.

It exists so that a machine without a container engine can see the harness work. It runs that one script and
nothing else, as the caller, without provider key or secret; images, users and mounts are not looked at.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pidispatch_site.log import event
from runs.container import ContainerSpec
from runs.processfiles import ProcessFiles, Stored, signal_group
from runs.processstreams import Endings, FileOutput
from runs.protocols import (
    ContainerFacts,
    EngineAnsweredError,
    EngineNotFoundError,
    EngineSilentError,
    ImageFacts,
    NetworkFacts,
)
from runs.result import TAIL_BYTES
from runs.scripted import AGENT

NOT_ISOLATED = (
    "Nothing is isolated: the process backend runs the scripted agent as this account, in the folder itself. "
    "It shows how the harness works; real jobs need a container engine (PI_BACKEND=docker)."
)

#: What of a container's environment the script may see: no key, no forwarded variable, no secret.
PASSED = (
    *("PI_PROVIDER", "PI_MODEL", "PI_MAX_TURNS", "PI_MAX_TOKENS", "PI_JOB_ID"),
    *("PI_FLOW", "PI_COMMAND", "PI_OFFLINE", "PI_JOB_DEADLINE"),
)
_FOLDERS = {
    "/job": "PI_DISPATCH_JOB",
    "/workspace": "PI_DISPATCH_WORKSPACE",
    "/outbox": "PI_DISPATCH_OUTBOX",
}
_PATH = "/usr/local/bin:/usr/bin:/bin"

# The script's shell writes its own number down before it becomes the script: whoever finds the folder after a
# kill of this process finds it, and a folder that is taken away in between stops it from starting.
_START = 'echo "$$" >"$0/pid" && exec "$@"'


@dataclass(slots=True, kw_only=True)
class _Child:
    """A process of ours; `code` once `ended` is set."""

    process: subprocess.Popen[bytes]
    ended: threading.Event = field(default_factory=threading.Event)
    code: int | None = None


class ProcessBackend:
    """Runs scripted agents as children of this process; implements `protocols.Backend`.

    `folder` keeps one folder a "container", so that a restarted worker can find and end what a killed one
    left running. Says aloud at construction that nothing is isolated. `script` and `poll_seconds` are for
    tests.
    """

    def __init__(self, folder: Path, *, script: Path = AGENT, poll_seconds: float = 0.05) -> None:
        self._files = ProcessFiles(folder)
        self._script = script
        self._poll_seconds = poll_seconds
        self._lock = threading.RLock()
        self._created: dict[str, ContainerSpec] = {}
        self._children: dict[str, _Child] = {}
        self._listeners: list[Endings] = []
        event("backend_not_isolated", backend="process")

    def image(self, reference: str) -> ImageFacts | None:
        """Answer the same for every reference: there is no image."""
        capabilities = frozenset({"commands", "anyUid"})
        return ImageFacts(
            id="process", pi_version=None, forges=None, capabilities=capabilities, user="caller"
        )

    def create(self, spec: ContainerSpec) -> str:
        """Make the folder of this "container"."""
        if not all(Path(mount.source).exists() for mount in spec.mounts):
            raise EngineAnsweredError("mount-source-missing")
        with self._lock:
            try:
                stored = self._files.add(spec.name, spec.labels)
            except FileExistsError as error:
                raise EngineAnsweredError("name-taken", conflict=True) from error
            except OSError as error:
                raise EngineAnsweredError("state-directory-unwritable") from error
            self._created[stored.id] = spec
        return stored.id

    def start(self, container: str) -> None:
        """Start the script; the caller asks once."""
        with self._lock:
            stored = self._find(container)
            spec = self._created.pop(stored.id, None)
            if spec is None:
                raise EngineAnsweredError("not-startable")
            try:
                child = _Child(process=self._spawn(stored, spec))
            except OSError as error:
                raise EngineAnsweredError("spawn-failed") from error
            self._children[stored.id] = child
        threading.Thread(target=self._wait, args=(stored, child), name="process-wait", daemon=True).start()

    def inspect(self, container: str) -> ContainerFacts:
        """One "container" by id or exact name."""
        return self._facts(self._find(container))

    def listing(self, labels: Mapping[str, str]) -> list[ContainerFacts]:
        """Those of every process that used this folder."""
        return [
            self._facts(stored) for stored in self._files.all() if labels.items() <= stored.labels.items()
        ]

    def changes(self, labels: Mapping[str, str]) -> Endings:
        """Listen for those of this process that end."""
        listener = Endings(labels)
        with self._lock:
            self._listeners = [other for other in self._listeners if not other.closed] + [listener]
        return listener

    def tail(self, container: str) -> bytes:
        """Read the end of its output."""
        with self._output(self._find(container)) as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL_BYTES))
            return output.read(TAIL_BYTES)

    def follow(self, container: str) -> FileOutput:
        """Its output from the first byte on."""
        stored = self._find(container)
        return FileOutput(
            self._output(stored),
            has_ended=lambda: self._facts(stored).ended,
            poll_seconds=self._poll_seconds,
        )

    def stop(self, container: str, *, grace_seconds: int) -> None:
        """SIGTERM to its process group, after the grace SIGKILL."""
        with suppress(EngineNotFoundError):
            stored = self._find(container)
            for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10)):
                self._signal(stored, number)
                if self._ends_within(stored, seconds):
                    return
            raise EngineSilentError("process-did-not-end")

    def discard(self, container: str) -> bool:
        """Remove it unless it is running."""
        with suppress(EngineNotFoundError), self._lock:
            stored = self._find(container)
            if self._runs(stored):
                return False
            self._created.pop(stored.id, None)
            self._children.pop(stored.id, None)
            self._files.remove(stored)
        return True

    def remove(self, container: str) -> None:
        """End it by force and remove it."""
        self.stop(container, grace_seconds=0)
        self.discard(container)

    def networks(self, labels: Mapping[str, str]) -> list[NetworkFacts]:
        """There are none."""
        return []

    def remove_network(self, network: str) -> None:
        """There are none."""

    def _output(self, stored: Stored) -> BinaryIO:
        try:
            return stored.output.open("rb")
        except FileNotFoundError as error:
            raise EngineNotFoundError from error

    def _find(self, container: str) -> Stored:
        for stored in self._files.all():
            if container in (stored.id, stored.name):
                return stored
        raise EngineNotFoundError

    def _facts(self, stored: Stored) -> ContainerFacts:
        with self._lock:
            child = self._children.get(stored.id)
            if self._runs(stored):
                status = "running"
            else:
                status = "created" if child is None and stored.pid is None else "exited"
            # The code of another process's child is lost with that process.
            code = child.code if child else None
        return ContainerFacts(
            id=stored.id, name=stored.name, status=status, labels=stored.labels, exit_code=code
        )

    def _runs(self, stored: Stored) -> bool:
        with self._lock:
            child = self._children.get(stored.id)
            return self._files.is_alive(stored) if child is None else not child.ended.is_set()

    def _spawn(self, stored: Stored, spec: ContainerSpec) -> subprocess.Popen[bytes]:
        folders = {_FOLDERS[mount.target]: mount.source for mount in spec.mounts if mount.target in _FOLDERS}
        passed = {name: spec.environment[name] for name in PASSED if name in spec.environment}
        # The id among the arguments is how a later process knows this one again.
        command = ["/bin/sh", "-c", _START, str(stored.folder), "/bin/sh", str(self._script), stored.id]
        with stored.output.open("ab") as output:
            return subprocess.Popen(  # noqa: S603 - our own script
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folders.get("PI_DISPATCH_WORKSPACE", "/"),
                env={"PATH": _PATH, **passed, **folders},
                start_new_session=True,
                # As in a container: what it makes in the workspace is not as private as our own files.
                umask=0o022,
            )

    def _wait(self, stored: Stored, child: _Child) -> None:
        while not self._reap(child):
            time.sleep(self._poll_seconds)
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener.tell(stored.id, stored.labels)

    def _reap(self, child: _Child) -> bool:
        # Reaped under the lock and signalled only under it: meanwhile its number is never another's.
        with self._lock:
            code = child.process.poll()
            if code is None:
                return False
            # As in a container, what it left running ends with it.
            signal_group(child.process.pid, signal.SIGKILL)
            child.code = code if code >= 0 else 128 - code
            child.ended.set()
        return True

    def _signal(self, stored: Stored, number: signal.Signals) -> None:
        with self._lock:
            child = self._children.get(stored.id)
            pid = child.process.pid if child else stored.pid
            if pid is not None and self._runs(stored):
                signal_group(pid, number)

    def _ends_within(self, stored: Stored, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._runs(stored):
            if time.monotonic() >= deadline:
                return False
            time.sleep(self._poll_seconds)
        return True
