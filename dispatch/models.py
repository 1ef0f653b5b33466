"""What pages without a table are about (Django neither makes nor fills it: D13), and programs' tokens."""

from __future__ import annotations

from django.conf import settings
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


class ApiToken(models.Model):
    """What a program shows instead of a password; it may read what its user may.

    Only the SHA-256 of it is kept: it is random enough that nothing slower is needed. `expires_at` is null
    for one that holds until it is revoked, which deletes it.
    """

    name = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    last_used_on = models.DateField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
