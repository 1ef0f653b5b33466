"""A caller of the runner is held until nothing of its container can run, whatever broke."""

from __future__ import annotations

import pytest

from runs.abort import Abort
from runs.container import ContainerSpec
from runs.launch import Patience
from runs.protocols import EngineSilentError
from runs.runner import Runner
from runs.watcher import Watcher
from tests.harness.null_runs import NullBackend

SPEC = ContainerSpec(name="pi-job-1", image="i", environment={}, mounts=(), labels={}, user=None)
IMPATIENT = Patience(settle=0, ask=0.001, ask_at_most=0.001, remove=0.005)


class Stuck(NullBackend):
    """Starts a container, breaks whoever looks at it, and removes it only after a while."""

    def __init__(self, silences: int) -> None:
        self.silences = silences
        self.standing = False

    def create(self, spec):
        self.standing = True
        return "id-1"

    def start(self, container):
        pass

    def inspect(self, container):
        raise KeyError("a bug")

    def remove(self, container):
        if self.silences:
            self.silences -= 1
            raise EngineSilentError("engine-timeout")
        self.standing = False


@pytest.mark.parametrize("silences", [0, 1, 200])
def test_a_bug_of_ours_is_raised_only_when_the_engine_said_that_the_container_is_gone(silences):
    backend = Stuck(silences)
    watcher = Watcher(backend, labels={}, deaf_seconds=0.01)

    with pytest.raises(KeyError, match="a bug"):
        Runner(backend, watcher, patience=IMPATIENT).run(SPEC, abort=Abort())
    watcher.close()

    assert not backend.standing
