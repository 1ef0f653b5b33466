"""Accounts: nobody makes more of an account than he may himself, and the log keeps whom it names."""

from __future__ import annotations

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from dispatch.pages import audit

USERS = "/admin/auth/user/"
PASSWORD = "a-Long-1-enough"


@pytest.fixture
def keeper(db):
    """Somebody who looks after accounts and may operate, but not configure."""
    user = account("keeper", "operator")
    user.user_permissions.set(Permission.objects.filter(content_type__model="user"))
    client = Client()
    client.force_login(user)
    client.user = user
    return client


def account(name, *groups, **fields):
    user = User.objects.create_user(name, is_staff=True, **fields)
    user.groups.set(Group.objects.filter(name__in=groups))
    return user


def change(client, user, **sent):
    form = {
        "username": user.username,
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00",
        "is_staff": "on",
        "is_active": "on",
    }
    return client.post(f"{USERS}{user.pk}/change/", {**form, **sent})


def boxes(page, name):
    """What there is to tick of this, in a group that says what it is about."""
    about = name.replace("_", " ").capitalize()
    (inside,) = re.findall(rf'role="group" aria-label="{about}">(.*?)\n</div>\n</div>', page, re.DOTALL)
    found = re.findall(rf'<input type="checkbox" name="{name}"[^>]*>\s*([^<]+)</label>', inside)
    return [one.strip() for one in found]


def did(user, action="pause"):
    request = RequestFactory().get("/")
    request.user = user
    audit.record(request, action, "pi-jobs")


@pytest.mark.parametrize(
    ("groups", "fields"),
    [
        (["admin"], {}),
        ([], {"is_superuser": True}),
        (["admin"], {"is_active": False}),
        ([], {"is_superuser": True, "is_active": False}),
    ],
)
def test_who_may_do_more_is_out_of_reach(keeper, groups, fields):
    user = account("boss", *groups, **fields)
    password = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}

    assert change(keeper, user, groups=[]).status_code == 403
    assert keeper.post(f"{USERS}{user.pk}/password/", password).status_code == 403
    assert keeper.post(f"{USERS}{user.pk}/delete/", {"post": "yes"}).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
    keeper.post(USERS, bulk)

    kept = User.objects.get(pk=user.pk)
    assert (kept.password, kept.is_active) == (user.password, user.is_active)


@pytest.mark.parametrize("whom", ["keeper", "viewer"])
@pytest.mark.parametrize("what", [{"is_superuser": "on"}, {"groups": "admin"}, {"user_permissions": "1"}])
def test_nobody_gives_what_he_has_not(keeper, whom, what):
    user = keeper.user if whom == "keeper" else account("viewer", "viewer")
    before = user.get_all_permissions()
    sent = {"groups": [Group.objects.get(name="admin").pk]} if "groups" in what else what

    change(keeper, user, **sent)

    after = User.objects.get(pk=user.pk)
    assert not after.is_superuser
    assert after.get_all_permissions() <= before


def test_nobody_writes_when_somebody_came(keeper, admin_client):
    user = account("new")
    then = user.date_joined
    dates = {"date_joined": "2001-01-01 00:00", "last_login": "2001-01-01 00:00"}
    halves = {f"last_login_{half}": text for half, text in enumerate(("2001-01-01", "00:00"))}

    for client, name in ((keeper, "Nina"), (admin_client, "Nora")):
        assert change(client, user, first_name=name, **dates, **halves).status_code == 302
        user.refresh_from_db()
        assert (user.first_name, user.date_joined, user.last_login) == (name, then, None)


def test_only_a_superuser_is_offered_single_permissions_and_gives_them(keeper, admin_client):
    user = account("new")
    wanted = Permission.objects.get(codename="view_user")
    address = f"{USERS}{user.pk}/change/"

    assert 'name="user_permissions"' not in keeper.get(address).content.decode()
    assert str(wanted) in boxes(admin_client.get(address).content.decode(), "user_permissions")
    for sender, given in ((keeper, []), (admin_client, [wanted])):
        assert change(sender, user, user_permissions=[wanted.pk]).status_code == 302
        assert list(user.user_permissions.all()) == given
    change(keeper, user)
    assert list(user.user_permissions.all()) == [wanted]


def test_a_superuser_ticks_what_a_group_may(admin_client):
    address = "/admin/auth/group/add/"
    wanted = Permission.objects.get(codename="view_user")
    assert str(wanted) in boxes(admin_client.get(address).content.decode(), "permissions")

    assert admin_client.post(address, {"name": "new", "permissions": [wanted.pk]}).status_code == 302

    assert list(Group.objects.get(name="new").permissions.all()) == [wanted]


