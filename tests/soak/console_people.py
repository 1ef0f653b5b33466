"""`python -m tests.soak.console_people ENTRIES`: a hundred people, and so many entries of what they did.

The database is that of the environment, and has the people of `WebProcess`. Answers JSON: `entry` and `user`
in the middle of them all, and `group`, one that both have. Whoever is "admin" may see groups from then on.
"""

from __future__ import annotations

import json
import os
import random
import sys

_PEOPLE, _AT_ONCE = 100, 5_000
_ACTIONS = (
    "pause",
    "resume",
    "cancel",
    "host-drained",
    "trigger-changed",
    "window-added",
    "schedule-started",
)


def main(entries: int) -> dict[str, int]:
    """Write them."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "pidispatch_site.settings"
    import django

    django.setup()
    from django.contrib.auth.models import Group, Permission, User

    group = Group.objects.get(name="operator")
    User.objects.bulk_create(
        User(username=f"person-{number}", password="!", is_staff=True, is_active=number % 7 > 0)
        for number in range(_PEOPLE)
    )
    people = [*User.objects.filter(username__startswith="person-").order_by("pk")]
    group.user_set.add(*people)
    admin = User.objects.get(username="admin")
    admin.user_permissions.add(
        *Permission.objects.filter(content_type__app_label="auth", content_type__model="group")
    )
    first = _act(people, entries)
    return {"entry": first + entries // 2, "user": people[_PEOPLE // 2].pk, "group": group.pk}


def _act(people: list[object], entries: int) -> int:
    """Write what they did, by chance; the first entry's number."""
    from django.contrib.admin.models import CHANGE, LogEntry
    from django.contrib.auth.models import User
    from django.contrib.contenttypes.models import ContentType

    from dispatch.models import Fleet

    chance, ours = random.Random(7), ContentType.objects.get_for_model(Fleet)
    accounts = ContentType.objects.get_for_model(User)
    last = LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for start in range(0, entries, _AT_ONCE):
        LogEntry.objects.bulk_create(
            LogEntry(
                user=chance.choice(people),
                content_type=accounts if number % 10 == 0 else ours,
                object_id=str(people[number % _PEOPLE].pk)
                if number % 10 == 0
                else f"pi-jobs@build-{number % 50:02}",  # type: ignore[attr-defined]
                object_repr=f"pi-jobs@build-{number % 50:02}",
                action_flag=CHANGE,
                change_message=_message(number, chance),
            )
            for number in range(start, min(start + _AT_ONCE, entries))
        )
    return last + 1


def _message(number: int, chance: random.Random) -> str:
    if number % 10 == 0:
        return json.dumps([{"changed": {"fields": ["Active", "Groups"]}}])
    before = {f"job-{chance.getrandbits(32):08x}": "queued" for _ in range(8)}
    return json.dumps(
        {
            "action": chance.choice(_ACTIONS),
            "reason": "as it was due",
            "before": {"jobs": before},
            "after": {"n": number},
        }
    )


if __name__ == "__main__":
    json.dump(main(int(sys.argv[1])), sys.stdout)
