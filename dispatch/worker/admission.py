"""The last questions before a container: the lease and the money, under the rules of then (Q 3.5, 7.5, 8)."""

from __future__ import annotations

from contextlib import ExitStack

from dispatch.gates import fleet_scope
from dispatch.gates.pause import PAUSE_WINDOW
from dispatch.gates.settings import SETTINGS
from dispatch.instants import instant_of
from dispatch.money.ledger import Granted, NotHeld, Stale
from dispatch.rungs import Defer, Pass, climb
from dispatch.worker.caps import held_up
from dispatch.worker.context import Context
from dispatch.worker.payment import reserve
from dispatch.worker.refunds import refund
from runs.outcome import Refusal

# How old the attempt's time may be at the reservation, and with it what the rules said.
_WITHIN_MS = 1_000
# An answer of a slow server ages on its way.
_LATER_WITHIN_MS = 5_000


def admit(context: Context) -> Granted | NotHeld | Defer | Refusal | None:
    """Take one start in every window, or say what keeps the job from it; None when a stop was asked.

    The gates, or an outage, may have taken so long that the time of the claim is stale, and the operator may
    have changed the rules meanwhile: then pause windows and settings are asked once more, as of now.
    """
    within_ms = _WITHIN_MS
    while True:
        again = _ask_again(context) if context.host.rules.version != context.rules else Pass()
        if not isinstance(again, Pass):
            return _without_a_start(context, again)
        # It may have run out, or been granted without an answer.
        kept = fleet_scope.keep(context)
        if isinstance(kept, Defer):
            return _without_a_start(context, kept)
        answer = reserve(context, within_ms=within_ms)
        if isinstance(answer, Granted | NotHeld):
            return answer
        if not isinstance(answer, Stale):
            return _without_a_start(context, held_up(context, answer))
        context.now, within_ms = instant_of(answer.now_ms), _LATER_WITHIN_MS
        again = _ask_again(context)
        if not isinstance(again, Pass):
            return _without_a_start(context, again)


def _without_a_start(context: Context, answer: Defer | Refusal | None) -> Defer | Refusal | None:
    """Leave no start behind: an earlier asking whose answer was lost may have been granted."""
    refund(context.host, context.claimed)
    return answer


def _ask_again(context: Context) -> Pass | Defer | Refusal | None:
    rules = context.host.rules
    context.rules = rules.version
    context.limit = rules.scoped_limits().of(context.scope)
    rungs = (PAUSE_WINDOW, SETTINGS)
    return climb(rungs, context, ExitStack(), now=context.now, stop_asked=context.abort.is_set)
