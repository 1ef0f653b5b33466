"""The version of this product, as workers tell it to the fleet; pyproject.toml says the same (tested)."""

from __future__ import annotations

VERSION = "0.1.0"
