"""What a person can do about a job that a cap refused: the same next step for `run --wait` and `why`."""

from __future__ import annotations

from collections.abc import Mapping

from runs.outcome import Reason

_SEE = "`manage.py budget` shows what is used up and when it turns."
_AGAIN = "then run it again. With PI_CAP_ACTION=park such a job sleeps instead."

_NEXT_STEPS: Mapping[str, str] = {
    Reason.OVER_BUDGET: f"{_SEE} Wait for that, or raise the cap (`manage.py settings --set dailyCap=N`,"
    f" weeklyCap=N or monthlyCap=N); {_AGAIN}",
    Reason.SOFT_HOLD: f"{_SEE} Wait for that, raise or remove the soft hold (`manage.py settings --set"
    f" softHoldPct=N`, or the variable PI_SOFT_HOLD_PCT), or raise the cap; {_AGAIN}",
    Reason.SCOPE_CAP: f"{_SEE} Wait for that, or raise it in the file of PI_SCOPED_LIMITS_FILE; {_AGAIN}",
    Reason.DAILY_TOKEN_CAP: f"{_SEE} Wait for that, or raise it (`manage.py settings --set"
    f" dailyTokenCap=N`); {_AGAIN}",
}


def next_step(reason: str | None) -> str:
    """Say what to do after a refusal for this reason; empty where nothing is known beyond its sentence."""
    return _NEXT_STEPS.get(reason or "", "")
