"""One change of the settings file as it was when somebody looked, and what is in force with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dispatch.console.adoption import SETTINGS
from dispatch.console.settings import Setting, in_force
from dispatch.console.settings_form import lenient, states_of, wanted
from dispatch.operator_files import overlay
from dispatch.operator_files.overlay_edit import changed
from dispatch.pages.change import require_same
from pidispatch_site.conf import Config


@dataclass(slots=True)
class OverlayChange:
    """What was typed into the form, as a change of the file as it was when somebody looked.

    `before`, `after` and the names of the keys are known once it has been worked out.
    """

    texts: Mapping[str, str]
    lock: str
    name: str
    names: tuple[str, ...] = ()
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None

    def change(self, document: Any) -> Mapping[str, Any] | None:
        """Answer the file's new document, None where nothing changes; ConfigurationError."""
        self.before = object_of(document, self.name)
        require_same(document, self.lock, what=SETTINGS.what)
        asked = wanted(document, self.texts)
        self.names = (*asked.to_set, *asked.to_unset)
        self.after = changed(document, to_set=asked.to_set, to_unset=asked.to_unset, name=self.name)
        return self.after if self.names else None


def in_force_with(config: Config, document: Mapping[str, Any]) -> tuple[Setting, ...]:
    """List every key with what is in force, with what of the file is allowed."""
    found = lenient(document, name=str(config.settings_file))
    return in_force(found, _configured(config), config.environment)


def states(config: Config, asked: OverlayChange) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """Say how the keys of a change stand before and after it, in force."""
    before, after = asked.before or {}, asked.after or {}
    return (
        states_of(asked.names, before, in_force_with(config, before)),
        states_of(asked.names, after, in_force_with(config, after)),
    )


def object_of(document: Any, name: str) -> Mapping[str, Any]:
    """Take what is an object; else refuse it in the words that a reader of the file has for it."""
    if isinstance(document, dict):
        return document
    overlay.of_document(document, name=name)
    raise ValueError("what is no object is refused")


def _configured(config: Config) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(Config)}
