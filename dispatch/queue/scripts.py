"""The Lua files as callables of one client."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hosts import switches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import redis
    from redis.commands.core import Script

LUA = Path(__file__).parent / "lua"
_USES = re.compile(r"^-- uses: (.+)$", re.MULTILINE)

Key = str | bytes
Value = str | bytes | int | float


@cache
def text_of(name: str) -> str:
    """Read `lua/<name>.lua` and put in front what its `uses:` line names.

    That is files of `lua/shared`, and `switches`: how `hosts` judges a pause, with Valkey's clock (`now_ms`).
    """
    text = (LUA / f"{name}.lua").read_text(encoding="ascii")
    uses = _USES.search(text)
    return "\n".join([*map(shared, uses[1].split() if uses else ()), text])


def shared(name: str) -> str:
    """Read what a `uses:` line names, for scripts that stand elsewhere."""
    return (
        switches.HOLDS if name == "switches" else (LUA / "shared" / f"{name}.lua").read_text(encoding="ascii")
    )


class Scripts:
    """Calls a script by its hash and loads it where the server does not know it. Safe for threads."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._known: dict[str, Script] = {}

    def call(self, name: str, keys: Sequence[Key], args: Iterable[Value]) -> Any:
        """Run `lua/<name>.lua` and answer what it answers, in bytes."""
        script = self._known.get(name)
        if script is None:
            script = self._known[name] = self._client.register_script(text_of(name))
        return script(keys=keys, args=args)