def test_only_a_superuser_changes_what_groups_may(keeper):
    keeper.user.user_permissions.add(*Permission.objects.filter(content_type__model="group"))
    group, wanted = Group.objects.get(name="operator"), Permission.objects.get(codename="configure_fleet")
    groups, before = "/admin/auth/group/", set(group.permissions.all())
    sent = {"name": "operator", "permissions": [wanted.pk]}

    assert keeper.get(f"{groups}{group.pk}/change/").status_code == 200
    assert keeper.post(f"{groups}{group.pk}/change/", sent).status_code == 403
    assert keeper.post(f"{groups}add/", {**sent, "name": "new"}).status_code == 403
    assert keeper.post(f"{groups}{group.pk}/delete/", {"post": "yes"}).status_code == 403
    keeper.post(groups, {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes"})

    assert sorted(Group.objects.values_list("name", flat=True)) == ["admin", "operator", "viewer"]
    assert set(group.permissions.all()) == before


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("auth/user/{pk}/password/", ("password1", "password2")),
        ("password_change/", ("new_password1", "new_password2")),
    ],
)
def test_a_new_password_is_asked_for_with_whose_it_is_and_what_was_wrong_with_it(admin_client, path, names):
    user = User.objects.get(username="admin")
    sent = dict(zip(names, (PASSWORD, PASSWORD[1:]), strict=True))

    page = admin_client.post(f"/admin/{path.format(pk=user.pk)}", {**sent, "usable_password": "true"})

    said = page.content.decode()
    assert re.search(r'name="username" value="admin"[^>]* autocomplete="username"', said)
    assert "Correct what is said below." in said
    assert "password fields didn" in said
    assert PASSWORD not in said


def test_the_way_back_from_a_deletion_needs_no_script(admin_client):
    user = account("idle")
    page = admin_client.get(f"{USERS}{user.pk}/delete/").content.decode()
    assert f'<a href="{USERS}{user.pk}/change/" class="button">No, take me back</a>' in page


def test_what_one_has_can_be_given_and_a_superuser_gives_everything(keeper, admin_client):
    user = account("new")
    may = {group.name: group.pk for group in Group.objects.all()}

    assert change(keeper, user, groups=[may["operator"]]).status_code == 302
    assert [one.name for one in user.groups.all()] == ["operator"]
    assert change(admin_client, user, groups=[may["admin"]], is_superuser="on").status_code == 302
    assert User.objects.get(pk=user.pk).is_superuser


def test_a_new_user_may_log_in_and_is_put_into_a_group_at_once(keeper):
    page = keeper.get(f"{USERS}add/").content.decode()
    assert re.search(r'name="is_staff"[^>]* checked', page)
    assert "may log in to the console" in page
    assert boxes(page, "groups") == ["operator", "viewer"]
    sent = {"username": "new", "usable_password": "true", "password1": PASSWORD, "password2": PASSWORD}
    viewers = Group.objects.get(name="viewer")

    assert keeper.post(f"{USERS}add/", {**sent, "is_staff": "on", "groups": [viewers.pk]}).status_code == 302

    made = User.objects.get(username="new")
    assert (made.is_staff, list(made.groups.all())) == (True, [viewers])
    assert Client().login(username="new", password=PASSWORD)


def test_who_is_in_no_group_is_told_so(client, db):
    client.force_login(account("lone<b>"))
    page = client.get("/admin/").content.decode()
    assert "<h1>You are logged in, but in no group</h1>" in page
    assert "lone&lt;b&gt;" in page
    assert "Log out" in page


@pytest.mark.parametrize(("group", "is_there"), [("viewer", False), ("operator", False), ("admin", True)])
def test_users_are_in_the_navigation_of_those_who_may_see_them(group, is_there, client, db):
    client.force_login(account("somebody", group))
    assert (f'<a href="{USERS}"' in client.get("/admin/log/").content.decode()) is is_there


def test_who_stands_in_the_log_is_not_deleted(admin_client):
    acted, idle = account("acted<b>"), account("idle")
    did(acted)

    def delete(user):
        return admin_client.post(f"{USERS}{user.pk}/delete/", {"post": "yes"})

    page = delete(acted).content.decode()
    assert "The actions of acted&lt;b&gt; in the log." in page
    assert "Active" in page
    assert delete(idle).status_code == 302
    assert list(User.objects.filter(username__in=["acted<b>", "idle"])) == [acted]
    assert LogEntry.objects.filter(user=acted).count() == 1


def test_many_are_not_deleted_at_once(admin_client):
    idle = account("idle")
    admin_client.post(USERS, {"action": "delete_selected", "_selected_action": [idle.pk], "post": "yes"})
    assert User.objects.filter(pk=idle.pk).exists()
    assert "Delete selected" not in admin_client.get(USERS).content.decode()


def test_the_list_says_in_which_groups_somebody_is_for_no_query_more(admin_client, django_assert_num_queries):
    account("ann", "viewer", "operator")
    account("lone", is_active=False)
    page = admin_client.get(USERS).content.decode()
    listed = re.findall(
        r'class="field-in_groups">([^<]*)</td><td class="field-is_active"><img [^>]*alt="(\w+)"', page
    )
    assert listed == [("superuser", "True"), ("operator, viewer", "True"), ("none", "False")]
    with CaptureQueriesContext(connection) as few:
        admin_client.get(USERS)
    for name in "bcde":
        account(name, "viewer")
    with django_assert_num_queries(len(few)):
        admin_client.get(USERS)
