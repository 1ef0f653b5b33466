"""The demo: the product's own commands on a stage of their own, seen by a person (`make demo`)."""

from __future__ import annotations
