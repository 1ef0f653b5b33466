"""What the overlay's `models.json` says of one provider: does it bring a key, which variables does it name.

The file is pi's (its documentation: "Configure a compatible endpoint"): JSON with line comments and trailing
commas; `apiKey` and header values are literals, `$NAME` references, or a `!command` that pi runs itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.outcome import InfraFault

_REFERENCE = re.compile(r"\$(?:[$!]|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*')
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


class InvalidModelsFileError(Exception):
    """The file or the provider's entry is not of the shape that pi reads; the argument is a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One provider's entry; its key and headers need the `required` variables, models the `optional` ones."""

    declared: bool = False
    has_key: bool = False
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


NOT_DECLARED = Declaration()


def declaration(provider: str, global_pi_dir: Path | None) -> Declaration:
    """Read the provider's entry; NOT_DECLARED without overlay, file or entry.

    Raises InvalidModelsFileError, and InfraFault when the file is there and cannot be read.
    """
    if global_pi_dir is None:
        return NOT_DECLARED
    try:
        content = (global_pi_dir / "models.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return NOT_DECLARED
    except OSError as error:
        raise InfraFault(detail="models-file-unreadable") from error
    providers = _parsed(content).get("providers")
    if not isinstance(providers, dict):
        raise InvalidModelsFileError("models-file-invalid")
    return _read(providers[provider]) if provider in providers else NOT_DECLARED


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig")
        for pattern in (_STRING_OR_COMMENT, _STRING_OR_TRAILING_COMMA):
            text = pattern.sub(lambda found: found[1] or "", text)
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidModelsFileError("models-file-invalid") from error
    if not isinstance(value, dict):
        raise InvalidModelsFileError("models-file-invalid")
    return value


def _read(entry: object) -> Declaration:
    if not isinstance(entry, dict):
        raise InvalidModelsFileError("models-entry-invalid")
    key = entry.get("apiKey")
    if key is not None and (not isinstance(key, str) or not key):
        raise InvalidModelsFileError("models-entry-invalid")
    return Declaration(
        declared=True,
        has_key=key is not None,
        required=frozenset(_references(key)) | _in_headers(entry),
        optional=frozenset[str]().union(*(_in_headers(model) for model in _models(entry))),
    )


def _models(entry: dict[str, Any]) -> list[object]:
    models, overrides = entry.get("models"), entry.get("modelOverrides")
    return [
        *(models if isinstance(models, list) else ()),
        *(overrides.values() if isinstance(overrides, dict) else ()),
    ]


def _in_headers(holder: object) -> frozenset[str]:
    headers = holder.get("headers") if isinstance(holder, dict) else None
    values = headers.values() if isinstance(headers, dict) else ()
    return frozenset(name for value in values for name in _references(value))


def _references(value: object) -> list[str]:
    """Name the variables of a configured value; none in a literal or a command."""
    if not isinstance(value, str) or value.startswith("!"):
        return []
    return [found[1] or found[2] for found in _REFERENCE.finditer(value) if found[1] or found[2]]
