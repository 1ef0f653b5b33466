"""How far a request to stop has come, as values: what is shown of it follows from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dispatch.queue import keys
from dispatch.queue.containers import Begun
from hosts.stops import Confirmed, StopRequest

# What could not be seen, beside the sources of names that `read_queues` has and single lists of containers:
# what Valkey said last, some of its keys, that the switch still holds, whose a host-id is.
VALKEY = "valkey"
SCAN = "scan"
SWITCH = "switch"
SHARED = "host-id"
_LIST = keys.containers("")
_STARTED = keys.queue_keys("").started


class Why(StrEnum):
    """Why a container is not confirmed as gone."""

    STOPPING = "stopping"
    UNANSWERED = "unanswered"
    HOST_SILENT = "host-silent"
    HOST_UNKNOWN = "host-unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """One container that had begun. `host` is None where nobody knows whose `host_id` it is.

    One without a name stands for a job that runs though no list names its container: the list was lost.

    `why` says why it is unconfirmed: its host is STOPPING it, has UNANSWERED the request so far, is SILENT or
    UNKNOWN. `silent_ms` is the age of the host's last beat; None: nobody knows.
    """

    host: str | None
    host_id: str
    container: Begun
    state: Confirmed
    why: Why | None = None
    silent_ms: int | None = None

    @property
    def place(self) -> str:
        """Where it is, as far as anybody knows."""
        return self.host or self.host_id or "?"


def hides_containers(gap: str) -> bool:
    """Tell whether something may run unseen because of this gap; else only a host may be missing."""
    return gap in (VALKEY, SCAN, SWITCH, SHARED) or gap.startswith((_LIST, _STARTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """How far it has come. `only` is the one host that was asked (None: the fleet), `asked` are all.

    `is_known` says whether `only` was ever heard of: where not, nothing is proven, whoever was meant. `over`
    counts containers that are left out because they ended themselves long ago. `gaps` has what could not be
    seen, each with a token.
    """

    only: str | None
    is_known: bool
    request: StopRequest
    asked: tuple[str, ...]
    fates: tuple[Fate, ...]
    over: int = 0
    gaps: Mapping[str, str]
    seconds: float

    @property
    def unconfirmed(self) -> tuple[Fate, ...]:
        """The containers whose end nobody has confirmed."""
        return tuple(one for one in self.fates if one.state is Confirmed.UNCONFIRMED)

    @property
    def unread_lists(self) -> tuple[str, ...]:
        """The host-ids whose lists of containers could not be read."""
        return tuple(gap.removeprefix(_LIST) for gap in self.gaps if gap.startswith(_LIST))

    @property
    def is_blind(self) -> bool:
        """Whether there may be containers that are not among the fates."""
        return any(map(hides_containers, self.gaps))

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to wait for."""
        return not (self.unconfirmed or self.is_blind)

    @property
    def is_proven(self) -> bool:
        """Whether all that had begun is confirmed as gone."""
        return self.is_over and self.is_known
