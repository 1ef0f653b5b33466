"""`manage.py apitoken`: a token is shown once, kept as a digest, and refused when it should be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from dispatch.api import tokens
from dispatch.models import ApiToken
from pidispatch_site.errors import ConfigurationError

pytestmark = [pytest.mark.django_db]


def apitoken(*words):
    out, err = StringIO(), StringIO()
    call_command("apitoken", *words, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue()


def owner_of(token, *, later=timedelta()):
    return tokens.bearer_of(token, datetime.now(UTC) + later)


def test_a_token_is_made_listed_and_revoked():
    token, said = apitoken("create", "prometheus", "--for", "90d")

    user = owner_of(token)
    assert user.get_username() == tokens.DEFAULT_USER
    assert user.has_perms(["dispatch.view_fleet", "runs.view_run"])
    assert not user.has_perm("dispatch.operate_fleet")
    assert (user.is_staff, user.has_usable_password()) == (False, False)
    assert token.startswith(tokens.PREFIX)
    assert "shown this once" in said
    listed, _ = apitoken("list")
    assert "prometheus  api" in listed
    kept = str(ApiToken.objects.values_list().get())
    assert token not in kept + listed + said
    assert owner_of(token, later=timedelta(days=89)) is not None
    assert owner_of(token, later=timedelta(days=91)) is None

    apitoken("revoke", "prometheus")
    assert owner_of(token) is None


def test_a_token_has_what_its_user_may_and_goes_with_it():
    user = User.objects.create_user("anna")
    token, _ = apitoken("create", "mine", "--user", "anna")

    assert owner_of(token) == user
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert owner_of(token) is None
    assert "anna (not active: refused)" in apitoken("list")[0]
    user.delete()
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("create", "taken"), "There is a token taken already"),
        (("create", "../x"), "is no name of a token"),
        (("create", "x" * 65), "is no name of a token"),
        (("create", "new", "--user", "nobody"), "There is no user 'nobody'"),
        (("create", "new", "--user", "gone"), "is not active"),
        (("revoke", "other"), "There is no token 'other'"),
    ],
)
def test_what_cannot_be_done_is_said(words, part):
    User.objects.create_user("gone", is_active=False)
    apitoken("create", "taken")

    with pytest.raises(ConfigurationError, match=part):
        apitoken(*words)

    assert ApiToken.objects.count() == 1
