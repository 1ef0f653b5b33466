"""The web process as a WSGI application, for a server of the operator's choice.

That server must be told where the settings are: DJANGO_SETTINGS_MODULE=pidispatch_site.settings.
"""

from __future__ import annotations

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
