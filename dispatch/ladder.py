"""The ladder: every free question in the order in which it is asked (Q 3.1, 3.4)."""

from __future__ import annotations

from dispatch.gates.available import AVAILABLE
from dispatch.gates.execution import ENGINE, IMAGE, IMAGE_FOR_USER, PROVIDER, WORKSPACE
from dispatch.gates.folder import FOLDER
from dispatch.rungs import Rung
from dispatch.worker.context import Context

LADDER: tuple[Rung[Context], ...] = (
    AVAILABLE,
    # Before the folder: what the engine lists first may keep that very folder busy.
    ENGINE,
    FOLDER,
    IMAGE,
    PROVIDER,
    WORKSPACE,
    IMAGE_FOR_USER,
)
