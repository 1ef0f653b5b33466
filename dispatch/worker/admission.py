"""The last questions before a container: the money, under the rules as they are by then (Q 3.5, 8)."""

from __future__ import annotations

from contextlib import ExitStack

from dispatch.gates.pause import PAUSE_WINDOW
from dispatch.gates.settings import SETTINGS
from dispatch.money.ledger import Granted, NotHeld, Stale
from dispatch.money.windows import instant_of
from dispatch.rungs import Defer, Pass, climb
from dispatch.worker.caps import held_up
from dispatch.worker.context import Context
from dispatch.worker.payment import refund, reserve
from runs.outcome import Refusal

# The reading of the claim is tried first: a job that came up the ladder at once needs no other.
_FIRST_WITHIN_MS = 1_000
_LATER_WITHIN_MS = 60_000


def admit(context: Context) -> Granted | NotHeld | Defer | Refusal | None:
    """Take one start in every window, or say what keeps the job from it; None when a stop was asked.

    The gates, or an outage, may have taken so long that the time of the claim is stale, and the operator may
    have changed the rules meanwhile: then pause windows and settings are asked once more, as of now.
    """
    asked = False
    if context.host.rules.version != context.rules:
        again = _ask_again(context)
        if not isinstance(again, Pass):
            return again
    while True:
        answer = reserve(context, within_ms=_LATER_WITHIN_MS if asked else _FIRST_WITHIN_MS)
        if isinstance(answer, Granted | NotHeld):
            return answer
        if not isinstance(answer, Stale):
            return held_up(context, answer)
        asked, context.now = True, instant_of(answer.now_ms)
        again = _ask_again(context)
        if not isinstance(again, Pass):
            # An earlier asking whose answer was lost may have been granted.
            refund(context.host, context.claimed)
            return again


def _ask_again(context: Context) -> Pass | Defer | Refusal | None:
    rules = context.host.rules
    context.rules = rules.version
    context.limit = rules.scoped_limits().of(context.scope)
    rungs = (PAUSE_WINDOW, SETTINGS)
    return climb(rungs, context, ExitStack(), now=context.now, stop_asked=context.abort.is_set)
