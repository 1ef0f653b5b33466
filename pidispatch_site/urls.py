"""The pages of the web process: the admin, the one-time login, a sign of life, and what programs read."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from pidispatch_site import login


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer that the process serves requests; no detail for strangers."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", healthz, name="healthz"),
    path("login/<str:token>", login.view, name="login"),
    path("admin/", admin.site.urls),
    # By name: it stands in an upper layer, as the admin's site does.
    path("", include("dispatch.api.urls")),
]
handler400 = "pidispatch_site.error_handlers.bad_request"
handler403 = "pidispatch_site.error_handlers.permission_denied"
handler404 = "pidispatch_site.error_handlers.not_found"
handler500 = "pidispatch_site.error_handlers.server_error"
