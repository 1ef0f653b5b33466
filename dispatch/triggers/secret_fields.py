"""`secrets` and `secretsProfile` of an entry: which references are resolved for a job, by whom (Q 5.1)."""

from __future__ import annotations

from collections.abc import Mapping

from dispatch.triggers import secret_names
from dispatch.triggers.field_values import is_trimmed, text
from dispatch.triggers.given import Given

MOST_SECRETS = 16
_NAME_CHARACTERS = 60
_SECRETS_RULE = (
    f'an object of 1 to {MOST_SECRETS} references by variable, such as {{"TOKEN": "op://vault/item"}}'
)
_REFERENCE_RULE = "a text without blanks around it that does not begin with a hyphen"
_VARIABLE_RULE = "a variable's name: letters, digits, underscores, no digit in front, not __proto__"
_PROFILE_RULE = "a name of letters, digits, dots, underscores and hyphens"


def profile(given: Given) -> str | None:
    """Read the name of the script that resolves the references."""
    if given.has("secretsProfile") and not given.has("secrets"):
        given.wrong("secretsProfile", "stands without secrets; add secrets, or take it out")
    return given.take("secretsProfile", _PROFILE_RULE, text(secret_names.is_profile))


def references(given: Given) -> Mapping[str, str] | None:
    """Read the references by the variables that they are for; none of them is ever shown."""
    if not given.has("secrets"):
        return None
    table = given.row["secrets"]
    if not isinstance(table, dict):
        # Not shown: what stands here may be the secret itself.
        given.wrong("secrets", f"is no object; allowed is {_SECRETS_RULE}")
        return None
    if not 1 <= len(table) <= MOST_SECRETS:
        given.wrong("secrets", f"has {len(table)} entries; allowed is {_SECRETS_RULE}")
    for at, (name, reference) in enumerate(table.items()):
        _check_secret(given, at, name, reference)
    return dict(table)


def _check_secret(given: Given, at: int, name: str, reference: object) -> None:
    if not secret_names.is_name(name):
        # Nor is this: reference and name may have changed places.
        given.wrong(f"secrets[{at}]", f"has a name that is not allowed; allowed is {_VARIABLE_RULE}")
        return
    place = f"secrets.{name[:_NAME_CHARACTERS]}"
    if secret_names.is_reserved(name):
        given.wrong(place, "is a name that the worker or the job uses itself; choose another one")
    if text(_is_reference)(reference) is None:
        given.wrong(place, f"has a reference that is not allowed; allowed is {_REFERENCE_RULE}")


def _is_reference(reference: str) -> bool:
    return is_trimmed(reference) and not reference.startswith("-")
