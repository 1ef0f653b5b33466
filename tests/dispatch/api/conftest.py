"""What the tests of the read API share: a server, settings that name it, somebody who may look."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import override_settings


@pytest.fixture
def here(valkey_url, db, tmp_path):
    plain = {"VALKEY_URL": valkey_url, "PI_STATE_DIR": str(tmp_path), "TZ": "UTC"}
    with override_settings(PIDISPATCH_ENVIRONMENT=plain):
        yield plain


@pytest.fixture
def viewer(db):
    user = User.objects.create_user("watcher", is_staff=True)
    user.groups.add(Group.objects.get(name="viewer"))
    return user


@pytest.fixture
def browser(client, viewer):
    client.force_login(viewer)
    return client
