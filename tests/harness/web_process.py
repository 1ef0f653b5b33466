"""The real web process as a child, with people who may log in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.harness.browser import Browser
from tests.harness.manage import manage
from tests.harness.worker_process import ROOT, until

PASSWORD = "correct horse battery staple"
ROLES = ("viewer", "operator", "admin")
_PEOPLE = f"""
import json
from django.conf import settings
from django.contrib.auth import SESSION_KEY, BACKEND_SESSION_KEY, HASH_SESSION_KEY
from django.contrib.auth.models import Group, User
from django.contrib.sessions.backends.db import SessionStore
sessions = {{}}
for name in {ROLES!r}:
    user = User.objects.create_user(name, password={PASSWORD!r}, is_staff=True)
    user.groups.add(Group.objects.get(name=name))
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = 'django.contrib.auth.backends.ModelBackend'
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    sessions[name] = session.session_key
print(json.dumps({{'cookie': settings.SESSION_COOKIE_NAME, 'sessions': sessions}}))
"""


class WebProcess:
    """`manage.py web` with this environment; `url` is where it listens. One person for each ready group."""

    def __init__(self, environment: Mapping[str, str], home: Path) -> None:
        self._environment = dict(environment)
        self._home = home
        self._log = home / "web.log"
        self.url = ""
        self._cookie = ""
        self._sessions: Mapping[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "web", "--bind", "127.0.0.1:0"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._is_there, seconds=30, what="the admin says where it listens")
        done = manage(self._environment, "shell", "--no-imports", "--command", _PEOPLE)
        assert done.returncode == 0, done.stderr
        people = json.loads(done.stdout.splitlines()[-1])
        self._cookie, self._sessions = people["cookie"], people["sessions"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=20)

    @property
    def environment(self) -> Mapping[str, str]:
        """What it is configured by; the commands of its host run with the same."""
        return self._environment

    @property
    def pid(self) -> int:
        """The server's first process."""
        assert self._process is not None
        return self._process.pid

    def said(self) -> str:
        """Everything that it wrote."""
        return self._log.read_text(errors="replace")

    def cookies(self, role: str) -> dict[str, str]:
        """The session of the person of a group, as a browser sends it."""
        return {self._cookie: self._sessions[role]}

    def enter(self, page: Browser, role: str) -> None:
        """Have a browser be this person from now on."""
        if not page.url.startswith(self.url):
            page.open(f"{self.url}/admin/login/")
        page.forget()
        page.add_cookie(self._cookie, self._sessions[role])

    def _is_there(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.said()
        found = re.search(r"https?://\S+?(?=/admin/)", self.said())
        self.url = found[0] if found else ""
        return bool(found)
