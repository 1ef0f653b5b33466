"""`python -m tests.postgres [--browser] [ARGS]`: tests that use the database, on PostgreSQL, not SQLite.

With `--browser` it is those in which a browser is on every page of a running fleet, each of whose hosts has a
database of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.harness.postgres_server import missing, postgres_server


def main(arguments: list[str]) -> int:
    """Run them beside a server of our own; without PostgreSQL only a laptop may go without."""
    if what := missing():
        print(f"on PostgreSQL: skipped ({what} is not installed)")
        return 1 if os.environ.get("CI") == "true" else 0
    with postgres_server() as url:
        environment, mark = {**os.environ, "TESTS_DATABASE_URL": url}, "database"
        if arguments[:1] == ["--browser"]:
            environment["TESTS_HOSTS_DATABASE_URL"], mark, arguments = url, "chromium", arguments[1:]
        command = [sys.executable, "-m", "pytest", "-m", mark, "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
