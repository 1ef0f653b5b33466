"""`python -m tests.soak [NAME] [--short]`: what takes minutes, one line a soak, exit 1 if one fails.

`--short` runs reduced forms of all, for CI. A later part adds its soak to `SOAKS`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module

#: Each is `tests.soak.<name>.run(short=…)`: it answers its figures, or raises AssertionError.
SOAKS = (
    *("kill", "pair", "stop", "valkey", "engine", "points", "floods", "edits", "caps", "unpaid"),
    *("fleet", "fleet_deleted", "fleet_contact", "fleet_clocks", "schedules", "one_shots"),
    *("console", "console_stop"),
)

Soak = Callable[..., Mapping[str, object]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SOAKS)}; default: all")
    parser.add_argument("--short", action="store_true", help="reduced forms")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(SOAKS))
    if unknown:
        parser.error(f"no soak {', '.join(unknown)}; there are {', '.join(SOAKS)}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    results = [play(name, short=options.short) for name in options.names or SOAKS]
    return 0 if all(results) else 1


def play(name: str, *, short: bool) -> bool:
    """Play one soak and print its line; whether it held."""
    run: Soak = import_module(f"tests.soak.{name}").run
    began = time.monotonic()
    try:
        figures = run(short=short)
    except Exception:  # noqa: BLE001 - the next soak is to be played all the same
        print(f"{name} FAILED after {time.monotonic() - began:.0f} s", flush=True)
        traceback.print_exc()
        return False
    print(f"{name} ok {json.dumps(figures)}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
