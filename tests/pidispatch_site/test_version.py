from __future__ import annotations

import tomllib
from pathlib import Path

from pidispatch_site.version import VERSION

ROOT = Path(__file__).parents[2]


def test_the_version_that_workers_tell_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["version"] == VERSION
