"""Accounts in Django's admin: nobody gives or takes more than they have, and the log outlives its people.

Django itself lets whoever may change users make anybody a superuser, himself too, and deletes the log of
actions with its user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.auth.admin import UserAdmin as _UserAdmin

    _Users = _UserAdmin[User]
else:  # Django's own class takes no parameter
    _Users = UserAdmin

# What only a superuser gives: single permissions go beside the groups.
_FOR_SUPERUSERS = ("is_superuser", "user_permissions")
_WORDS = {
    "is_staff": "Whether the user may log in to the console. What they see and do there, the groups say.",
    "groups": "viewer sees, operator also acts on hosts, queues and jobs, admin also changes schedules and"
    " settings and manages users. Without a group a user sees nothing.",
}


# What Django's own style leaves too narrow, too wide or unseen.
_STYLE = {"all": ["console/users.css"]}


class _Boxes(forms.CheckboxSelectMultiple):
    """Boxes to tick, in a group of this name: Django's two lists want a script, a mouse and good eyes."""

    template_name = "console/boxes.html"

    def __init__(self, about: str) -> None:
        super().__init__()
        self.about = about

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Give the template the name, too; what helps stands below them all, not with each."""
        kept = {key: text for key, text in (attrs or {}).items() if key != "aria-describedby"}
        return {**super().get_context(name, value, kept), "about": self.about}


class AccountAdmin(_Users):
    """Django's pages of users, for users who may do no more than the one who asks."""

    class Media:
        """A narrow window shows fewer columns."""

        css: ClassVar = _STYLE

    # First what says who may do what.
    list_display = ("username", "in_groups", "is_active", "is_staff", "email", "first_name", "last_name")
    # What happened is no one's to write.
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Personal info", {"fields": ("first_name", "last_name", "email")}),
        ("Permissions", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        # Many, and seldom wanted.
        ("Single permissions", {"classes": ("collapse",), "fields": ("user_permissions",)}),
        ("Important dates", {"fields": ("last_login", "date_joined")}),
    )
    # A new user without these would see nothing.
    add_fieldsets = (*UserAdmin.add_fieldsets, (None, {"fields": ("is_staff", "groups")}))

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Bring the groups along, which the list shows."""
        users: QuerySet[User] = super().get_queryset(request)
        return users.prefetch_related("groups")

    @admin.display(description="groups")
    def in_groups(self, user: User) -> str:
        """Name the groups of a user, or what is above them all."""
        names = sorted(group.name for group in user.groups.all())
        return ", ".join([*(["superuser"] if user.is_superuser else []), *names]) or "none"

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Tick “Staff status” for a new user: whoever is added here is to use the console."""
        return {"is_staff": True, **super().get_changeform_initial_data(request)}

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Say what the fields mean in the console."""
        if db_field.name in _WORDS:
            kwargs["help_text"] = _WORDS[db_field.name]
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "groups":
            # What is added in another window would not be among the boxes.
            field.widget.can_add_related = False
        return field

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer no deletion of many at once: who leaves is made inactive, and stays in the log."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Refuse whoever may do less: a new password would be a way into the other's account."""
        return super().has_change_permission(request, obj) and _is_within(obj, request)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Refuse likewise."""
        return super().has_delete_permission(request, obj) and _is_within(obj, request)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Keep what makes a user more than its groups from all but superusers."""
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if request.user.is_superuser else (*fields, *_FOR_SUPERUSERS)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer boxes to tick: of the groups those that may do no more than the one who asks."""
        kwargs["widget"] = _Boxes(db_field.verbose_name)
        if db_field.name == "groups" and not request.user.is_superuser:
            kwargs["queryset"] = Group.objects.exclude(permissions__in=_lacking(request)).order_by("name")
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Protect users of whom the log has an entry, however they are to be deleted."""
        deleted, counts, needed, protected = super().get_deleted_objects(objs, request)
        acted = LogEntry.objects.filter(user__in=[user.pk for user in objs]).values("user")
        kept = [
            f"The actions of {user.get_username()} in the log. Take “Active” away from the account instead:"
            " nobody can log in with it then."
            for user in User.objects.filter(pk__in=acted).order_by("username")
        ]
        return deleted, counts, needed, [*protected, *kept]


class RoleAdmin(GroupAdmin):
    """Django's pages of groups, which only superusers change: others would give themselves what they lack."""

    class Media:
        """As those of users."""

        css: ClassVar = _STYLE

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse all but superusers: what a group may is given to whoever is put into it."""
        return super().has_add_permission(request) and request.user.is_superuser

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Refuse likewise: it may be the group of the one who asks."""
        return super().has_change_permission(request, obj) and request.user.is_superuser

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        """Refuse likewise: it takes from others what they may."""
        return super().has_delete_permission(request, obj) and request.user.is_superuser

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        """Offer boxes to tick."""
        kwargs["widget"] = _Boxes(db_field.verbose_name)
        return super().formfield_for_manytomany(db_field, request, **kwargs)


def _is_within(user: User | None, request: HttpRequest) -> bool:
    """Tell whether a user may do no more than the one who asks; also one that is not active."""
    if user is None or request.user.is_superuser:
        return True
    theirs = Q(group__user=user) | Q(user=user)
    return not user.is_superuser and not _lacking(request).filter(theirs).exists()


def _lacking(request: HttpRequest) -> QuerySet[Permission]:
    """Find the permissions that the one who asks does not have."""
    own = Q(group__user=request.user) | Q(user=request.user)
    return Permission.objects.exclude(pk__in=Permission.objects.filter(own).values("pk"))


def register() -> None:
    """Put these pages in the place of Django's."""
    admin.site.unregister([User, Group])
    admin.site.register(User, AccountAdmin)
    admin.site.register(Group, RoleAdmin)
