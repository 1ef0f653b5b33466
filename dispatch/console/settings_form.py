"""The settings file as a form: what each key has there and in force, and what a person asks for with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dispatch.console.settings import Setting
from dispatch.operator_files.overlay import BY_NAME, KEYS, Key, Overlay, of_document
from dispatch.operator_files.overlay_edit import nearest
from dispatch.operator_files.problems import shown

#: Beginnings of the names in the form; behind them stands the key, for unknown ones its place among them.
VALUE, UNSET, UNKNOWN = "value-", "unset-", "unknown-"
_WRONG = "a value that is not allowed"
_CAPS = frozenset({"dailyCap", "weeklyCap", "monthlyCap", "dailyTokenCap"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingField:
    """One key: `value` is the file's or what was typed, as text; `problem` says what is wrong with that.

    `can_edit` is False for what is edited by hand. `is_set`: the file has the key, whatever its value.
    """

    setting: Setting
    value: str
    is_set: bool
    can_edit: bool
    is_unset: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key of the file that means nothing, escaped; `name` is its box in the form."""

    name: str
    shown: str
    meant: str | None
    is_unset: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """The changes that were asked for, as `overlay_edit.changed` takes them."""

    to_set: Mapping[str, str]
    to_unset: tuple[str, ...]


def lenient(document: Mapping[str, Any], *, name: str) -> Overlay:
    """Read what of the file is allowed, as if the rest were not in it."""
    return of_document(
        {key: value for key, value in document.items() if not _is_wrong(key, value)}, name=name
    )


def fields_of(
    document: Mapping[str, Any], settings: Sequence[Setting], texts: Mapping[str, str] | None = None
) -> tuple[SettingField, ...]:
    """Fill the form with the file, or with what a person typed."""
    return tuple(
        _typed(_field(key, document, setting), key, texts)
        for key, setting in zip(KEYS, settings, strict=True)
    )


def unknown_of(document: Mapping[str, Any], texts: Mapping[str, str] | None = None) -> tuple[UnknownKey, ...]:
    """List the keys of the file that mean nothing."""
    return tuple(
        UnknownKey(name, shown(key)[1:-1], nearest(key), name in (texts or {}))
        for name, key in _unknown(document)
    )


def wanted(document: Mapping[str, Any], texts: Mapping[str, str]) -> Wanted:
    """Read what was asked for; a text that is left as it was asks for nothing, one that is cleared unsets."""
    to_set: dict[str, str] = {}
    to_unset = [key for name, key in _unknown(document) if name in texts]
    for key in KEYS:
        typed, had = texts.get(f"{VALUE}{key.name}", "").strip(), _text(key, document)
        is_sent = f"{VALUE}{key.name}" in texts
        if f"{UNSET}{key.name}" in texts or (is_sent and had and not typed):
            to_unset.append(key.name)
        if typed and typed != had:
            to_set[key.name] = typed
    return Wanted(to_set, tuple(to_unset))


def states_of(
    names: Sequence[str], document: Mapping[str, Any], settings: Sequence[Setting]
) -> dict[str, str | None]:
    """Say how these keys stand with this document and what is in force with it; None: not in the file."""
    return {shown(name)[1:-1]: _state(name, document, settings) for name in names}


def difference(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> str:
    """Write the two as a unified diff."""
    lines = ["--- before", "+++ after"]
    for name, was in before.items():
        lines += [f"-{name}: {was}"] if was is not None else []
        lines += [f"+{name}: {after[name]}"] if after[name] is not None else []
    return "\n".join(lines) if before else ""


def notes(settings: Sequence[Setting], names: Sequence[str]) -> Iterator[str]:
    """Say what may not be meant with changes of these keys, by what is in force then."""
    for one in settings:
        if one.name in names and one.name in _CAPS and one.value is None:
            yield f"{one.name} is off then: nothing bounds that any more."


def _field(key: Key, document: Mapping[str, Any], setting: Setting) -> SettingField:
    return SettingField(
        setting=setting,
        value=_text(key, document),
        is_set=key.name in document,
        can_edit=key.of_text is not None,
        problem=f"The file has {_WRONG}; allowed is {key.allowed}."
        if key.name in document and _is_wrong(key.name, document[key.name])
        else "",
    )


def _typed(field: SettingField, key: Key, texts: Mapping[str, str] | None) -> SettingField:
    if texts is None or key.of_text is None:
        return field
    value, is_unset = texts.get(f"{VALUE}{key.name}", field.value).strip(), f"{UNSET}{key.name}" in texts
    problem = "" if is_unset or value else field.problem
    if value != field.value and is_unset and value:
        problem = "It is both set and unset; say one of them."
    elif value != field.value and value and key.read(key.of_text(value)) is None:
        problem = f"It cannot be set to this; allowed is {key.allowed}."
    return replace(field, value=value, is_unset=is_unset, problem=problem)


def _state(name: str, document: Mapping[str, Any], settings: Sequence[Setting]) -> str | None:
    if name not in BY_NAME:
        return "means nothing" if name in document else None
    if name in document and _is_wrong(name, document[name]):
        return _WRONG
    found = next(one for one in settings if one.name == name)
    return f"{found} (from: {found.source.words})"


def _text(key: Key, document: Mapping[str, Any]) -> str:
    value = key.read(document[key.name]) if key.of_text and key.name in document else None
    return "" if value is None else str(value)


def _is_wrong(name: str, value: Any) -> bool:
    key = BY_NAME.get(name)
    return key is not None and key.read(value) is None


def _unknown(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for place, key in enumerate(one for one in document if one not in BY_NAME):
        yield f"{UNKNOWN}{place}", key
