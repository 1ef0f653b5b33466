from __future__ import annotations

import io

import pytest
from django.core.management import call_command
from django.test import Client

from pidispatch_site.errors import ConfigurationError

pytestmark = pytest.mark.django_db


def printed(**options):
    """What the command prints, and what it says beside that."""
    out, err = io.StringIO(), io.StringIO()
    call_command("loginlink", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_one_line_is_printed_that_opens_the_admin(django_user_model):
    line, said = printed()

    assert line.startswith("http://127.0.0.1:8000/login/")
    assert line.endswith("\n")
    assert Client().get(line.strip().removeprefix("http://127.0.0.1:8000")).status_code == 200
    assert django_user_model.objects.get().username == "operator"
    assert "Made the superuser operator" in said
    assert printed()[1] == ""


def test_the_user_and_the_address_can_be_named(django_user_model):
    line, said = printed(user="ann", create=True, base_url="https://pi.example/")

    assert line.startswith("https://pi.example/login/")
    assert "Made the superuser ann" in said
    assert django_user_model.objects.get().username == "ann"
    with pytest.raises(ConfigurationError, match="There is no user 'nobody'"):
        printed(user="nobody")


def test_a_user_without_rights_gets_none(django_user_model):
    django_user_model.objects.create_user("bob")

    with pytest.raises(ConfigurationError):
        printed(user="bob")
