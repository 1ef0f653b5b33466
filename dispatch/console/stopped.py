"""How far a request to stop has come, as values: what is shown of it follows from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dispatch.console.queues import REGISTRY
from dispatch.queue.containers import Begun
from hosts.stops import Confirmed, StopRequest

# What could not be read, beside the sources of names that `read_queues` has.
SCAN = "scan"
VALKEY = "valkey"


class Why(StrEnum):
    """Why a container is not confirmed as gone."""

    STOPPING = "stopping"
    UNANSWERED = "unanswered"
    HOST_SILENT = "host-silent"
    HOST_UNKNOWN = "host-unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """One container that had begun. `host` is None where nobody knows whose `host_id` it is.

    `why` says why it is unconfirmed: its host is STOPPING it, has UNANSWERED the request so far, is SILENT or
    UNKNOWN. `silent_ms` is the age of the host's last beat; None: nobody knows.
    """

    host: str | None
    host_id: str
    container: Begun
    state: Confirmed
    why: Why | None = None
    silent_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """How far it has come. `only` is the one host that was asked (None: the fleet), `asked` are all.

    `is_known` says whether `only` was ever heard of. `gaps` has what could not be read, each with a token:
    there may be more hosts than are named here. `is_blind`: there may be more containers, too.
    """

    only: str | None
    is_known: bool
    request: StopRequest
    asked: tuple[str, ...]
    fates: tuple[Fate, ...]
    gaps: Mapping[str, str]
    seconds: float

    @property
    def unconfirmed(self) -> tuple[Fate, ...]:
        """The containers whose end nobody has confirmed."""
        return tuple(one for one in self.fates if one.state is Confirmed.UNCONFIRMED)

    @property
    def is_blind(self) -> bool:
        """Whether the lists of containers were not all to be had."""
        return VALKEY in self.gaps or {SCAN, REGISTRY} <= self.gaps.keys()

    @property
    def is_proven(self) -> bool:
        """Whether all that had begun is confirmed as gone."""
        return not (self.unconfirmed or self.is_blind)
