"""Whether the image of a job is here and says that it can do what the job needs (E 2.1).

Asked anew for each job: an image that is built or removed at noon counts at once. Only presence and labels
are looked at, never the contents; a missing image is a refusal, a silent engine is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runs.outcome import InfraFault, Reason, Refusal
from runs.protocols import EngineSilentError, ImageFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a job asks of its image.

    `any_uid` because it runs as a user that we pass, not as the image's; None while that is not known yet:
    then nothing is concluded from the image's user.
    """

    kind: str
    commands: bool = False
    replicas: bool = False
    any_uid: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One capability that an image must declare for jobs that need it; an absent label declares nothing."""

    capability: str
    needed: Callable[[Needs], bool]
    reason: Reason


GATES = (
    Gate(
        capability="replicas",
        needed=lambda needs: needs.replicas,
        reason=Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED,
    ),
    Gate(
        capability="commands",
        needed=lambda needs: needs.commands,
        reason=Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED,
    ),
    Gate(
        capability="anyUid",
        needed=lambda needs: needs.any_uid is True,
        reason=Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED,
    ),
)


class Images(Protocol):
    """What the preflight asks of a backend (see `protocols.Backend`)."""

    def image(self, reference: str) -> ImageFacts | None:
        """Look it up; None when it is not there."""
        ...


def is_reference(text: str) -> bool:
    """Whether an image can be called so: not blank, nothing around it, no option of a command line."""
    return bool(text) and text == text.strip() and not text.startswith("-")


def check_image(backend: Images, reference: str, needs: Needs) -> ImageFacts | Refusal:
    """Look once and answer what the image is, or the first reason why this job may not have it.

    Raises InfraFault when the engine gave no answer.
    """
    if not is_reference(reference):
        return Refusal(Reason.CONFIG_REFUSED, "image-reference")
    try:
        facts = backend.image(reference)
    except EngineSilentError as silence:
        raise InfraFault(Reason.CONTAINER_NEVER_STARTED, detail=silence.token) from silence
    if facts is None:
        return Refusal(Reason.JOB_IMAGE_MISSING, image=reference)
    return judge_image(reference, facts, needs) or facts


def judge_image(reference: str, facts: ImageFacts, needs: Needs) -> Refusal | None:
    """Judge facts that were read already; None when nothing speaks against them."""
    # The forges label excludes, and without it every forge is admitted; capabilities include.
    if needs.kind != "local" and facts.forges is not None and needs.kind not in facts.forges:
        return _unsupported(Reason.JOB_IMAGE_FORGE_UNSUPPORTED, reference, needs, facts.forges)
    declared = facts.capabilities or frozenset()
    for gate in GATES:
        if gate.needed(needs) and gate.capability not in declared:
            return _unsupported(gate.reason, reference, needs, declared)
    if needs.any_uid is False and _is_root(facts.user):
        # No container runs as root, so an image that names no other user gets none of ours (D18).
        return Refusal(Reason.JOB_USER_UNMAPPABLE, "image-user-is-root", image=reference)
    return None


def _unsupported(reason: Reason, reference: str, needs: Needs, declared: frozenset[str]) -> Refusal:
    return Refusal(reason, image=reference, kind=needs.kind, declared=tuple(sorted(declared)))


def _is_root(user: str) -> bool:
    return user.partition(":")[0].strip() in {"", "0", "root"}
