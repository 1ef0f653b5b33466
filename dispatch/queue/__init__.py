"""The queue on Valkey: who may have a job, and every step it can take. The only package that imports RQ.

Each transition of contracts 3 is one Lua file in `lua/`, wrapped by one function; RQ's own data model is
kept, so that RQ's tools show the truth. Nothing of RQ's worker runs here.
"""

from __future__ import annotations
