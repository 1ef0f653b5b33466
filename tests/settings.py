"""The product's settings over an environment of the tests' own: never this machine's state or server."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_home = Path(tempfile.mkdtemp(prefix="pd-tests-"))
atexit.register(shutil.rmtree, _home, ignore_errors=True)

for _name in list(os.environ):
    if _name.startswith(("PI_", "VALKEY_", "DATABASE_")):
        del os.environ[_name]
(_home / "empty.env").touch()
os.environ |= {
    "PI_ENV_FILE": str(_home / "empty.env"),
    "PI_STATE_DIR": str(_home / "state"),
    "PI_EGRESS": "0",
    # Nobody listens here: a test that needs a server asks for the fixture.
    "VALKEY_URL": f"unix://{_home}/nobody.sock",
}

from pidispatch_site import databases  # noqa: E402
from pidispatch_site.settings import *  # noqa: E402, F403

if _postgres := os.environ.get("TESTS_DATABASE_URL"):
    DATABASES["default"] = databases.settings(_postgres, default=_home)  # noqa: F405
else:
    # A file and not memory, so that threads meet the locks that they meet in production.
    DATABASES["default"]["TEST"] = {"NAME": str(_home / "test.sqlite3")}  # noqa: F405
