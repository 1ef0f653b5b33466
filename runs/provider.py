"""The credential of a job's model provider (E 1.4): which variables pi reads, and where the values come from.

The table in `data/providers.json` is generated from the pinned pi by `data/generate_providers.mjs`. Per
provider: `env` what pi reads and a container may get, `host` what it reads but what points at something of
the host (never passed), `needs` the sets of variables of which one must be complete, `key` the variable that
does what a stored API key does (null where an API key is of no use).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from runs.environment import is_a_name, may_enter
from runs.outcome import InfraFault, Reason, Refusal
from runs.provider_models import Declaration, InvalidModelsFileError, declaration

TABLE = Path(__file__).parent / "data" / "providers.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What pi reads for one built-in provider."""

    env: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    needs: tuple[frozenset[str], ...] = ()
    key: str | None = None

    def suffices(self, held: Collection[str], *, beside_a_key: bool = False) -> bool:
        """Whether pi is content with these variables, given a key from elsewhere or without one."""
        if not beside_a_key:
            return any(need <= set(held) for need in self.needs)
        rests = [need - {self.key} for need in self.needs if self.key in need]
        return not rests or any(rest <= set(held) for rest in rests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The provider's variables for one job: name to value, the values never shown."""

    variables: Mapping[str, str] = field(repr=False)


class _RefusedError(Exception):
    """The determinate no; the argument is the token for the log."""


@cache
def table() -> Mapping[str, Row]:
    """Every built-in provider of the pinned pi, by its id."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["providers"]
    return {
        provider: Row(
            env=tuple(row["env"]),
            host=tuple(row["host"]),
            needs=tuple(frozenset(need) for need in row["needs"]),
            key=row["key"],
        )
        for provider, row in rows.items()
    }


def names_read(provider: str) -> frozenset[str]:
    """Every variable that pi reads for this provider, passed to jobs or not: no secret may take its name."""
    row = table().get(provider, Row())
    return frozenset(row.env + row.host)


def resolve(
    provider: str,
    environment: Mapping[str, str],
    *,
    auth_from_pi: bool,
    agent_dir: Path,
    global_pi_dir: Path | None = None,
    forward_env: Iterable[str] = (),
) -> Credentials | Refusal:
    """Find the provider's variables in the worker's environment, else an API key in pi's own `auth.json`.

    `environment` is the worker's; only named values are taken. A provider that the overlay's models.json
    declares with a key of its own needs none, and gets the variables which that key and its headers name.
    The refusal `provider-unconfigured` carries a token that says why. Raises InfraFault when a file is there
    and cannot be read.
    """
    try:
        entry = declaration(provider, global_pi_dir)
        variables = _named_by(entry, environment)
        row = table().get(provider)
        if row is None:
            _check_custom(entry)
            return Credentials(variables=variables)
        held = {name: environment[name] for name in row.env if environment.get(name)}
        passed = {*held, *(name for name in forward_env if environment.get(name))}
        if not row.suffices(held, beside_a_key=entry.has_key):
            held |= _stored_key(provider, row, agent_dir if auth_from_pi else None, passed)
    except (_RefusedError, InvalidModelsFileError) as refused:
        return Refusal(Reason.PROVIDER_UNCONFIGURED, str(refused), provider=provider)
    return Credentials(variables={**variables, **held})


def advice(provider: str) -> str:
    """Say to a person what to do about a refusal of `resolve`; holds names, never a value or a path."""
    row = table().get(provider, Row())
    ways = " or ".join(" and ".join(name for name in row.env if name in need) for need in row.needs)
    if ways:
        remedy = f"set {ways} in the worker's environment or its .env file"
    else:
        remedy = "declare it with baseUrl, api, apiKey and models in the models.json of PI_GLOBAL_PI_DIR"
    return f"Provider {provider!r} has no usable credential: {remedy}."


def _check_custom(entry: Declaration) -> None:
    if not entry.declared:
        raise _RefusedError("unknown-provider")
    if not entry.has_key:
        # pi offers such a provider only to who logged in; a dummy key is its way to say "none needed".
        raise _RefusedError("models-entry-without-key")


def _named_by(entry: Declaration, environment: Mapping[str, str]) -> dict[str, str]:
    """Take the variables that models.json refers to; one that its key or headers need must be there."""
    for name in sorted(entry.required):
        if not may_enter(name):
            raise _RefusedError(f"variable-not-allowed:{name}")
        if not environment.get(name):
            raise _RefusedError(f"variable-missing:{name}")
    named = sorted(entry.required | entry.optional)
    return {name: environment[name] for name in named if may_enter(name) and environment.get(name)}


def _stored_key(provider: str, row: Row, agent_dir: Path | None, passed: set[str]) -> dict[str, str]:
    """Take the API key of pi's login, under the provider's own variable; `passed` goes in by other ways."""
    if agent_dir is None:
        raise _RefusedError("no-credential")
    entry = _auth_file(agent_dir).get(provider)
    if entry is None:
        raise _RefusedError("no-credential")
    if not isinstance(entry, dict):
        raise _RefusedError("auth-entry-invalid")
    if entry.get("type") != "api_key":
        raise _RefusedError("oauth-login" if entry.get("type") == "oauth" else "auth-entry-invalid")
    key = _plain_key(entry.get("key"))
    if row.key is None:
        raise _RefusedError("key-has-no-variable")
    _check_companions(entry.get("env"), passed)
    if not row.suffices(passed, beside_a_key=True):
        raise _RefusedError("companion-missing")
    return {row.key: key}


def _plain_key(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise _RefusedError("auth-entry-without-key")
    # pi would run the first and fill in the second: we do neither for it.
    if key.startswith("!"):
        raise _RefusedError("key-is-a-command")
    if "$" in key:
        raise _RefusedError("key-is-interpolated")
    return key


def _check_companions(companions: object, passed: set[str]) -> None:
    for name in sorted(companions) if isinstance(companions, dict) else ():
        if name not in passed:
            raise _RefusedError(f"companion-not-passed:{name}" if is_a_name(name) else "auth-entry-invalid")


def _auth_file(agent_dir: Path) -> dict[str, Any]:
    try:
        value = json.loads((agent_dir / "auth.json").read_bytes().decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        raise _RefusedError("auth-file-invalid") from error
    except OSError as error:
        raise InfraFault(detail="auth-file-unreadable") from error
    if not isinstance(value, dict):
        raise _RefusedError("auth-file-invalid")
    return value
