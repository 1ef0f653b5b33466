"""How a job ended, in sentences for the person who waited for it, with what to do where that is known."""

from __future__ import annotations

from dispatch.console.follow import Ending
from dispatch.console.remedies import next_step
from runs import wording
from runs.outcome import Outcome, Reason
from runs.provider import advice


def explained(ending: Ending, *, image: str) -> str:
    """Say what the outcome and its reason mean; `image` is the one that the job asks for on this host.

    Names, never a value: the variables of a provider, the reference of an image.
    """
    said = _remedy(ending, image) or wording.reason_sentence(ending.reason)
    return " ".join(filter(None, (wording.outcome_sentence(ending.outcome), said, next_step(ending.reason))))


def _remedy(ending: Ending, image: str) -> str | None:
    """Say what to do; None where nothing special is known, as of another host, whose record is not here."""
    record = ending.record
    if record is None:
        return None
    if ending.reason == Reason.PROVIDER_UNCONFIGURED and record.provider:
        return advice(record.provider)
    if ending.reason == Reason.JOB_IMAGE_MISSING:
        return (
            f"Image {image!r} is not on this host, and no job pulls one: `make image` builds pi-job:latest;"
            " to use another, name it with --image or PI_JOB_IMAGE."
        )
    if ending.reason in {None, Reason.RUNNER_POLICY} and ending.outcome is not Outcome.COMPLETED:
        return (
            f"{wording.reason_sentence(ending.reason)} The worker's line container_exit has the runner's word"
            f" for it; with PI_CAPTURE_JOB_LOGS=1, `manage.py logs {record.job_id}` shows what it printed."
        ).strip()
    return None
