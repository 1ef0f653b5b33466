"""The run table: one row per job, a mirror of the record files for pages and questions.

Rows hold what the files hold and nothing else; they are written by `runs.rows` and never decide anything.
"""

# ruff: noqa: DJ001 - an absent text is null, never "" (Q 15.1)
from __future__ import annotations

from django.db import models

from runs.rollup_figures import COUNTERS, TOOK, WAITED

_NEWEST = ("-position", "-job_id")
_FACETS = ("host", "reason", "kind", "outcome", "flow", "model")


def _walk(facet: str) -> models.Index:
    others = [name for name in _FACETS if name != facet]
    return models.Index(fields=[facet, *_NEWEST, *others], name=f"runs_of_{facet}")


class Run(models.Model):
    """The last attempt of one job that somebody knows of; the fields are those of `runs.record.Record`."""

    job_id = models.TextField(primary_key=True)
    kind = models.TextField(null=True)
    target = models.TextField(null=True)
    flow = models.TextField(null=True)
    queued_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    outcome = models.TextField()
    reason = models.TextField(null=True)
    exit_code = models.BigIntegerField(null=True)
    turns = models.BigIntegerField(null=True)
    tokens = models.JSONField(null=True)
    usage = models.JSONField(null=True)
    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    budget_reserved = models.BooleanField(null=True)
    attempt = models.BigIntegerField()
    final = models.BooleanField()
    attempts = models.JSONField(default=list)
    parent_job_id = models.TextField(null=True)
    chain_depth = models.BigIntegerField(null=True)
    chain_refused = models.BigIntegerField(null=True)
    replica = models.BigIntegerField(null=True)
    replicas = models.BigIntegerField(null=True)
    trigger_index = models.BigIntegerField(null=True)
    trigger_type = models.TextField(null=True)
    session = models.JSONField(null=True)
    scope_hash = models.TextField(null=True)
    image_digest = models.TextField(null=True)
    host = models.TextField(null=True)
    # `record.position_ms`: lists are paged by it, and it is the last part of `record.order`.
    position = models.BigIntegerField()

    class Meta:
        default_permissions = ("view",)
        # A page of a list is one walk along one of these, whatever the size of the table (F49). Each facet's
        # ends in the other facets, so that a walk reads a row only when it is shown. The children of a job
        # are found by the last.
        indexes = (
            models.Index(fields=[*_NEWEST], name="runs_newest"),
            *(_walk(facet) for facet in _FACETS),
            models.Index(
                fields=["parent_job_id", *_NEWEST],
                name="runs_by_parent",
                condition=models.Q(parent_job_id__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.job_id


class Rollup(models.Model):
    """Figures of the runs of one period that have one value in one dimension; `runs.rollups` reads them.

    The names are those of `runs.rollup_figures`, the times those of `runs.rollup_periods`. Rows are summed up
    as they are written (`runs.rollup_writing`).
    """

    grain = models.SmallIntegerField()
    start = models.BigIntegerField()
    dimension = models.TextField()
    value = models.TextField()
    rest = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=["dimension", "grain", "start", "value", "rest"], name="runs_one_rollup"
            ),
        )

    def __str__(self) -> str:
        return f"{self.dimension} {self.value} from hour {self.start}"


for _column in COUNTERS:
    Rollup.add_to_class(_column, models.BigIntegerField(default=0))
for _column in (*TOOK, *WAITED):
    # Most buckets are empty, and null takes no room: the table is a third as large, and as quickly read.
    Rollup.add_to_class(_column, models.IntegerField(null=True))


class RollupState(models.Model):
    """What is known of the rollups as a whole; one row at most, and none says the same as one of defaults."""

    # Rows of earlier hours may have been removed: there the rollups know more than the rows.
    complete_from = models.BigIntegerField(default=0)
    # Days before this hour are still to be counted anew, the latest first; null when none is.
    recount_before = models.BigIntegerField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return "state of the rollups"
