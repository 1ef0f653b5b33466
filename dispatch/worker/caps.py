"""What becomes of a job that a spend cap holds up: it is refused, or parked until there may be room (Q 8)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dispatch.money.ledger import Blocked
from dispatch.money.windows import LEDGER_REFUSED, Window, scope_prefix, window_end
from dispatch.queue.waiters import WaitReason
from dispatch.rungs import Defer
from dispatch.worker.context import Context
from dispatch.worker.payment import TokensSpent, Unreadable
from pidispatch_site.variables import CapAction
from runs.outcome import Reason, Refusal


def held_up(context: Context, by: Blocked | TokensSpent | Unreadable) -> Defer | Refusal:
    """Turn the ledger's no into the job's way out, as PI_CAP_ACTION says.

    Where the ledger cannot tell, the job is kept whatever that says.
    """
    if isinstance(by, Unreadable):
        return _parked(context, LEDGER_REFUSED, Window.DAY, {"cause": LEDGER_REFUSED})
    reason = Reason.DAILY_TOKEN_CAP if isinstance(by, TokensSpent) else by.reason
    said = _said(context, by)
    if context.host.cap_action is CapAction.REFUSE:
        return Refusal(reason, said=said)
    window = Window.DAY if isinstance(by, TokensSpent) else by.window
    return _parked(context, f"{reason.value}:{window.value}", window, {"cause": reason.value, **said})


def _parked(context: Context, cause: str, window: Window, said: dict[str, Any]) -> Defer:
    now, host = context.as_of_now(), context.host
    # Whoever makes room wakes it; that it looks again by itself is a net, should a waking be lost.
    look = now + timedelta(seconds=host.timings.cap_recheck)
    return Defer(until=min(window_end(window, now), look), reason=WaitReason.CAP, cause=cause, said=said)


def _said(context: Context, by: Blocked | TokensSpent) -> dict[str, Any]:
    if isinstance(by, TokensSpent):
        return {"spent": by.spent, "cap": by.cap}
    said: dict[str, Any] = {"window": by.window.value, "reserved": by.reserved, "cap": by.cap}
    if by.reason is Reason.SCOPE_CAP:
        said["scopeKey"] = scope_prefix(context.scope_hash or "")
        said["kind"] = "forge" if context.job.kind.is_forge else "local"
    elif by.reason is Reason.SOFT_HOLD:
        said["pct"] = context.spending.hold_percent
    return said
