"""Checks of the fleet: the rules of `fleet`, and how this host stands in it. Silent on a single host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dispatch.console.findings import Finding, Mark
from dispatch.console.fleet_doubles import SHARED_NAME, SHARED_STATE
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.fleet_findings import WITHOUT_QUEUE, warnings
from dispatch.console.fleet_words import AREA, named
from hosts.identity import StateDirectory
from hosts.rows import Presence, Unreachable

_MOST_NAMED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What this host is: its name (None: the one that is set is wrong), the id of its state directory.

    The id is blank where there is none yet, None where it cannot be read.
    """

    name: str | None
    is_declared: bool
    host_id: str | None = None


def own_host_id(state_dir: Path) -> str | None:
    """Read the id of the state directory; blank when no worker has made one, None when it cannot be read."""
    try:
        return StateDirectory(state_dir).host_id_file.read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeError):
        return None


def look(facts: FleetFacts, own: Own) -> Iterator[Finding]:
    """Judge the fleet; nothing is said where there is one host and nothing is wrong."""
    if isinstance(facts.roster, Unreachable):
        yield AREA.failed(
            "registry",
            f"which hosts there are cannot be told: no registry is readable ({facts.roster.reason})",
            "Where it says wrong-type, delete the key host:live in Valkey: hosts are back within seconds.",
        )
    else:
        peers = tuple(row.name for row in facts.rows if row.name != own.name)
        if own.is_declared or peers:
            yield _listed(facts, own)
        if peers and own.name and not own.is_declared:
            yield AREA.warning(
                "name-not-declared",
                f"there are other hosts ({named(peers)}), and this one has no declared name",
                "Set PI_WORKER_NAME on every host: only then has each a queue of its own, and do bounds hold"
                " for all of them together.",
                hosts=peers,
            )
        yield from _taken_name(facts, own)
    yield from (_of_ours(finding, own) for finding in warnings(facts) if not _is_told(finding, own))


def _is_told(finding: Finding, own: Own) -> bool:
    """Tell whether it says of this host alone what its undeclared name was said to bring."""
    return finding.check == WITHOUT_QUEUE and finding.hosts == (own.name,) and not own.is_declared


def _of_ours(finding: Finding, own: Own) -> Finding:
    """Make it a failure that another machine is this host too: it keeps this one from its work."""
    if finding.check in (SHARED_NAME, SHARED_STATE) and own.name in finding.hosts:
        return replace(finding, mark=Mark.FAILED)
    return finding


def _listed(facts: FleetFacts, own: Own) -> Finding:
    live = [row.name for row in facts.known.live]
    if not live:
        return AREA.warning("hosts", "no host is live", "Start their workers: `manage.py runworker`.")
    absent = f"; {own.name}, which is this one, is not" if own.name and own.name not in live else ""
    count = "1 host is live" if len(live) == 1 else f"{len(live)} hosts are live"
    return AREA.ok("hosts", f"{count}: {named(live, most=_MOST_NAMED)}{absent}")


def _taken_name(facts: FleetFacts, own: Own) -> Iterator[Finding]:
    """Find another host under our name: a worker of this state directory would not start beside it."""
    row = next((row for row in facts.known.hosts if row.name == own.name), None)
    if row is None or row.presence is Presence.GONE or not row.host_id or own.host_id is None:
        return
    if not own.host_id:
        yield AREA.warning(
            "name-taken",
            f"a worker named {row.name} runs, and not from this state directory, which has had no worker",
            "On the worker's own machine run this as its user, with its PI_STATE_DIR; on another one set"
            " another PI_WORKER_NAME.",
            hosts=(row.name,),
        )
    elif row.host_id != own.host_id:
        yield AREA.failed(
            "name-taken",
            f"another machine, or another state directory, works under the name {row.name}",
            "Give one of the two another PI_WORKER_NAME: a second worker of one name does not start.",
            hosts=(row.name,),
        )
