"""A job on the wire: what stands in the `data` field of its RQ hash, and back.

Whoever can write to Valkey can write a payload. So reading one evaluates nothing, is bounded in memory, and
answers `Malformed` with a word of a closed list instead of raising.
"""

from __future__ import annotations

import json
import math
import types
import typing
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from dispatch.jobdata import (
    AzureRepository,
    Comment,
    CronTrigger,
    ForgeTrigger,
    JobData,
    Matched,
    Review,
    Sender,
    Target,
)
from dispatch.jobrules import Flaw, Malformed, find_flaw, is_well_formed, wire_name

# The callable that RQ's hash names: `dispatch.jobs.run`, which refuses to run outside our worker.
CALLABLE = "dispatch.jobs.run"
VERSION = 1
# Holds the longest task even where each of its bytes is written as a six-byte escape.
MAX_PAYLOAD_BYTES = 2 * 1024 * 1024
# Beyond it a JSON number is not the same number to every reader.
_MAX_INTEGER = 2**53

_T = TypeVar("_T")


class _FlawFoundError(Exception):
    """Carries the answer out of the nested reading."""

    def __init__(self, detail: Flaw, field: str | None = None) -> None:
        self.malformed = Malformed(detail, field)
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class _WireField:
    attribute: str
    hint: Any
    required: bool


def encode(job: JobData) -> dict[str, Any]:
    """Write a job as the one keyword argument `job` of `dispatch.jobs.run`; unset fields are absent."""
    return {"v": VERSION, "data": _written(job)}


def decode(raw: bytes) -> JobData | Malformed:
    """Read the `data` field of an RQ hash: a call in JSON, compressed by zlib or plain, as RQ reads it.

    Never raises, whatever the bytes are. A field that this version does not know is refused: it may well be
    one that narrows what the job may do.
    """
    try:
        job = _read_record(JobData, _read_arguments(_read_call(raw)))
    except _FlawFoundError as error:
        return error.malformed
    return find_flaw(job) or job


def _read_call(raw: bytes) -> object:
    try:
        return json.loads(
            _inflated(raw).decode(),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        # Broken UTF-8, no JSON, an integer of thousands of digits, or brackets beyond any depth we write.
        raise _FlawFoundError(Flaw.NOT_JSON) from error


def _inflated(raw: bytes) -> bytes:
    if len(raw) > MAX_PAYLOAD_BYTES:
        raise _FlawFoundError(Flaw.TOO_LARGE)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(raw, MAX_PAYLOAD_BYTES + 1)
    except zlib.error:
        return raw
    if len(plain) > MAX_PAYLOAD_BYTES:
        raise _FlawFoundError(Flaw.TOO_LARGE)
    if not stream.eof or stream.unused_data:
        raise _FlawFoundError(Flaw.NOT_JSON)
    return plain


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _FlawFoundError(Flaw.DUPLICATE_KEY)
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise _FlawFoundError(Flaw.NOT_JSON)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _FlawFoundError(Flaw.NOT_JSON)
    return number


def _read_arguments(call: object) -> object:
    if not isinstance(call, list) or len(call) != 4:
        raise _FlawFoundError(Flaw.NOT_A_CALL)
    # RQ's order: a function's name, the instance of a method, positional and keyword arguments.
    function, instance, args, kwargs = call
    if function != CALLABLE or instance is not None:
        raise _FlawFoundError(Flaw.FOREIGN_CALLABLE)
    if args != [] or not isinstance(kwargs, dict) or set(kwargs) != {"job"}:
        raise _FlawFoundError(Flaw.WRONG_ARGUMENTS)
    envelope = kwargs["job"]
    if not isinstance(envelope, dict) or set(envelope) != {"v", "data"}:
        raise _FlawFoundError(Flaw.WRONG_ARGUMENTS)
    if type(envelope["v"]) is not int or envelope["v"] != VERSION:
        raise _FlawFoundError(Flaw.UNKNOWN_VERSION)
    return envelope["data"]


def _wire_fields(record: type) -> dict[str, _WireField]:
    hints = typing.get_type_hints(record)
    return {
        item.metadata.get("wire") or wire_name(item.name): _WireField(
            item.name, hints[item.name], item.default is MISSING
        )
        for item in fields(record)
    }


_RECORDS: Mapping[type, Mapping[str, _WireField]] = {
    record: _wire_fields(record)
    for record in (
        JobData,
        CronTrigger,
        ForgeTrigger,
        Matched,
        Sender,
        Comment,
        Review,
        Target,
        AzureRepository,
    )
}


def _written(value: Any) -> Any:
    if is_dataclass(value):
        known = _RECORDS[type(value)]
        members = {name: getattr(value, item.attribute) for name, item in known.items()}
        return {name: _written(member) for name, member in members.items() if member is not None}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _read_record(record: type[_T], value: object, at: str | None = None) -> _T:
    """Read a JSON object as a record; `at` is the field of the job that it stands in."""
    if not isinstance(value, dict):
        raise _FlawFoundError(Flaw.FIELD_TYPE, at)
    known = _RECORDS[record]
    if not value.keys() <= known.keys():
        raise _FlawFoundError(Flaw.FIELD_UNKNOWN, at)
    for name, item in known.items():
        if item.required and name not in value:
            raise _FlawFoundError(Flaw.FIELD_MISSING, at or name)
    read = {
        known[name].attribute: _read_value(known[name].hint, member, at or name)
        for name, member in value.items()
    }
    return record(**read)


def _read_value(hint: Any, value: object, at: str) -> Any:
    """Read a JSON value as what the type hint says; null is never a value, only absence is."""
    hints = [hint]
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        hints = [option for option in typing.get_args(hint) if option is not type(None)]
    if len(hints) > 1:
        hints = [_variant(hints, value, at)]
    hint = hints[0]
    if is_dataclass(hint):
        return _read_record(typing.cast("type", hint), value, at)
    if typing.get_origin(hint) is tuple:
        return tuple(_checked(list, value, at))
    if typing.get_origin(hint) is not None:
        return _read_texts(value, at)
    if issubclass(hint, StrEnum):
        if _checked(str, value, at) not in set(hint):
            raise _FlawFoundError(Flaw.FIELD_VALUE, at)
        return hint(value)
    return _checked(hint, value, at)


def _variant(options: list[Any], value: object, at: str) -> Any:
    """Choose the record of which the value has every required field."""
    for option in options:
        needed = {name for name, item in _RECORDS[option].items() if item.required}
        if isinstance(value, dict) and needed <= value.keys():
            return option
    raise _FlawFoundError(Flaw.FIELD_TYPE, at)


def _read_texts(value: object, at: str) -> Mapping[str, str]:
    members = _checked(dict, value, at)
    return {_checked(str, name, at): _checked(str, member, at) for name, member in members.items()}


def _checked(kind: type[_T], value: object, at: str) -> _T:
    # Not isinstance: True is an int to Python.
    if type(value) is not kind:
        raise _FlawFoundError(Flaw.FIELD_TYPE, at)
    if isinstance(value, str) and not is_well_formed(value):
        raise _FlawFoundError(Flaw.FIELD_VALUE, at)
    if isinstance(value, int) and abs(value) > _MAX_INTEGER:
        raise _FlawFoundError(Flaw.FIELD_VALUE, at)
    return value
