"""The merged history: rows of this host's table and what was read of the fleet's mirror."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runs import history, rows
from runs.history import Facet
from runs.merging import Mirrored, Standing, merged
from runs.models import Run
from runs.record import DamagedRecordError, Record

_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Records, latest end first; `unreadable` rows of the table hold what this version does not know."""

    records: Sequence[Record]
    standing: Standing
    unreadable: int = 0


def history_of(mirrored: Mirrored, *, facets: Mapping[Facet, str], limit: int) -> History:
    """Merge mirrored records and the table: each job's newest, of these the ones with the values asked for.

    Raises Django's DatabaseError.
    """
    wanted = _judge(facets)
    # Of the table's newest each may turn out to be outdated by a mirrored one, which is not wanted then.
    found = {run.job_id: run for run in history.newest(dict(facets), size=limit + len(mirrored.records))}
    # The other way round: a mirrored run may have come to something else by this host's own word.
    found |= _by_id(record.job_id for record in mirrored.records if wanted(record))
    local = [record for record in map(_record, found.values()) if record is not None]
    return History(
        records=merged(local, mirrored.records, limit=limit, wanted=wanted),
        standing=mirrored.standing,
        unreadable=len(found) - len(local),
    )


def _judge(facets: Mapping[Facet, str]) -> Callable[[Record], bool]:
    return lambda record: all(getattr(record, facet.value) == value for facet, value in facets.items())


def _by_id(job_ids: Iterable[str]) -> dict[str, Run]:
    ids = list(job_ids)
    found: dict[str, Run] = {}
    for start in range(0, len(ids), _IDS_AT_ONCE):
        found |= Run.objects.in_bulk(ids[start : start + _IDS_AT_ONCE])
    return found


def _record(run: Run) -> Record | None:
    try:
        return rows.record_of(run)
    except DamagedRecordError:
        return None
