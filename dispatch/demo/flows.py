"""What the runs of the demo's past were about, and what they used of which models: all of it invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Who serves it, and dollars for a million tokens in and out."""

    provider: str
    dollars_in: float
    dollars_out: float


MODELS: Mapping[str, Model] = {
    "claude-sonnet-4-5": Model(provider="anthropic", dollars_in=3.0, dollars_out=15.0),
    "claude-haiku-4-5": Model(provider="anthropic", dollars_in=1.0, dollars_out=5.0),
    "gpt-5-codex": Model(provider="openai", dollars_in=1.25, dollars_out=10.0),
    "qwen3-coder": Model(provider="local", dollars_in=0.0, dollars_out=0.0),
}
HELPER = "claude-haiku-4-5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How often it is asked for, what it takes: minutes and thousands of tokens, both in the middle.

    `helped` is how likely a smaller model takes a part.
    """

    weight: int
    minutes: float
    thousands: float
    models: Mapping[str, int]
    helped: float = 0.4


FLOWS: Mapping[str, Flow] = {
    "fix-tests": Flow(weight=30, minutes=9, thousands=260, models={"claude-sonnet-4-5": 7, "gpt-5-codex": 3}),
    "review": Flow(weight=26, minutes=4, thousands=120, models={"claude-sonnet-4-5": 6, "gpt-5-codex": 4}),
    "triage": Flow(weight=16, minutes=1.5, thousands=30, models={"claude-haiku-4-5": 1}),
    "docs-sync": Flow(weight=12, minutes=3, thousands=70, models={"claude-haiku-4-5": 3, "qwen3-coder": 2}),
    "refactor": Flow(weight=9, minutes=17, thousands=520, models={"claude-sonnet-4-5": 1}),
    "release-notes": Flow(weight=5, minutes=2, thousands=45, models={"qwen3-coder": 1}),
    "audit": Flow(weight=0, minutes=12, thousands=390, models={"claude-sonnet-4-5": 1}, helped=1),
    "update": Flow(weight=0, minutes=6, thousands=110, models={"gpt-5-codex": 1}),
}


def total(used: Mapping[str, Any]) -> dict[str, Any]:
    """Sum the models up, as a record has it."""
    rows: Sequence[Mapping[str, Any]] = used["models"]
    whole = {name: sum(row[name] for row in rows) for name in ("input", "output", "total", "cost")}
    return {**whole, "cost": round(whole["cost"], 6)}


def usage(chance: Random, flow: Flow, model: str, share: float) -> dict[str, Any]:
    """Invent what each model of a run used; `share` of what the flow takes in the middle."""
    amount = flow.thousands * 1000 * share * chance.lognormvariate(0, 0.5)
    rows = [_used(chance, model, amount)]
    if model != HELPER and chance.random() < flow.helped:
        rows.append(_used(chance, HELPER, amount * 0.06))
    return {"v": 1, "piAi": "1.0.3", "truncated": 0, "models": rows}


def _used(chance: Random, model: str, amount: float) -> dict[str, Any]:
    price = MODELS[model]
    put_out = int(amount * chance.uniform(0.03, 0.09))
    cached = int(amount * chance.uniform(0.5, 0.75))
    put_in = int(amount) - put_out - cached
    dollars = (put_in + 0.1 * cached) * price.dollars_in + put_out * price.dollars_out
    return {
        "provider": price.provider,
        "model": model,
        "calls": max(1, int(amount / 14_000)),
        "input": put_in,
        "output": put_out,
        "cacheRead": cached,
        "total": put_in + put_out + cached,
        "cost": round(dollars / 1_000_000, 6),
    }
