"""Who may see and do what in the console: one decorator for every view (E 10.6).

The permissions stand on the unmanaged model `dispatch.models.Fleet`; the groups viewer, operator and admin
are made by a migration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from functools import wraps

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.views.decorators.cache import never_cache

from pidispatch_site.error_pages import NotPermittedError

View = Callable[..., HttpResponseBase]


class Access(StrEnum):
    """What a page or an action needs, as Django names it.

    PRIVILEGED: the keys of a trigger that reach beyond its folder (image, secrets, …). OUTPUT: what jobs
    print.
    """

    VIEW = "dispatch.view_fleet"
    OPERATE = "dispatch.operate_fleet"
    CONFIGURE = "dispatch.configure_fleet"
    PRIVILEGED = "dispatch.edit_privileged_trigger"
    OUTPUT = "dispatch.read_job_output"


# The ready groups that have it; what is not named here only admin has.
_READY = {Access.VIEW: ("viewer", "operator", "admin"), Access.OPERATE: ("operator", "admin")}
#: What changes nothing.
SAFE = ("GET", "HEAD")


def page(needs: Access, *, methods: Collection[str] = SAFE) -> Callable[[View], View]:
    """Let a view answer only who has the permission, and only these methods; its answers are not cached.

    Whoever is not logged in never gets here: the site's `admin_view` asks for a login first.
    """

    def guarded(view: View) -> View:
        @never_cache
        @wraps(view)
        def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if not request.user.has_perm(needs):
                raise refused(needs)
            if request.method not in methods:
                return HttpResponseNotAllowed(sorted(methods))
            return view(request, *args, **kwargs)

        return answer

    return guarded


def action(needs: Access = Access.OPERATE) -> Callable[[View], View]:
    """Guard a view that shows a form on GET and changes something on POST only."""
    return page(needs, methods=(*SAFE, "POST"))


def require(request: HttpRequest, needs: Access) -> None:
    """Raise PermissionDenied where a part of a view needs more than the view itself."""
    if not request.user.has_perm(needs):
        raise refused(needs)


def refused(needs: Access) -> NotPermittedError:
    """Name what is missing and the ready groups that have it (dispatch.0002), for the page of the refusal."""
    return NotPermittedError(needs, _READY.get(needs, ("admin",)))
