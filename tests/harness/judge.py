"""What must hold once all jobs have ended, whatever was killed, frozen or cut off meanwhile."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runs.container import container_name
from runs.workspace.scope import hash16
from tests.harness.engine_witness import Life
from tests.harness.evidence import Evidence, JobEvidence
from tests.harness.forge_jobs import repository
from tests.harness.ground import Span

_OVER = frozenset({"finished", "failed"})


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that must not be: which rule, and what was seen."""

    rule: str
    seen: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.seen}"


Rule = Callable[[Evidence], Iterator[str]]
# When it began and ended, and whose it was.
Interval = tuple[float, float, str]


def judge(evidence: Evidence, *, without: Collection[Rule] = ()) -> list[Violation]:
    """List everything that does not hold, but for the rules that a test has no evidence for."""
    rules = (rule for rule in RULES if rule not in without)
    return [Violation(rule.__name__, seen) for rule in rules for seen in rule(evidence)]


def none_lost(evidence: Evidence) -> Iterator[str]:
    """Each job has ended, stands in the registry of its end and queue and nowhere else; nobody has it."""
    for job in evidence.jobs:
        if job.status not in _OVER:
            yield f"{job.job_id} is {job.status or 'gone'}, in {', '.join(job.places) or 'no place'}"
        elif job.places != (f"rq:{job.status}:{job.queue}",) or job.owned:
            yield f"{job.job_id} is {job.status}, in {', '.join(job.places)}{', owned' * job.owned}"


def one_final_record(evidence: Evidence) -> Iterator[str]:
    """Each job has one final record of its one end; file and row say the same.

    Another host may keep what it knows of an earlier attempt.
    """
    for job in evidence.jobs:
        finals = [record for record in job.files if record["final"]]
        if len(finals) != 1 or len(job.files) > evidence.hosts or job.results != 1:
            yield f"{job.job_id}: {len(job.files)} files, {len(finals)} of them final, {job.results} ends"
            continue
        if sorted(map(_text, job.files)) != sorted(map(_text, job.rows)):
            yield f"{job.job_id}: files and rows differ: {job.files} and {job.rows}"
        if any(record["attempt"] > finals[0]["attempt"] for record in job.files):
            yield f"{job.job_id}: a record of an attempt after the final one"
        if (finals[0]["outcome"] == "failed") != (job.status == "failed"):
            yield f"{job.job_id} is {job.status}, its record says {finals[0]['outcome']}"


def mirrored_as_recorded(evidence: Evidence) -> Iterator[str]:
    """The fleet sees of each job its final record, if it sees records at all.

    What the mirror did not take is missing there, and its host has said so.
    """
    is_whole = any(job.mirrored for job in evidence.jobs) and not evidence.unmirrored
    for job in evidence.jobs:
        is_right = any(record["final"] and record == job.mirrored for record in job.files)
        if not is_right and (is_whole or job.mirrored):
            yield f"{job.job_id}: the fleet sees {job.mirrored}, the files say {job.files}"


def told_once(evidence: Evidence) -> Iterator[str]:
    """No end was told twice, and no attempt's failure."""
    for job in evidence.jobs:
        if any(times > 1 for times in Counter(job.told).values()):
            yield f"{job.job_id}: {job.told}"


def started_once(evidence: Evidence) -> Iterator[str]:
    """By the journals no attempt was started twice; a completed job ran to its end, once per attempt."""
    begins = defaultdict(list)
    for span in evidence.spans:
        begins[span.container].append(span)
    for job in evidence.jobs:
        attempts = _attempts(job)
        spans = begins[container_name(job.job_id)]
        if len(spans) > attempts:
            yield f"{job.job_id}: {len(spans)} starts in its folder's journal, {attempts} attempts"
        if _outcome(job) == "completed" and not (spans and spans[-1].end is not None):
            yield f"{job.job_id} is completed, but its folder's journal has no whole run"


def engine_started_once(evidence: Evidence) -> Iterator[str]:
    """By the engine's events no claim started two containers, and no job more than it had attempts."""
    if evidence.lives is None:
        return
    attempts = {job.job_id: _attempts(job) for job in evidence.jobs}
    starts = Counter((life.job_id, life.token) for life in evidence.lives for _ in life.started)
    for (job_id, token), times in starts.items():
        if times > 1:
            yield f"{job_id}: {times} starts under the claim {token}"
    for job_id, times in Counter(job_id for job_id, _ in starts).items():
        if times > attempts.get(job_id, 0):
            yield f"{job_id}: {times} containers started, {attempts.get(job_id)} attempts"


