"""The ladder: every free question in the order in which it is asked (Q 3.1, 3.3, 3.4).

Rungs to come have their places: skew after ONCE; the egress proxy before PROVIDER;
sessions, skills, secrets, tokens and branch protection between PROVIDER and WORKSPACE. The money (Q 3.5) is
asked for when all of them have passed.
"""

from __future__ import annotations

from dispatch.gates.available import AVAILABLE
from dispatch.gates.execution import ENGINE, IMAGE, IMAGE_FOR_USER, PROVIDER, WORKSPACE
from dispatch.gates.fleet_scope import FLEET_SCOPE
from dispatch.gates.once import ONCE
from dispatch.gates.pause import PAUSE_WINDOW
from dispatch.gates.scope import SCOPE
from dispatch.gates.settings import SETTINGS
from dispatch.gates.waits import WAIT
from dispatch.rungs import Rung
from dispatch.worker.context import Context

LADDER: tuple[Rung[Context], ...] = (
    AVAILABLE,
    PAUSE_WINDOW,
    WAIT,
    # Before the scope: what the engine lists first may keep that very folder busy.
    ENGINE,
    SCOPE,
    FLEET_SCOPE,
    SETTINGS,
    ONCE,
    IMAGE,
    PROVIDER,
    WORKSPACE,
    IMAGE_FOR_USER,
)
