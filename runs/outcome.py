"""What became of an attempt: the closed vocabularies of records, and the values that carry a decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The three ends of Q 2.5."""

    COMPLETED = "completed"
    POLICY = "policy"
    FAILED = "failed"


class Reason(StrEnum):
    """The closed vocabulary of `reason` (Q 2.5 and contracts 7); never a message."""

    # refusals: policy, nothing was paid
    JOB_MALFORMED = "job-malformed"
    NOT_AVAILABLE = "not-available"
    JOB_IMAGE_MISSING = "job-image-missing"
    JOB_IMAGE_FORGE_UNSUPPORTED = "job-image-forge-unsupported"
    JOB_IMAGE_REPLICAS_UNSUPPORTED = "job-image-replicas-unsupported"
    JOB_IMAGE_COMMANDS_UNSUPPORTED = "job-image-commands-unsupported"
    JOB_IMAGE_ANY_UID_UNSUPPORTED = "job-image-any-uid-unsupported"
    JOB_USER_UNMAPPABLE = "job-user-unmappable"
    PROVIDER_UNCONFIGURED = "provider-unconfigured"
    CONFIG_REFUSED = "config-refused"
    PI_TOO_MANY_FILES = "pi-too-many-files"
    PI_FILE_TOO_LARGE = "pi-file-too-large"
    PI_TOO_LARGE = "pi-too-large"
    PI_PATH_COLLISION = "pi-path-collision"
    SETTINGS_OVERLAY_INVALID = "settings-overlay-invalid"
    WAIT_SUPERSEDED = "wait-superseded"
    WAIT_EXPIRED = "wait-expired"
    WAIT_UNREADABLE = "wait-unreadable"
    WAIT_PROFILE_UNKNOWN = "wait-profile-unknown"
    WAIT_AFTER_BEYOND_MAX = "wait-after-beyond-max"
    WAIT_REFUSED = "wait-refused"
    WAIT_UNANSWERABLE = "wait-unanswerable"
    ONCE_ALREADY_SPENT = "once-already-spent"
    DAILY_TOKEN_CAP = "daily-token-cap"  # noqa: S105 - tokens of a model
    OVER_BUDGET = "over-budget"
    SOFT_HOLD = "soft-hold"
    SCOPE_CAP = "scope-cap"
    # ends of a container that ran: policy
    WORKER_ABORT = "worker-abort"
    RUNNER_POLICY = "runner-policy"
    DEADLINE = "deadline"
    OPERATOR_CANCEL = "operator-cancel"
    OPERATOR_STOP = "operator-stop"
    # failures
    CONTAINER_NEVER_STARTED = "container-never-started"
    CONTAINER_DETACHED = "container-detached"
    STALLED = "stalled"
    WORKER_LOST = "worker-lost"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A determinate "no": recorded as policy, never retried.

    All but `reason` is for the log (Q 14): `detail` is a token of ours, the rest are the operator's own
    references by name. `declared` is what the image says of itself about what was asked, `said` what else the
    event of this refusal tells.
    """

    reason: Reason
    detail: str | None = None
    _: KW_ONLY
    image: str | None = None
    kind: str | None = None
    declared: tuple[str, ...] | None = None
    provider: str | None = None
    said: Mapping[str, object] = field(default_factory=dict)


class InfraFault(Exception):  # noqa: N818 - a fault is the word of the specification
    """Could not run or could not tell: tried again while attempts remain.

    `reason` goes into the record (None = a failure without a token), `detail` into the log: a token, no text.
    """

    def __init__(self, reason: Reason | None = None, *, detail: str | None = None) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(detail or (reason.value if reason else "infra"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How an attempt ended: what the record says, whether it may be tried again, whether it is paid back."""

    outcome: Outcome
    reason: Reason | None = None
    retry: bool = False
    refund: bool = False
