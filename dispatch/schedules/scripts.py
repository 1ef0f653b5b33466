"""The Lua files of the tables."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_LUA = Path(__file__).parent / "lua"


@cache
def text_of(name: str) -> str:
    """Read `lua/<name>.lua`."""
    return (_LUA / f"{name}.lua").read_text(encoding="ascii")