def one_job_per_folder(evidence: Evidence) -> Iterator[str]:
    """On one host, no two containers of a folder at any instant; of a repository see below."""
    repositories = {hash16(repository(folder)) for folder in evidence.bounds}
    by_scope: dict[tuple[str, str], list[Interval]] = defaultdict(list)
    for life in evidence.lives or ():
        if life.scope not in repositories:
            by_scope[life.host_id, life.scope] += _intervals_of(life)
    for (host_id, scope), found in by_scope.items():
        yield from _crowds(found, most=1, where=f"{scope} of {host_id}")
    if evidence.hosts == 1:
        by_folder: dict[str, list[Interval]] = defaultdict(list)
        for span in evidence.spans:
            if span.folder not in evidence.bounds:
                by_folder[span.folder].append(_interval_of(span))
        for folder, found in by_folder.items():
            yield from _crowds(found, most=1, where=folder)


def bounded_per_repository(evidence: Evidence) -> Iterator[str]:
    """In the whole fleet, no more containers of a repository at any instant than it may have."""
    for folder, most in evidence.bounds.items():
        if most is None:
            continue
        scope = hash16(repository(folder))
        spans = [_interval_of(span) for span in evidence.spans if span.folder == folder]
        yield from _crowds(spans, most=most, where=f"the journal of {folder}")
        lives = [life for life in evidence.lives or () if life.scope == scope]
        yield from _crowds(itertools.chain(*map(_intervals_of, lives)), most=most, where=folder)


def _intervals_of(life: Life) -> list[Interval]:
    return [(start, life.died or float("inf"), life.job_id) for start in life.started]


def _interval_of(span: Span) -> Interval:
    """One that was killed ended at an instant that only the engine knows."""
    return span.begin, span.begin if span.end is None else span.end, span.container


def _crowds(intervals: Iterable[Interval], *, most: int, where: str) -> Iterator[str]:
    """Tell of each instant at which one too many began; one that ends just then is over."""
    here: list[Interval] = []
    for begin, end, job in sorted(intervals):
        here = [other for other in here if other[1] > begin]
        if len(here) >= most:
            yield f"{', '.join(other[2] for other in here)} and {job} at once in {where}"
        here.append((begin, end, job))


def nothing_left(evidence: Evidence) -> Iterator[str]:
    """No container and no network of ours is left, no job directory and no half-written file."""
    yield from evidence.left


def queue_is_clean(evidence: Evidence) -> Iterator[str]:
    """No key is left of a job in hand, started, asleep or not yet recorded."""
    yield from evidence.dirty


def money_is_right(evidence: Evidence) -> Iterator[str]:
    """What was counted is what was granted; what is recorded as paid was; nothing started unpaid."""
    if evidence.counted != evidence.granted:
        yield f"the counters hold {evidence.counted} starts, {evidence.granted} are granted"
    containers = Counter(span.container for span in evidence.spans)
    lives = Counter(life.job_id for life in evidence.lives or () for _ in life.started)
    for job in evidence.jobs:
        starts = max(containers[container_name(job.job_id)], lives[job.job_id])
        if starts > len(job.grants):
            yield f"{job.job_id}: {starts} starts, paid for {sorted(job.grants)}"
        for record in job.files:
            paid, recorded = record["attempt"] in job.grants, record["budgetReserved"]
            # One that was lost in hand may have been paid for already; its record cannot know.
            if recorded != paid and record["reason"] != "worker-lost":
                yield f"{job.job_id}: recorded as reserved {recorded}, paid for {sorted(job.grants)}"


RULES: tuple[Rule, ...] = (
    none_lost,
    one_final_record,
    mirrored_as_recorded,
    told_once,
    started_once,
    engine_started_once,
    one_job_per_folder,
    bounded_per_repository,
    nothing_left,
    queue_is_clean,
    money_is_right,
)


def outcomes(evidence: Evidence) -> dict[str, int]:
    """Count the jobs by outcome and reason, for the line that a soak prints."""
    found = Counter(
        "/".join(filter(None, (record["outcome"], record["reason"])))
        for job in evidence.jobs
        for record in job.files
        if record["final"]
    )
    return dict(sorted(found.items()))


def shown(violations: Iterable[Violation], *, most: int = 20) -> str:
    """Write them for an assertion, the first ones."""
    found = list(violations)
    lines = [str(one) for one in found[:most]]
    return "\n".join([*lines, f"… and {len(found) - most} more"] if len(found) > most else lines)


def _attempts(job: JobEvidence) -> int:
    return max((record["attempt"] + 1 for record in job.files), default=1)


def _outcome(job: JobEvidence) -> str | None:
    return next((record["outcome"] for record in job.files if record["final"]), None)


def _text(record: Mapping[str, Any]) -> str:
    # Which one-shot a job spends stands in its file alone.
    return json.dumps({key: value for key, value in record.items() if key != "once"}, sort_keys=True)
