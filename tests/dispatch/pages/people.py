"""Who looks at the console in tests of its pages."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.test import Client


def member(group: str) -> Client:
    """The browser of somebody who is in this ready group, has its name, and has logged in."""
    user = User.objects.create_user(group, is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    client = Client()
    client.force_login(user)
    return client
