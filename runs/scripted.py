"""The scripted agent that ships with the product: a job's runner without a model (demo, process backend)."""

from __future__ import annotations

from pathlib import Path

AGENT = Path(__file__).resolve().parents[1] / "image" / "scripted" / "agent.sh"
