"""What pages without a table are about: models that Django neither makes nor fills (D13)."""

from __future__ import annotations

from django.db import models


class Schedule(models.Model):
    """A schedule. It stands in the triggers file and in Valkey; here only whoever may view it is kept."""

    id = models.TextField(primary_key=True)

    class Meta:
        managed = False
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.id
