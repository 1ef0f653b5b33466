"""Where `run` puts a job: on this host's queue, or where something is that it needs (Q 7.2, 7.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dispatch.console.instants import span
from dispatch.jobs import JobData
from dispatch.operator_files.problems import shown
from hosts import capabilities
from hosts.names import SHARED_QUEUE, host_queue
from hosts.routing import Why, decide
from hosts.rows import HostRow, Presence, Roster, Unreachable
from pidispatch_site.conf import Config
from pidispatch_site.errors import OperationalError

# Hosts that a person still reads; more are counted.
_MOST_TOLD = 8
_SAME_FOLDER = "the folder must be the same one there, at the same place"


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The host that the command runs on: its name, the queue of its jobs, what its settings declare."""

    name: str
    queue: str
    caps: frozenset[str]

    @property
    def has_own_queue(self) -> bool:
        """Whether it is a host of a fleet."""
        return self.queue != SHARED_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The queue that a job goes to, and why, in a sentence for a person (None: there was no choice).

    `needs` are the capabilities that were asked for by name: a later move has to heed them too. `job` is the
    job as that host has it, where it is not what was asked for letter by letter.
    """

    queue: str
    note: str | None = None
    needs: frozenset[str] = frozenset()
    job: JobData | None = None


def here(config: Config) -> Here:
    """Describe this host by its settings; with a name of its own its jobs stay on it."""
    return Here(
        name=config.worker_name,
        queue=host_queue(config.worker_name) if config.worker_name_declared else SHARED_QUEUE,
        caps=frozenset(capabilities.tokens(config.secret_profiles, config.wait_profiles)),
    )


def misnamed(needs: Sequence[str]) -> tuple[str, ...]:
    """List what is wrong with the needs as a person wrote them."""
    return tuple(
        f"--needs {shown(text)} is no capability; allowed is {capabilities.RULE}"
        for text in needs
        if not capabilities.is_token(text)
    )


def chosen(roster: Roster | Unreachable, this: Here, needs: Collection[str], job_id: str) -> Destination:
    """Choose the queue of a job that needs something, by what live hosts have; this one's folder comes first.

    OperationalError when nobody is known to have it; what this host's settings declare counts only while
    nothing is known of its worker.
    """
    rows = roster.hosts if isinstance(roster, Roster) else ()
    what = ", ".join(sorted(needs))
    ours = next((row for row in rows if row.name == this.name and row.presence is Presence.ALIVE), None)
    if ours is not None and this.has_own_queue and ours.routes and ours.caps.issuperset(needs):
        return _on_host(ours, this, what)
    found = decide(rows, needs, job_id)
    match found.why:
        case Why.HOST:
            return _on_host(next(row for row in rows if row.name == found.host), this, what)
        case Why.ALL_HAVE_IT | Why.NO_OWN_QUEUE:
            live = [row for row in rows if row.presence is Presence.ALIVE]
            return _on_shared(live, this, needs, what)
        case _:
            return _on_this(roster, this, needs, what)


def unasked(roster: Roster | Unreachable, this: Here) -> Destination:
    """Choose the queue of a job for which nothing was asked, and tell who else takes from a shared one."""
    others = [row for row in roster.live if row.name != this.name] if isinstance(roster, Roster) else []
    if this.has_own_queue or not others:
        return Destination(queue=this.queue)
    takers = _cut([f"{row.name} (drained)" if row.draining else row.name for row in others], ", ")
    notes = [
        f"The job goes to the shared queue {SHARED_QUEUE}, and other hosts take from it too: {takers}",
        _SAME_FOLDER,
        "with PI_WORKER_NAME set, for its worker and for this command, this host has a queue of its own",
    ]
    return Destination(queue=SHARED_QUEUE, note=f"{'; '.join(notes)}.")


def _on_host(row: HostRow, this: Here, what: str) -> Destination:
    queue = host_queue(row.name)
    elsewhere = row.name != this.name
    notes = [
        f"The job goes to {queue}: {f'host {row.name}' if elsewhere else 'this host'} has {what}",
        *([_SAME_FOLDER] if elsewhere else []),
        *([f"it takes nothing until `manage.py undrain {row.name}`"] if row.draining else []),
    ]
    return Destination(queue=queue, note=f"{'; '.join(notes)}.")


def _on_shared(live: Sequence[HostRow], this: Here, needs: Collection[str], what: str) -> Destination:
    capable = [row.name for row in live if row.caps.issuperset(needs)]
    why = f"every live host has {what}"
    if len(capable) < len(live):
        have = f"who has {what} ({_cut(capable, ', ')}) has no queue of their own"
        why = f"{have}, so another host may take the job"
    notes = [
        f"The job goes to the shared queue {SHARED_QUEUE}: {why}",
        *([_SAME_FOLDER] if any(row.name != this.name for row in live) else []),
    ]
    return Destination(queue=SHARED_QUEUE, note=f"{'; '.join(notes)}.")


def _on_this(roster: Roster | Unreachable, this: Here, needs: Collection[str], what: str) -> Destination:
    """Let it wait for this host's worker if its settings have what is needed and no live host does."""
    live: tuple[HostRow, ...] = ()
    if isinstance(roster, Roster):
        live, why = roster.live, f"No live host has {what}"
    else:
        why = f"The registry of hosts cannot be read ({roster.reason})"
    # A live worker's own word counts more than the settings; and whoever lives takes from the shared queue.
    waits_for_us = all(row.name != this.name for row in live) if this.has_own_queue else not live
    if waits_for_us and this.caps.issuperset(needs):
        goes = f"the job goes to {this.queue} and waits for its worker"
        return Destination(queue=this.queue, note=f"{why}. This host's settings have {what}: {goes}.")
    told = [f"{why}; nothing was enqueued."]
    told += _who_has_what(roster, needs) if isinstance(roster, Roster) else ["Try again."]
    told.append(f"Without --needs the job would go to {this.queue}.")
    raise OperationalError("\n".join(told))


def _who_has_what(roster: Roster, needs: Collection[str]) -> list[str]:
    nearest = sorted(roster.live, key=lambda row: (-len(row.caps.intersection(needs)), row.name))
    here_now = [f"{row.name} has {_cut(sorted(row.caps), ', ') or 'nothing'}" for row in nearest]
    silent = [
        f"{row.name} has it and was last heard {span(row.stale_ms)} ago"
        for row in roster.hosts
        if row not in roster.live and row.caps.issuperset(needs) and row.stale_ms is not None
    ]
    return [
        f"Live hosts: {_cut(here_now, '; ') or 'none'}.",
        *([f"{_cut(silent, '; ')}."] if silent else []),
        "A host has what PI_SECRET_PROFILES (s:) and PI_WAIT_PROFILES (w:) named when its worker started.",
    ]


def _cut(parts: Sequence[str], between: str) -> str:
    more = len(parts) - _MOST_TOLD
    return between.join([*parts[:_MOST_TOLD], *([f"{more} more"] if more > 0 else [])])
