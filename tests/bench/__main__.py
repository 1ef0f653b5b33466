"""`python -m tests.bench [NAME]`: every benchmark, or one; exits 0 whether or not the targets hold."""

from __future__ import annotations

import sys

import django


def main(names: list[str]) -> int:
    django.setup()
    from tests.bench import commands, containers, latency, memory, throughput

    benches = {
        "containers": containers.bench,
        "throughput": throughput.bench,
        "latency": latency.bench,
        "memory": memory.bench,
        "commands": commands.bench,
    }
    unknown = [name for name in names if name not in benches]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(benches)}", file=sys.stderr)
        return 2
    for name in names or benches:
        benches[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
