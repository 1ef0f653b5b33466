"""Which process runs which test file: what computes beside what waits, so that no core stands idle."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class TwoEndsScheduling(LoadFileScheduling):
    """Files one by one, the first process from those of many tests on, every other from those of few on.

    Many tests in a file are quick ones, which compute; few are long ones, which wait for processes of theirs.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        is_first = node is next(iter(self.assigned_work))
        self.workqueue.move_to_end(
            next(iter(self.workqueue) if is_first else reversed(self.workqueue)), last=False
        )
        super()._assign_work_unit(node)
