"""The console's permissions and three ready groups; Django itself makes permissions only after migrating."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

_FLEET = (
    ("view_fleet", "Can see the fleet, its queue and what it costs"),
    ("operate_fleet", "Can pause, resume, stop, drain, reroute, cancel and start jobs"),
    ("configure_fleet", "Can change schedules, settings, pause windows and limits"),
    ("edit_privileged_trigger", "Can change what lets a trigger reach beyond its folder"),
    ("read_job_output", "Can read what jobs printed"),
)
_VIEWER = (("dispatch", "fleet", "view_fleet"), ("dispatch", "schedule", "view_schedule"), ("runs", "run", "view_run"))
_OPERATOR = (*_VIEWER, ("dispatch", "fleet", "operate_fleet"))
_ADMIN = (
    *_OPERATOR,
    *(("dispatch", "fleet", name) for name in ("configure_fleet", "edit_privileged_trigger", "read_job_output")),
    *(("auth", "user", f"{verb}_user") for verb in ("add", "change", "delete", "view")),
)
_GROUPS = {"viewer": _VIEWER, "operator": _OPERATOR, "admin": _ADMIN}
_NAMES = {**dict(_FLEET), "view_schedule": "Can view schedule", "view_run": "Can view run"}


def make_groups(apps: Any, schema_editor: Any) -> None:
    """Make the groups; one of that name that stands already keeps what it has and gets these."""
    database = schema_editor.connection.alias
    kinds = apps.get_model("contenttypes", "ContentType").objects.using(database)
    permissions = apps.get_model("auth", "Permission").objects.using(database)
    groups = apps.get_model("auth", "Group").objects.using(database)
    for name, wanted in _GROUPS.items():
        group, _ = groups.get_or_create(name=name)
        for app, model, codename in wanted:
            kind, _ = kinds.get_or_create(app_label=app, model=model)
            said = _NAMES.get(codename, f"Can {codename.partition('_')[0]} {model}")
            permission, _ = permissions.get_or_create(
                content_type=kind, codename=codename, defaults={"name": said}
            )
            group.permissions.add(permission)


class Migration(migrations.Migration):

    dependencies = [
        ("dispatch", "0001_initial"),
        ("runs", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name="Fleet",
            fields=[("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))],
            options={"managed": False, "default_permissions": (), "permissions": _FLEET},
        ),
        migrations.RunPython(make_groups, migrations.RunPython.noop),
    ]
