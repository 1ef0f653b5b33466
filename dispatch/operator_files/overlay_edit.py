"""Changes of the settings overlay as a person types them: what the file will hold, or all that is wrong."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dispatch.jobrules import is_well_formed
from dispatch.operator_files.overlay import BY_NAME, KEYS, Key
from dispatch.operator_files.problems import OperatorFileError, Problem, shown
from pidispatch_site.errors import ConfigurationError

_FOREIGN = re.compile(r"[^a-z0-9]")
_PLAIN = {key.name.lower(): key.name for key in KEYS}


def changed(
    before: Mapping[str, Any], *, to_set: Mapping[str, str], to_unset: Sequence[str], name: str
) -> dict[str, Any]:
    """Apply the changes to what the file of this name holds: key order and unknown keys stay.

    Texts are read by `Key.of_text`. An unknown key can be unset where the file has it. Raises
    ConfigurationError with every change that is not allowed; values are not repeated in it.
    """
    problems = [*_set_problems(to_set, name), *_unset_problems(before, to_set, to_unset, name)]
    if problems:
        raise ConfigurationError(*problems)
    after = {key: value for key, value in before.items() if key not in to_unset}
    return after | {key: _value(BY_NAME[key], text) for key, text in to_set.items()}


def rendered(document: Mapping[str, Any], *, name: str) -> bytes:
    """Write the document as the file holds it; OperatorFileError where what it held is beyond that."""
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        if not is_well_formed(text):
            text = json.dumps(document, indent=2, allow_nan=False)
    except (ValueError, RecursionError) as error:
        problem = Problem("", "holds a value that cannot be written again; edit it by hand")
        raise OperatorFileError(name, [problem]) from error
    return f"{text}\n".encode()


def nearest(name: str) -> str | None:
    """Find the key that this may have been meant to be, also by its variable's name or another spelling."""
    plain = _FOREIGN.sub("", name.lower())
    close = difflib.get_close_matches(plain, _PLAIN, n=1)
    return _PLAIN[close[0]] if close else None


def _value(key: Key, text: str) -> object:
    return key.of_text(text) if key.of_text else None


def _set_problems(to_set: Mapping[str, str], name: str) -> Iterator[str]:
    for key_name, text in to_set.items():
        key = BY_NAME.get(key_name)
        if key is None or key.of_text is None:
            yield _unchangeable(key_name, name)
        elif key.read(_value(key, text)) is None:
            off = f"; --unset {key_name} takes it out"
            yield f"{key_name} cannot be set to this value; allowed is {key.allowed}{off}"


def _unset_problems(
    before: Mapping[str, Any], to_set: Mapping[str, str], to_unset: Sequence[str], name: str
) -> Iterator[str]:
    for key_name in to_unset:
        key = BY_NAME.get(key_name)
        if key_name in to_set:
            yield f"{key_name} is both set and unset; say one of them"
        elif (key is None and key_name not in before) or (key is not None and key.of_text is None):
            yield _unchangeable(key_name, name)


def _unchangeable(key_name: str, name: str) -> str:
    """Say why a key cannot be changed by a command, and what to do instead."""
    if key_name in BY_NAME:
        return f"{key_name} is edited by hand, in {name}; allowed is {BY_NAME[key_name].allowed}"
    meant = nearest(key_name)
    hint = f"did you mean {meant}?" if meant else f"there are {', '.join(key.name for key in KEYS)}"
    return f"{shown(key_name)} is no setting; {hint}"
