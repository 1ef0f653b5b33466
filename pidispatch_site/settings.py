"""Django's settings, and the door to the environment: nothing else in the product reads it.

This module imports under any environment. What depends on a variable is lazy and complains when it is
touched, so that the commands that stop work run however broken the configuration is (contracts 1).
"""

from __future__ import annotations

import os
from typing import cast

from csp.constants import NONE, SELF
from django.utils.functional import SimpleLazyObject

from pidispatch_site import conf, envfile, lazy_settings
from pidispatch_site.library_logs import LOGGING as LOGGING

PIDISPATCH_ENVIRONMENT = envfile.merged(os.environ, folder=lazy_settings.current_folder())
PIDISPATCH: conf.Config = cast(conf.Config, SimpleLazyObject(lambda: conf.load(PIDISPATCH_ENVIRONMENT)))

DEBUG = False
SECRET_KEY = SimpleLazyObject(lambda: lazy_settings.secret_key(PIDISPATCH_ENVIRONMENT))
DATABASES = lazy_settings.database(PIDISPATCH_ENVIRONMENT)
CACHES = SimpleLazyObject(lambda: lazy_settings.cache(PIDISPATCH_ENVIRONMENT))
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    # Ours first: the frame of every page is the console's.
    "pidispatch_site",
    "hosts",
    "runs",
    "dispatch",
    "pidispatch_site.admin_app.ConsoleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
]
MIDDLEWARE = [
    "pidispatch_site.middleware.Headers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # The last one: it answers before any other sees that a view could not.
    "pidispatch_site.middleware.Outages",
]
ROOT_URLCONF = "pidispatch_site.urls"
WSGI_APPLICATION = "pidispatch_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"

# A list of a thousand jobs, each with a box to tick, is a form of more fields than Django takes.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

STATIC_URL = "/static/"
# Straight from the installed apps: there is no step that collects files and can be forgotten.
WHITENOISE_USE_FINDERS = True

_ORIGINS = lazy_settings.web_origins(PIDISPATCH_ENVIRONMENT)
ALLOWED_HOSTS = lazy_settings.allowed_hosts(_ORIGINS)
CSRF_TRUSTED_ORIGINS = list(_ORIGINS)
# A proxy speaks HTTPS to browsers; without one there is only this machine, where cookies do not travel.
_HTTPS = lazy_settings.is_https(_ORIGINS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
# The prefix keeps a neighbour on another host of the company from planting a cookie of this name here.
_COOKIE = "__Host-pidispatch" if _HTTPS else "pidispatch"
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = 7 * 24 * 60 * 60
SESSION_COOKIE_NAME = f"{_COOKIE}_session"
SESSION_COOKIE_HTTPONLY = True
# Lax, so that a link in a chat leads in; what changes something is a POST, which no other site sends with it.
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = f"{_COOKIE}_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "pidispatch_site.error_handlers.forged"
# The proxy must set it, and must not pass on a browser's own.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_SSL_REDIRECT = _HTTPS
# Checks of health come from this machine; a program that sent its token in the clear is told so.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^metrics$", r"^api(/|$)"]
# Thirty days: long enough for a browser that comes daily, short enough to undo.
SECURE_HSTS_SECONDS = 30 * 24 * 60 * 60 if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    },
}
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
