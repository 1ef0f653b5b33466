"""Whether every worker has taken over what stands in an operator's file: the file against the registry."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dispatch.console.fleet_words import named
from dispatch.console.instants import span
from hosts.rows import HostRow, Presence

# Two looks at the file, and the beat that tells of it.
PATIENCE_MS = 30_000


class Step(StrEnum):
    """What the worker of a host has of the file: this version, another one (which may yet change), none."""

    HAS = "has it"
    OTHER = "another version"
    WAITING = "not said so yet"
    NONE = "reads none"


class Tone(StrEnum):
    """How much it asks for a person, as the colours of a page say."""

    GOOD = "good"
    CALM = "calm"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A file that workers follow: what a person calls it, its variable, and where a host tells its digest.

    `is_always_read`: no worker does without, so that one that tells no digest found no file yet. `soon`: what
    is still to come of a new version right after several have taken it over.
    """

    what: str
    variable: str
    value_of: Callable[[HostRow], str]
    is_always_read: bool = False
    soon: str = ""


TRIGGERS = Followed(
    what="triggers file",
    variable="PI_TRIGGERS_FILE",
    value_of=lambda row: row.fp_triggers,
    # Hosts tell the digest first: none puts anything in before it has seen that the others agree.
    soon="Each puts its schedules in within seconds: until then the list may name only some of the hosts.",
)
SETTINGS = Followed(
    what="settings file",
    variable="PI_SETTINGS_FILE",
    value_of=lambda row: row.fp_settings,
    is_always_read=True,
)
WINDOWS = Followed(what="pause windows", variable="PI_PAUSE_WINDOWS_FILE", value_of=lambda row: row.fp_pause)
LIMITS = Followed(what="scoped limits", variable="PI_SCOPED_LIMITS_FILE", value_of=lambda row: row.fp_limits)


@dataclass(frozen=True, slots=True)
class Taken:
    """What one host that is there has; `is_own`: it is the host whose file this is."""

    host: str
    step: Step
    presence: Presence
    is_own: bool

    @property
    def tone(self) -> Tone:
        """Green for who has it; what else there is may be meant."""
        return {Step.HAS: Tone.GOOD, Step.WAITING: Tone.CALM}.get(self.step, Tone.WARN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Who of the hosts that are there has this version of the file.

    `own` is the host whose file it is, None where nobody tells; `age_ms` how long the file has been like
    that, None where that is unknown.
    """

    followed: Followed
    hosts: tuple[Taken, ...]
    own: str | None
    age_ms: int | None

    @property
    def is_complete(self) -> bool:
        """Whether every worker that is there has it, and there is one."""
        return bool(self.hosts) and all(one.step is Step.HAS for one in self.hosts)

    @property
    def is_settling(self) -> bool:
        """Whether the file is so new that workers are still to take it over."""
        return any(one.step is Step.WAITING for one in self.hosts)

    @property
    def is_overdue(self) -> bool:
        """Whether the worker of the file's own host had the time to take it over, and has not."""
        late = not is_fresh(self.age_ms)
        return late and any(one.is_own and one.step is not Step.HAS for one in self.hosts)

    @property
    def tone(self) -> Tone:
        """The colour of the whole."""
        if self.is_complete:
            return Tone.GOOD
        if self.is_overdue or not self.hosts:
            return Tone.BAD
        in_time = all(one.step in {Step.HAS, Step.WAITING} for one in self.hosts)
        return Tone.CALM if self.is_settling and in_time else Tone.WARN

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say who has it, who has not, and what is to be done."""
        if not self.hosts:
            return ("No worker is there, so none has taken it over; each does when it starts.",)
        if self.is_complete:
            alone = len(self.hosts) == 1
            who = f"The worker of {self.hosts[0].host}" if alone else f"Every worker ({len(self.hosts)})"
            soon = self.followed.soon if is_fresh(self.age_ms) and not alone else ""
            return (f"{who} has taken this version over.", *([soon] if soon else []))
        return (*self._of_own(), *self._of_others())

    def _of_own(self) -> Iterable[str]:
        own = next((one for one in self.hosts if one.is_own), None)
        if own is None:
            if self.own:
                yield f"The worker of this host ({self.own}) is not there; it takes it over when it starts."
        elif own.step is Step.HAS:
            yield f"The worker of this host ({own.host}) has taken this version over."
        elif own.step is Step.NONE:
            yield (
                f"The worker of this host ({own.host}) reads no such file: what stands here does nothing."
                f" Set {self.followed.variable} for it, to the same path as for this site, and restart it."
            )
        elif own.step is Step.WAITING:
            yield f"The worker of this host ({own.host}) has not said so yet; give it half a minute."
        else:
            since = f" for {span(self.age_ms)}" if self.age_ms is not None else ""
            yield (
                f"The worker of this host ({own.host}) has not taken this version over{since}. It reads"
                f" another file (compare {self.followed.variable} there and here), or its log says why not."
            )

    def _of_others(self) -> Iterable[str]:
        others = [one for one in self.hosts if not one.is_own]
        if have := [one.host for one in others if one.step is Step.HAS]:
            yield f"{named(have)} {_verb(have, 'has', 'have')} this version."
        if other := [one.host for one in others if one.step is Step.OTHER]:
            yield (
                f"{named(other)} {_verb(other, 'has', 'have')} another version: the file is this host's"
                " alone; bring it to the other hosts, too, if that is meant."
            )
        if waiting := [one.host for one in others if one.step is Step.WAITING]:
            yield f"{named(waiting)} {_verb(waiting, 'has', 'have')} not said so yet."
        if none := [one.host for one in others if one.step is Step.NONE]:
            yield f"{named(none)} {_verb(none, 'reads', 'read')} no such file."


def digest_of(content: bytes | None) -> str:
    """Make of a file's content what hosts publish of it; blank where there is no file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()[:16]


def judge(
    rows: Sequence[HostRow], digest: str, followed: Followed, *, own: str | None, age_ms: int | None
) -> Adoption:
    """Compare what hosts say with the file's digest; rows of hosts that are gone do not count.

    `own` is the declared name of the file's host; without one it is the only host that is there.
    """
    there = sorted((row for row in rows if row.presence is not Presence.GONE), key=lambda row: row.name)
    if own is None and len(there) == 1:
        own = there[0].name
    hosts = tuple(
        Taken(row.name, _step(followed, row, digest, age_ms), row.presence, row.name == own) for row in there
    )
    return Adoption(followed=followed, hosts=hosts, own=own, age_ms=age_ms)


def is_fresh(age_ms: int | None) -> bool:
    """Whether workers may not have had the time yet to take over a file of this age."""
    return age_ms is not None and age_ms < PATIENCE_MS


def _step(followed: Followed, row: HostRow, digest: str, age_ms: int | None) -> Step:
    said = followed.value_of(row)
    if said == digest:
        return Step.HAS
    if said or followed.is_always_read:
        return Step.WAITING if is_fresh(age_ms) else Step.OTHER
    return Step.NONE


def _verb(hosts: Sequence[str], one: str, several: str) -> str:
    return one if len(hosts) == 1 else several
