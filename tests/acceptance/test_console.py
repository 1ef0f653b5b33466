"""Check 1 and 5 of the console: a real browser, the real web process, two hosts with running jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import absent
from tests.harness.browser import missing
from tests.harness.console_stage import Stage, console_stage, kind_of

pytestmark = pytest.mark.chromium

#: Besides the console: Django's own pages of users, and what is no page.
_NO_PAGES = ("/admin/auth/", "/admin/logout", "/admin/password_change", "/admin/jsi18n", "/static/")


@pytest.fixture(scope="module")
def stage(valkey_server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    if program := missing():
        absent(f"{program} is not installed")
    home = tmp_path_factory.mktemp("console")
    pictures = Path(os.environ.get("SCREENSHOTS_DIR", home))
    with console_stage(valkey_server_url, home, pictures) as stage:
        yield stage


# The richest first: what is on a page of the others besides is looked at then.
@pytest.mark.parametrize("role", ["admin", "operator", "viewer"])
def test_every_page_is_there_and_usable_for_everybody(stage, role):
    stage.enter(role)
    found = ["/admin/"]
    for path in found:
        stage.goes(path.removeprefix("/admin/"))
        known = {kind_of(one) for one in found}
        for link in stage.links():
            is_page = link.startswith("/admin/") and not link.startswith(_NO_PAGES) and ".csv" not in link
            if is_page and ".json" not in link and kind_of(link) not in known:
                known.add(kind_of(link))
                found.append(link)
    print(role, len(found), [kind_of(one) for one in found])

    stage.end()
