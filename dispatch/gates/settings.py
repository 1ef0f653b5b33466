"""The settings as a rung: the overlay is read anew for each attempt and counts at once (Q 3.3, 5.5)."""

from __future__ import annotations

from dispatch.operator_files.problems import OperatorFileError
from dispatch.rungs import Pass, Taking
from dispatch.worker.context import Context
from runs.outcome import Reason, Refusal


def _take(context: Context) -> Pass | Refusal:
    try:
        overlay = context.host.rules.overlay()
    except OperatorFileError as error:
        return Refusal(Reason.SETTINGS_OVERLAY_INVALID, detail=",".join(error.places))
    context.settle(overlay)
    return Pass()


SETTINGS: Taking[Context] = Taking(name="settings", take=_take)
