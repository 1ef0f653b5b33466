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


class Fleet(models.Model):
    """The fleet: its hosts, queues, switches and settings. Here only who may see and do what is kept."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = (
            ("view_fleet", "Can see the fleet, its queue and what it costs"),
            ("operate_fleet", "Can pause, resume, stop, drain, reroute, cancel and start jobs"),
            ("configure_fleet", "Can change schedules, settings, pause windows and limits"),
            ("edit_privileged_trigger", "Can change what lets a trigger reach beyond its folder"),
            ("read_job_output", "Can read what jobs printed"),
        )

    def __str__(self) -> str:
        return "fleet"
