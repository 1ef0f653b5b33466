"""Git working trees for the benchmarks' jobs, owned by somebody a job can run as."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def make_folders(home: Path, count: int) -> list[Path]:
    """Make the first by git and the others as copies of it."""
    home.chmod(0o755)
    first = home / "folder-0"
    first.mkdir()
    (first / "README.md").write_text("# bench\n")
    who = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "--message", "one")):
        subprocess.run(["git", *words], cwd=first, check=True)
    folders = [home / f"folder-{number}" for number in range(count)]
    for folder in folders[1:]:
        subprocess.run(["cp", "-a", str(first), str(folder)], check=True)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "1001:1001", *map(str, folders)], check=True)
    return folders
