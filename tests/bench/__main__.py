"""`python -m tests.bench [NAME]`: every benchmark, or some by name; exits 0 whether or not the targets hold.

One that cannot run here prints its lines without figures; so does one that breaks, and the exit is 1.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

import django

from tests.bench.engine import UnavailableError
from tests.bench.report import unmeasured

#: Module of `tests.bench`, whose `bench` takes the names of the lines to print, and those names.
BENCHES = {
    "containers": ("containers",),
    "throughput": ("throughput-simple", "throughput-pool"),
    "latency": ("latency",),
    "memory": ("memory",),
    "commands": ("commands",),
    "ladder": ("ladder", "ladder-dense", "ladder-reload", "ladder-peer"),
    "fleet": ("fleet-rows", "fleet-peer", "fleet-shown", "fleet-trips", "fleet-pause"),
    "schedules": (
        *("schedules-load", "schedules-load-peer", "schedules-reconcile", "schedules-reconcile-peer"),
        *("schedules-tick", "schedules-tick-peer", "schedules-trips"),
    ),
}


def main(names: list[str]) -> int:
    """Run what is named by line or by module, everything without a name; the exit code."""
    known = dict.fromkeys([*BENCHES, *(key for keys in BENCHES.values() for key in keys)])
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    wanted = {
        module: tuple(key for key in keys if not names or module in names or key in names)
        for module, keys in BENCHES.items()
    }
    measured = [_measured(module, keys) for module, keys in wanted.items() if keys]
    return 0 if all(measured) else 1


def _measured(module: str, keys: tuple[str, ...]) -> bool:
    """Run one; false when it broke."""
    try:
        import_module(f"tests.bench.{module}").bench(keys)
    except UnavailableError as lack:
        return _without_figures(keys, str(lack))
    except Exception as fault:  # noqa: BLE001 - the next one is to be run all the same
        traceback.print_exc()
        return not _without_figures(keys, f"it broke: {fault!r}")
    return True


def _without_figures(keys: tuple[str, ...], note: str) -> bool:
    for key in keys:
        unmeasured(key, note)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
