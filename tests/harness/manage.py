"""The commands of people as processes of their own, as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tests.harness import prepared
from tests.harness.worker_process import ROOT


def manage(
    environment: Mapping[str, str], *words: str, seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run `manage.py` with these words; its exit code and what it wrote."""
    program = [sys.executable, str(ROOT / "manage.py"), *words]
    return prepared.run(program, env=dict(environment), text=True, timeout=seconds)


def answered(environment: Mapping[str, str], *words: str, code: int = 0) -> Any:
    """Run it and read its answer as JSON; AssertionError when it ends with another code."""
    done = manage(environment, *words)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)
