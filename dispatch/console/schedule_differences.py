"""Which schedules are otherwise on hosts that disagree: the file of this host against the tables of others.

Nobody can read another host's file. What it has installed is the nearest to it; as long as hosts disagree
that is what stood there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dispatch.console.fleet_words import named
from dispatch.console.schedule_comparison import Schedules, differing
from dispatch.console.schedule_facts import Line, TableLook
from dispatch.console.schedule_states import besides
from dispatch.console.triggers_file import VARIABLE, TriggersFile
from dispatch.schedules.fingerprint import fingerprint
from dispatch.schedules.missed import MissedReason
from hosts import names
from hosts.rows import HostRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """The live hosts whose schedules are not those of this host's file, and what of each differs, by id."""

    hosts: tuple[str, ...] = ()
    differences: Mapping[str, str] = field(default_factory=dict)

    def told(self, line: Line) -> Line:
        """Tell of a schedule that it differs: nothing of that is taken over, which somebody has to end."""
        said = self.differences.get(line.id)
        if said is None:
            return line
        both = f"Bring the files of {VARIABLE} here and on {named(self.hosts)} to the same state; until then"
        return replace(
            line,
            state=line.state if line.is_alarm else MissedReason.REFUSED.value,
            words="; ".join(filter(None, (besides(line.words), said))),
            remedy=line.remedy or f"{both} nothing is put in or taken out.",
        )


def disagreement(file: TriggersFile, rows: Iterable[HostRow], looks: Iterable[TableLook]) -> Disagreement:
    """Find them; none where the file does not load, or while everybody has the same."""
    others = _others(file, list(rows))
    if not others:
        return Disagreement()
    tables = {look.queue.queue: _schedules(look) for look in looks}
    own = tables.get(file.queue, {})
    theirs = {
        row.name: tables.get(names.host_queue(row.name) if row.routes else names.SHARED_QUEUE, {})
        for row in others
    }
    found = dict(differing(file.schedules, own, theirs))
    return Disagreement(hosts=tuple(theirs), differences=found)


def _others(file: TriggersFile, rows: list[HostRow]) -> list[HostRow]:
    mine = fingerprint(file.triggers.cron if file.triggers else None, zone=file.zone)
    is_alone = file.name is None and len({row.fp_cron for row in rows if row.fp_cron}) < 2
    if not mine or is_alone:
        # The worker of a host without a declared name may only not have looked at its file yet.
        return []
    return [row for row in rows if row.fp_cron not in {"", mine} and row.name != file.name]


def _schedules(look: TableLook) -> Schedules:
    return {name: one.schedule for name, one in look.installed.items() if one.schedule and one.torn is None}
