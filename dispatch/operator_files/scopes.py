"""Whether a row of an operator's file can be about a job of this host at all."""

from __future__ import annotations

import os
from pathlib import Path

from dispatch.operator_files.pause_windows import EVERY_SCOPE


def is_reachable(scope: str) -> bool:
    """Tell whether a job may have this scope: jobs name a folder by its real path, a repository in full."""
    if scope.startswith("/"):
        return os.path.realpath(scope) == scope and Path(scope).is_dir()
    return scope == EVERY_SCOPE or ("/" in scope and "://" not in scope and not scope.startswith("~"))
